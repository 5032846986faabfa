//! How many devices are known, registered and not? Summed from the counts of all customers when the
//! store is opened; from then on each group adds its changes.

use sled::{Db, IVec};

use super::fault::Fault;
use super::key::device::{counts, flags_counted};
use super::overlay::Overlay;
use crate::record::Unreadable;
use crate::record::number::read_count;

/// Numbers of devices, or changes of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct DeviceCounts {
    /// Devices that have a registration.
    pub(super) registered: i64,
    /// The others.
    pub(super) unregistered: i64,
}

impl DeviceCounts {
    /// Reads how many there are.
    pub(super) fn load(db: &Db) -> Result<Self, Fault> {
        let mut known = Self::default();
        for row in db.scan_prefix(counts()) {
            let (key, count) = row?;
            known.add(&key, read_count(&count)?)?;
        }
        Ok(known)
    }

    /// By how much a group changes them.
    pub(super) fn moved_by(rows: &Overlay<'_>) -> Result<Self, Fault> {
        let mut moved = Self::default();
        for (key, before, after) in rows.written(&counts())? {
            moved.add(&key, count_of(after)? - count_of(before)?)?;
        }
        Ok(moved)
    }

    fn add(&mut self, key: &[u8], count: i64) -> Result<(), Unreadable> {
        let flags = flags_counted(key).ok_or(Unreadable::Damaged("a count of devices"))?;
        if flags.is_registered() {
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
    use crate::record::device_flags::DeviceFlags;
    use crate::sled::key::device::counted;

    #[test]
    fn devices_are_summed_over_customers_and_moved_by_groups() {
        let db = sled::Config::new().temporary(true).open().unwrap();
        let registered = DeviceFlags::every().find(|it| it.is_registered()).unwrap();
        write(
            &db,
            &[
                ("a", DeviceFlags::NONE, 3),
                ("b", registered, 2),
                ("b", DeviceFlags::NONE, 1),
            ],
        );
        let known = DeviceCounts {
            registered: 2,
            unregistered: 4,
        };
        assert_eq!(DeviceCounts::load(&db).unwrap(), known);

        let moved = write(&db, &[("a", DeviceFlags::NONE, -3), ("a", registered, 2)]);
        let expected = DeviceCounts {
            registered: 2,
            unregistered: -3,
        };
        assert_eq!(moved, expected);
        let known = DeviceCounts {
            registered: 4,
            unregistered: 1,
        };
        assert_eq!(DeviceCounts::load(&db).unwrap(), known);
    }

    fn write(db: &Db, counts: &[(&str, DeviceFlags, i64)]) -> DeviceCounts {
        let mut rows = Overlay::new(db);
        for (customer, flags, delta) in counts {
            let customer = CustomerId::parse(customer).unwrap();
            rows.add(counted(&customer, *flags).into(), *delta).unwrap();
        }
        let moved = DeviceCounts::moved_by(&rows).unwrap();
        db.apply_batch(rows.into_batch()).unwrap();
        moved
    }
}
