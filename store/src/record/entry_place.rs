//! Where is an entry in the log of its customer: its id, and its kind?

use engine::admin_log::entry::{Category, Entry, Subject};
use engine::ids::EntryId;

use super::{Unreadable, code};

/// The kind of an entry: its category and its subject.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Kind([u8; 2]);

impl Kind {
    /// The kind of the entries of this category and subject.
    pub(crate) fn new(category: Category, subject: Subject) -> Self {
        Self([code::of_category(category), code::of_subject(subject)])
    }

    /// The codes of its category and its subject.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        self.0
    }

    /// From these codes.
    pub(crate) fn from_bytes(codes: [u8; 2]) -> Self {
        Self(codes)
    }

    /// Its category and its subject.
    pub(crate) fn read(self) -> Result<(Category, Subject), Unreadable> {
        let [category, subject] = self.0;
        Ok((code::category(category)?, code::subject(subject)?))
    }

    /// Its place among the counts of a time span; the places of later subjects come last.
    pub(crate) fn place(self) -> usize {
        let [category, subject] = self.0.map(usize::from);
        2 * subject.saturating_sub(1) + category.saturating_sub(1)
    }

    /// Every kind that passes a filter.
    pub(crate) fn all(category: Option<Category>, subject: Option<Subject>) -> Vec<Self> {
        let categories = Category::ALL.into_iter();
        let categories = categories.filter(|one| category.is_none_or(|wanted| wanted == *one));
        let kinds = categories.flat_map(|category| {
            let subjects = Subject::ALL.into_iter();
            let subjects = subjects.filter(|one| subject.is_none_or(|wanted| wanted == *one));
            subjects.map(move |subject| Self::new(category, subject))
        });
        kinds.collect()
    }
}

/// Where an entry is in the log of its customer. Places are in the order of ids.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct EntryPlace {
    /// The id of the entry.
    pub(crate) id: EntryId,
    /// Its kind.
    pub(crate) kind: Kind,
}

impl EntryPlace {
    /// The place of an entry.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            id: entry.id,
            kind: Kind::new(entry.category, entry.subject),
        }
    }

    /// How many bytes it has.
    pub(crate) const BYTES: usize = 18;

    /// As bytes.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(self.id.as_bytes());
        bytes[16..].copy_from_slice(&self.kind.0);
        bytes
    }

    /// From its bytes, and the bytes after them.
    pub(crate) fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let place = Self {
            id: EntryId::from_bytes(*id),
            kind: Kind(*kind),
        };
        Some((place, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_place_of_its_own_and_a_filter_takes_those_it_names() {
        let kinds = Kind::all(None, None);
        let mut places: Vec<_> = kinds.iter().map(|kind| kind.place()).collect();
        places.sort_unstable();
        assert_eq!(places, (0..kinds.len()).collect::<Vec<_>>());
        let errors = Kind::all(Some(Category::Error), None);
        assert_eq!(errors.len(), Subject::ALL.len());
        let one = Kind::all(Some(Category::Info), Some(Subject::Lifecycle));
        assert_eq!(one, [Kind::new(Category::Info, Subject::Lifecycle)]);
    }

    #[test]
    fn a_place_is_read_from_its_bytes() {
        let place = EntryPlace {
            id: EntryId::from_bytes([7; 16]),
            kind: Kind::new(Category::Error, Subject::Lifecycle),
        };
        let bytes = [&place.to_bytes()[..], b"rest"].concat();
        assert_eq!(EntryPlace::split_from(&bytes), Some((place, &b"rest"[..])));
        assert_eq!(EntryPlace::split_from(&bytes[..17]), None);
    }
}
