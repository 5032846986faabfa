//! Which entries of the log are the last ones about a device?
//!
//! They are the beginning of the row of a device's record, or have a row of their own.

use engine::admin_log::entry::Category;
use engine::ids::EntryId;

use super::entry_place::EntryPlace;
use super::{Unreadable, check_version};

const VERSION: u8 = 1;

/// Bits that say which places follow.
const ERROR: u8 = 1;
const INFO: u8 = 2;

/// The newest entry about a device of each category.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LastEntries {
    error: Option<EntryPlace>,
    info: Option<EntryPlace>,
}

impl LastEntries {
    /// The newest of all.
    pub(crate) fn newest(&self) -> Option<EntryPlace> {
        self.error.max(self.info)
    }

    /// The id of the newest of a category, or of any.
    pub(crate) fn among(&self, category: Option<Category>) -> Option<EntryId> {
        let place = match category {
            None => self.newest(),
            Some(Category::Error) => self.error,
            Some(Category::Info) => self.info,
        };
        place.map(|place| place.id)
    }

    /// Adds an entry that was written; one older than the newest changes nothing.
    pub(crate) fn with(mut self, category: Category, entry: EntryPlace) -> Self {
        let last = self.last(category);
        *last = (*last).max(Some(entry));
        self
    }

    /// Removes an entry. Entries are removed from the oldest on, so the category has no older one
    /// left.
    pub(crate) fn without(mut self, category: Category, entry: EntryPlace) -> Self {
        let last = self.last(category);
        *last = last.filter(|last| *last != entry);
        self
    }

    fn last(&mut self, category: Category) -> &mut Option<EntryPlace> {
        match category {
            Category::Error => &mut self.error,
            Category::Info => &mut self.info,
        }
    }
}

/// Writes the last entries about a device before a record.
pub(crate) fn write_before(last: &LastEntries, record: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(1 + 2 * EntryPlace::BYTES + record.len());
    write(last, &mut value);
    value.extend_from_slice(record);
    value
}

/// Reads the last entries about a device before a record, and the bytes of that.
pub(crate) fn read_before(value: &[u8]) -> Result<(LastEntries, &[u8]), Unreadable> {
    const DAMAGED: Unreadable = Unreadable::Damaged("last entries that were not written");
    let (bits, mut rest) = value.split_first().ok_or(DAMAGED)?;
    if bits & !(ERROR | INFO) != 0 {
        return Err(DAMAGED);
    }
    let mut next = |bit| {
        if bits & bit == 0 {
            return Ok(None);
        }
        let (place, behind) = EntryPlace::split_from(rest).ok_or(DAMAGED)?;
        rest = behind;
        Ok(Some(place))
    };
    let last = LastEntries {
        error: next(ERROR)?,
        info: next(INFO)?,
    };
    Ok((last, rest))
}

/// Writes a row of its own.
pub(crate) fn write_last_entries(last: &LastEntries) -> Vec<u8> {
    let mut value = vec![VERSION];
    write(last, &mut value);
    value
}

/// Reads a row of its own.
pub(crate) fn read_last_entries(value: &[u8]) -> Result<LastEntries, Unreadable> {
    match read_before(check_version(VERSION, value)?)? {
        (last, []) => Ok(last),
        (_, _) => Err(Unreadable::Damaged("last entries of another size")),
    }
}

fn write(last: &LastEntries, value: &mut Vec<u8>) {
    let bit = |place: Option<EntryPlace>, bit| if place.is_some() { bit } else { 0 };
    value.push(bit(last.error, ERROR) | bit(last.info, INFO));
    for place in [last.error, last.info].into_iter().flatten() {
        value.extend_from_slice(&place.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use engine::admin_log::entry::Subject;

    use super::*;
    use crate::record::entry_place::Kind;

    const ANY: [Option<Category>; 3] = [None, Some(Category::Error), Some(Category::Info)];

    fn id(number: u8) -> EntryId {
        EntryId::from_bytes([number; 16])
    }

    fn at(category: Category, number: u8) -> EntryPlace {
        EntryPlace {
            id: id(number),
            kind: Kind::new(category, Subject::Lifecycle),
        }
    }

    fn numbers(last: LastEntries) -> [Option<EntryId>; 3] {
        ANY.map(|category| last.among(category))
    }

    #[test]
    fn the_newest_entry_of_each_category_and_of_all_is_known() {
        let [error, older, newer] = [
            at(Category::Error, 5),
            at(Category::Info, 6),
            at(Category::Info, 7),
        ];
        let none = LastEntries::default();
        assert_eq!(numbers(none), [None; 3]);
        let one = none.with(Category::Error, error);
        assert_eq!(numbers(one), [Some(id(5)), Some(id(5)), None]);
        let two = one.with(Category::Info, newer).with(Category::Info, older);
        assert_eq!(numbers(two), [Some(id(7)), Some(id(5)), Some(id(7))]);
        assert_eq!(two.newest(), Some(newer));
        assert_eq!(two.without(Category::Info, older), two);
        assert_eq!(two.without(Category::Info, newer), one);
        assert_eq!(one.without(Category::Error, error), none);
        for last in [none, one, two] {
            assert_eq!(read_last_entries(&write_last_entries(&last)), Ok(last));
            let before = write_before(&last, b"record");
            assert_eq!(read_before(&before), Ok((last, &b"record"[..])));
        }
    }

    #[test]
    fn foreign_bytes_are_damage() {
        let last = LastEntries::default().with(Category::Info, at(Category::Info, 1));
        let written = write_last_entries(&last);
        for value in [&written[..18], &[written.as_slice(), &[0]].concat(), &[]] {
            assert!(read_last_entries(value).is_err(), "{value:?}");
        }
        for value in [&[][..], &[4], &[ERROR, 0]] {
            assert!(read_before(value).is_err(), "{value:?}");
        }
    }
}
