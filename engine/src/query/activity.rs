//! How busy was a customer, minute by minute?

use crate::moment::Timestamp;

/// What was stored of a customer within a minute.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ActivityMinute {
    /// When the minute began.
    pub begun_at: Timestamp,
    /// Events: device data, changes of life cycles, errors and results.
    pub events: u64,
    /// Action requests that were created.
    pub requests: u64,
}

/// The minutes of one node, with those of the others added; a minute that it does not have itself
/// is left out.
pub fn merged(
    mut own: Vec<ActivityMinute>,
    others: impl IntoIterator<Item = ActivityMinute>,
) -> Vec<ActivityMinute> {
    for minute in others {
        let found = own.iter_mut().find(|it| it.begun_at == minute.begun_at);
        if let Some(found) = found {
            found.events = found.events.saturating_add(minute.events);
            found.requests = found.requests.saturating_add(minute.requests);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minutes_of_nodes_are_added() {
        let minute = |number: i64, events, requests| ActivityMinute {
            begun_at: Timestamp::from_ms(number * 60_000),
            events,
            requests,
        };
        let own = vec![minute(1, 5, 0), minute(2, 7, 1)];
        let others = [minute(0, 9, 9), minute(2, 1, 2), minute(2, 1, 0)];
        let all = merged(own, others);
        assert_eq!(all, [minute(1, 5, 0), minute(2, 9, 3)]);
    }
}
