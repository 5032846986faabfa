//! Which events did devices report shortly before the store was opened?
//!
//! A device that was not answered before the process ended repeats its message, and is recognised
//! by the id of the event that the message reported. The blocks of those events are read when the
//! store is opened, whether their numbers are in pages or not; the ids are in memory until no
//! device repeats any more.

use engine::delivery::backlog::{QueuedEvent, Sequence};
use engine::event::EventType;
use engine::ids::{DeviceKey, EventId};
use engine::limits::{RESTORED_EVENTS_MAX, RESTORED_EVENTS_MS};
use engine::moment::Timestamp;

use crate::record::block::BlockHead;

/// The events that devices reported last, by device.
#[derive(Default)]
pub(super) struct RecentEvents {
    /// The number that they are behind.
    after: Sequence,
    /// The time that they are not before.
    from: Timestamp,
    events: Vec<(DeviceKey, Sequence, EventId)>,
}

impl RecentEvents {
    /// None yet, of those up to the newest number that are recent at a time.
    pub(super) fn behind(newest: Sequence, now: Timestamp) -> Self {
        Self {
            after: Sequence(newest.0.saturating_sub(RESTORED_EVENTS_MAX)),
            from: now.plus_ms(-RESTORED_EVENTS_MS),
            events: Vec::new(),
        }
    }

    /// Whether a block may have some of them.
    pub(super) fn may_be_in(&self, block: &BlockHead) -> bool {
        block.last > self.after && block.newest_at >= self.from
    }

    /// Adds an event, if it is one of them.
    pub(super) fn record(&mut self, queued: &QueuedEvent) {
        let is_recent = queued.sequence > self.after && queued.event.made_at() >= self.from;
        if is_recent && queued.event_type == EventType::TelemetryData {
            let event = (queued.device, queued.sequence, queued.event);
            self.events.push(event);
        }
    }

    /// Sorts them by device, once all are there.
    pub(super) fn sort(&mut self) {
        self.events.sort_unstable();
        self.events.shrink_to_fit();
    }

    /// Those of a device, oldest first.
    pub(super) fn of(&self, device: DeviceKey) -> Vec<(Sequence, EventId)> {
        let first = self.events.partition_point(|event| event.0 < device);
        let rest = self.events.iter().skip(first);
        let its = rest.take_while(|event| event.0 == device);
        its.map(|(_, number, event)| (*number, *event)).collect()
    }

    /// Drops them all, if a new event has a time at which none of them is recent.
    pub(super) fn expire(&mut self, newest_at: Option<Timestamp>) {
        let until = self.from.plus_ms(2 * RESTORED_EVENTS_MS);
        if newest_at.is_some_and(|at| at > until) {
            self.events = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(device: u8, number: u64, at_ms: i64) -> QueuedEvent {
        QueuedEvent {
            sequence: Sequence(number),
            device: DeviceKey::from_bytes([device; 16]),
            event: EventId::first_at(Timestamp::from_ms(at_ms)),
            event_type: EventType::TelemetryData,
            lifecycle: None,
        }
    }

    #[test]
    fn recent_reports_are_kept_by_device_and_dropped_once_none_is_repeated() {
        let opened_at = 1_000_000;
        let now = Timestamp::from_ms(opened_at);
        let mut recent = RecentEvents::behind(Sequence(10), now);
        let from = opened_at - RESTORED_EVENTS_MS;
        let lifecycle = QueuedEvent {
            event_type: EventType::Lifecycle,
            ..queued(1, 4, opened_at)
        };
        let (first, second) = (queued(1, 2, from), queued(1, 5, opened_at));
        for event in [
            second,
            queued(2, 3, from),
            lifecycle,
            queued(1, 1, from - 1),
            first,
        ] {
            recent.record(&event);
        }
        recent.sort();
        let of = |recent: &RecentEvents, device| {
            let events = recent.of(DeviceKey::from_bytes([device; 16]));
            events
                .into_iter()
                .map(|(number, _)| number.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&recent, 1), [2, 5]);
        assert_eq!(of(&recent, 2), [3]);
        assert_eq!(of(&recent, 3), [0; 0]);
        recent.expire(None);
        recent.expire(Some(now.plus_ms(RESTORED_EVENTS_MS)));
        assert_eq!(of(&recent, 1), [2, 5]);
        recent.expire(Some(now.plus_ms(RESTORED_EVENTS_MS + 1)));
        assert_eq!(of(&recent, 1), [0; 0]);
    }

    #[test]
    fn the_oldest_of_too_many_are_left_out() {
        let newest = RESTORED_EVENTS_MAX + 3;
        let mut recent = RecentEvents::behind(Sequence(newest), Timestamp::from_ms(0));
        for number in [3, 4, newest] {
            recent.record(&queued(1, number, 0));
        }
        let kept = recent.of(DeviceKey::from_bytes([1; 16]));
        let kept: Vec<u64> = kept.into_iter().map(|(number, _)| number.0).collect();
        assert_eq!(kept, [4, newest]);
    }
}
