//! How many devices are known, registered and not? Summed from the counts of all customers when the
//! store is opened; from then on each group says by how much it moves them.

use sled::{Db, IVec};

use super::fault::Fault;
use super::key::device::{counts, traits_counted};
use super::overlay::Overlay;
use super::record::Unreadable;
use super::record::number::read_count;

/// Numbers of devices, or by how much they move.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Headcount {
    /// Those that have a registration.
    pub(super) registered: i64,
    /// The others.
    pub(super) unregistered: i64,
}

impl Headcount {
    /// How many there are.
    pub(super) fn load(db: &Db) -> Result<Self, Fault> {
        let mut known = Self::default();
        for row in db.scan_prefix(counts()) {
            let (key, count) = row?;
            known.add(&key, read_count(&count)?)?;
        }
        Ok(known)
    }

    /// By how much a group moves them.
    pub(super) fn moved_by(rows: &Overlay<'_>) -> Result<Self, Fault> {
        let mut moved = Self::default();
        for (key, before, after) in rows.written(&counts())? {
            moved.add(&key, count_of(after)? - count_of(before)?)?;
        }
        Ok(moved)
    }

    fn add(&mut self, key: &[u8], count: i64) -> Result<(), Unreadable> {
        let traits = traits_counted(key).ok_or(Unreadable::Damaged("a count of devices"))?;
        if traits.is_registered() {
            self.registered += count;
        } else {
            self.unregistered += count;
        }
        Ok(())
    }
}

fn count_of(row: Option<IVec>) -> Result<i64, Unreadable> {
    row.map_or(Ok(0), |row| read_count(&row))
}

#[cfg(test)]
mod tests {
    use engine::ids::CustomerId;

    use super::*;
    use crate::sled::key::device::counted;
    use crate::sled::record::traits::Traits;

    #[test]
    fn devices_are_summed_over_customers_and_moved_by_groups() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let registered = Traits::every().find(|it| it.is_registered()).unwrap();
        write(
            &db,
            &[
                ("a", Traits::NONE, 3),
                ("b", registered, 2),
                ("b", Traits::NONE, 1),
            ],
        );
        let known = Headcount {
            registered: 2,
            unregistered: 4,
        };
        assert_eq!(Headcount::load(&db).unwrap(), known);

        let moved = write(&db, &[("a", Traits::NONE, -3), ("a", registered, 2)]);
        let expected = Headcount {
            registered: 2,
            unregistered: -3,
        };
        assert_eq!(moved, expected);
        let known = Headcount {
            registered: 4,
            unregistered: 1,
        };
        assert_eq!(Headcount::load(&db).unwrap(), known);
    }

    fn write(db: &Db, counts: &[(&str, Traits, i64)]) -> Headcount {
        let mut rows = Overlay::new(db);
        for (customer, traits, delta) in counts {
            let customer = CustomerId::parse(customer).unwrap();
            rows.add(counted(&customer, *traits).into(), *delta)
                .unwrap();
        }
        let moved = Headcount::moved_by(&rows).unwrap();
        db.apply_batch(rows.into_batch()).unwrap();
        moved
    }
}
