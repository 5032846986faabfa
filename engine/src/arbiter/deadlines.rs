//! When is the next device due? One lazy queue of deadlines for all devices of an arbiter.
//!
//! A device has one deadline here: the one it is armed for. If the deadline of the machine moves
//! later, the old one fires early and the device is then armed again, so a registration update
//! costs nothing here. If it moves earlier, it replaces the old one.

use std::collections::BTreeSet;

use crate::ids::DeviceKey;
use crate::moment::Timestamp;

/// The deadlines of the devices of an arbiter.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    due: BTreeSet<(Timestamp, DeviceKey)>,
}

impl Deadlines {
    /// Adds the deadline of a device.
    pub(super) fn arm(&mut self, at: Timestamp, device: DeviceKey) {
        self.due.insert((at, device));
    }

    /// Removes the deadline of a device.
    pub(super) fn disarm(&mut self, at: Timestamp, device: DeviceKey) {
        self.due.remove(&(at, device));
    }

    /// Removes and returns a device that is due.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<DeviceKey> {
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        self.due.pop_first().map(|(_, device)| device)
    }

    /// When the next device is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes every deadline.
    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::ids::{CustomerId, DeviceId};

    use super::*;

    #[test]
    fn devices_are_taken_in_the_order_they_are_due_and_not_before() {
        let mut deadlines = Deadlines::default();
        let (early, late) = (device("early"), device("late"));
        deadlines.arm(Timestamp::from_ms(20), late);
        deadlines.arm(Timestamp::from_ms(10), early);
        assert_eq!(deadlines.next(), Some(Timestamp::from_ms(10)));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(9)), None);
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(early));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(late));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), None);
    }

    #[test]
    fn a_device_that_was_disarmed_is_not_due() {
        let mut deadlines = Deadlines::default();
        let meter = device("meter");
        deadlines.arm(Timestamp::from_ms(10), meter);
        deadlines.disarm(Timestamp::from_ms(10), meter);
        deadlines.arm(Timestamp::from_ms(5), meter);
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), Some(meter));
        assert_eq!(deadlines.take_due(Timestamp::from_ms(30)), None);
    }

    fn device(name: &str) -> DeviceKey {
        let customer = CustomerId::parse("acme").unwrap();
        DeviceKey::of(&customer, &DeviceId::parse(name).unwrap())
    }
}
