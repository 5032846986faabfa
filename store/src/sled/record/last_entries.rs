//! Which entries of the log are the last ones about a device?

use engine::admin_log::entry::Category;
use engine::ids::EntryId;

use super::{Unreadable, check_version};

const VERSION: u8 = 1;

/// The newest entry about a device of each category.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LastEntries {
    error: Option<EntryId>,
    info: Option<EntryId>,
}

impl LastEntries {
    /// The newest of a category, or of any.
    pub(crate) fn among(&self, category: Option<Category>) -> Option<EntryId> {
        match category {
            None => self.error.max(self.info),
            Some(Category::Error) => self.error,
            Some(Category::Info) => self.info,
        }
    }

    /// Adds an entry that was written; one older than the newest changes nothing.
    pub(crate) fn with(mut self, category: Category, entry: EntryId) -> Self {
        let last = self.last(category);
        *last = (*last).max(Some(entry));
        self
    }

    /// Removes an entry. Entries are removed from the oldest on, so the category has no older one
    /// left.
    pub(crate) fn without(mut self, category: Category, entry: EntryId) -> Self {
        let last = self.last(category);
        *last = last.filter(|last| *last != entry);
        self
    }

    fn last(&mut self, category: Category) -> &mut Option<EntryId> {
        match category {
            Category::Error => &mut self.error,
            Category::Info => &mut self.info,
        }
    }
}

/// Writes the last entries about a device.
pub(crate) fn write_last_entries(last: &LastEntries) -> [u8; 33] {
    let mut value = [VERSION; 33];
    value[1..17].copy_from_slice(&bytes_of(last.error));
    value[17..].copy_from_slice(&bytes_of(last.info));
    value
}

/// Reads the last entries about a device.
pub(crate) fn read_last_entries(value: &[u8]) -> Result<LastEntries, Unreadable> {
    let rest = check_version(VERSION, value)?;
    let halves = rest.split_first_chunk().and_then(|(error, rest)| {
        let info = rest.try_into().ok()?;
        Some((*error, info))
    });
    let (error, info) = halves.ok_or(Unreadable::Damaged("last entries of another size"))?;
    Ok(LastEntries {
        error: entry_of(error),
        info: entry_of(info),
    })
}

/// Encodes that there is none: no entry has an id of zeros.
const NONE: [u8; 16] = [0; 16];

fn bytes_of(entry: Option<EntryId>) -> [u8; 16] {
    entry.map_or(NONE, |entry| *entry.as_bytes())
}

fn entry_of(bytes: [u8; 16]) -> Option<EntryId> {
    (bytes != NONE).then(|| EntryId::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: [Option<Category>; 3] = [None, Some(Category::Error), Some(Category::Info)];

    fn id(number: u8) -> EntryId {
        EntryId::from_bytes([number; 16])
    }

    fn numbers(last: LastEntries) -> [Option<EntryId>; 3] {
        ANY.map(|category| last.among(category))
    }

    #[test]
    fn the_newest_entry_of_each_category_and_of_all_is_known() {
        let none = LastEntries::default();
        assert_eq!(numbers(none), [None; 3]);
        let one = none.with(Category::Error, id(5));
        assert_eq!(numbers(one), [Some(id(5)), Some(id(5)), None]);
        let two = one.with(Category::Info, id(7)).with(Category::Info, id(6));
        assert_eq!(numbers(two), [Some(id(7)), Some(id(5)), Some(id(7))]);
        assert_eq!(two.without(Category::Info, id(6)), two);
        assert_eq!(two.without(Category::Info, id(7)), one);
        assert_eq!(one.without(Category::Error, id(5)), none);
        for last in [none, one, two] {
            assert_eq!(read_last_entries(&write_last_entries(&last)), Ok(last));
        }
    }

    #[test]
    fn foreign_bytes_are_damage() {
        let written = write_last_entries(&LastEntries::default());
        for value in [&written[..32], &[written.as_slice(), &[0]].concat(), &[]] {
            assert!(read_last_entries(value).is_err(), "{value:?}");
        }
    }
}
