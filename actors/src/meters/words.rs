//! What are the figures of an arbiter called? Their names, their labels and what they say.

use engine::action::{Method, Operation, Protocol, Status, Task};
use engine::occurrence::{Asked, Ending, Heard, News, Purpose};
use metrics::{Counter, counter, describe_counter, describe_gauge};

pub(super) const RECEIVED: &str = "signalbox_datagrams_received_total";
pub(super) const SENT: &str = "signalbox_datagrams_sent_total";
pub(super) const UNSENT: &str = "signalbox_datagrams_unsent_total";
pub(super) const FORWARDED: &str = "signalbox_datagrams_forwarded_total";
pub(super) const TURNED_AWAY: &str = "signalbox_datagrams_turned_away_total";
pub(super) const HEARD: &str = "signalbox_datagrams_heard_total";
pub(super) const BEGUN: &str = "signalbox_exchanges_begun_total";
pub(super) const REPEATED: &str = "signalbox_exchanges_repeated_total";
pub(super) const ACKNOWLEDGED: &str = "signalbox_exchanges_acknowledged_total";
pub(super) const ENDED: &str = "signalbox_exchanges_ended_total";
pub(super) const IN_FLIGHT: &str = "signalbox_exchanges_in_flight";
pub(super) const NOTIFIED: &str = "signalbox_notifications_total";
pub(super) const SENDS: &str = "signalbox_sends_total";
pub(super) const DATA: &str = "signalbox_data_total";
pub(super) const OBSERVATIONS_LOST: &str = "signalbox_observations_lost_total";
pub(super) const CREATED: &str = "signalbox_actions_created_total";
pub(super) const CONCLUDED_NAME: &str = "signalbox_actions_concluded_total";
pub(super) const WAITING: &str = "signalbox_actions_waiting";
pub(super) const RESIDENT: &str = "signalbox_devices_resident";
pub(super) const RESTORED: &str = "signalbox_devices_restored_total";
pub(super) const RESTORE_PROGRESS: &str = "signalbox_restore_progress_ratio";
pub(super) const LOOKUPS: &str = "signalbox_registry_lookups";

/// What the fates of datagrams are called.
pub(super) const FATES: [&str; 11] = [
    "malformed",
    "unknown_option",
    "unknown_endpoint",
    "unknown_location",
    "unknown_peer",
    "unknown_address",
    "proxied",
    "unanswerable",
    "overloaded",
    "crowded",
    "no_place",
];

/// The protocols whose data is told as it came.
const DATA_OVER: [Protocol; 2] = [Protocol::Coap, Protocol::Udp];

/// How many sorts of such data there are.
pub(super) const DATA_SORTS: usize = DATA_OVER.len() * NEWS.len();

/// What can be asked of a device, and by which protocol.
pub(super) const ASKED: [(Protocol, Task); 11] = [
    (Protocol::Lwm2m, Task::Operation(Operation::Read)),
    (Protocol::Lwm2m, Task::Operation(Operation::Write)),
    (Protocol::Lwm2m, Task::Operation(Operation::Execute)),
    (Protocol::Lwm2m, Task::Operation(Operation::ObserveStart)),
    (Protocol::Lwm2m, Task::Operation(Operation::ObserveEnd)),
    (Protocol::Coap, Task::Request(Method::Get)),
    (Protocol::Coap, Task::Request(Method::Post)),
    (Protocol::Coap, Task::Request(Method::Put)),
    (Protocol::Coap, Task::Request(Method::Delete)),
    (Protocol::Coap, Task::Request(Method::Patch)),
    (Protocol::Udp, Task::Datagram),
];

/// The final statuses.
const FINAL: [Status; 3] = [Status::Succeeded, Status::Failed, Status::Cancelled];

/// What becomes of requests: they get a final status or go with their device.
const OUTCOMES: [&str; FINAL.len() + 1] = [
    status(FINAL[0]),
    status(FINAL[1]),
    status(FINAL[2]),
    "removed",
];

/// How many outcomes there are.
pub(super) const CONCLUDED: usize = ASKED.len() * OUTCOMES.len();

// Tables and no derive on the types: they are the engine's, and what a label says must not change
// with the name of a variant.
macro_rules! words {
    ($word:ident($type:ident) { $($variant:ident = $text:literal),+ $(,)? }) => {
        #[doc = concat!("The word for this ", stringify!($type), ".")]
        pub(crate) const fn $word(of: $type) -> &'static str {
            match of {
                $($type::$variant => $text,)+
            }
        }
    };
    ($word:ident, $words:ident($type:ident) { $($variant:ident = $text:literal),+ $(,)? }) => {
        words!($word($type) { $($variant = $text),+ });

        #[doc = concat!("The words for each ", stringify!($type), ", each in its place.")]
        pub(super) const $words: [&str; [$($text),+].len()] = {
            let mut words = [""; [$($text),+].len()];
            $(words[$type::$variant as usize] = $word($type::$variant);)+
            words
        };
    };
}

words!(heard, MEANINGS(Heard) {
    Register = "register",
    Update = "update",
    Deregister = "deregister",
    Answer = "answer",
    Notification = "notification",
    Send = "send",
    CoapData = "coap_data",
    UdpData = "udp_data",
    Part = "part",
    Unasked = "unasked",
    Ping = "ping",
    Unsupported = "unsupported",
    Repeated = "repeated",
});
words!(ending, ENDINGS(Ending) {
    Success = "2.xx",
    ClientError = "4.xx",
    ServerError = "5.xx",
    Unusable = "unusable",
    Reset = "reset",
    NotAcknowledged = "not_acknowledged",
    NotAnswered = "not_answered",
    DeviceGone = "device_gone",
});
words!(news, NEWS(News) {
    Told = "told",
    Stale = "stale",
    Unusable = "unusable",
    Excessive = "excessive",
    Empty = "empty",
});
words!(purpose, PURPOSES(Purpose) {
    Action = "action",
    Observation = "observation",
    Report = "report",
});
words!(method(Method) {
    Get = "GET",
    Post = "POST",
    Put = "PUT",
    Delete = "DELETE",
    Patch = "PATCH",
});
words!(operation(Operation) {
    Read = "read",
    Write = "write",
    Execute = "execute",
    ObserveStart = "observe_start",
    ObserveEnd = "observe_end",
});
words!(status(Status) {
    Scheduled = "scheduled",
    InProgress = "in_progress",
    Succeeded = "succeeded",
    Failed = "failed",
    Cancelled = "cancelled",
});
words!(protocol(Protocol) { Udp = "udp", Coap = "coap", Lwm2m = "lwm2m" });

/// What is asked of a device.
pub(crate) const fn task(task: Task) -> &'static str {
    match task {
        Task::Datagram => "datagram",
        Task::Request(method) => self::method(method),
        Task::Operation(operation) => self::operation(operation),
    }
}

/// Where data stands among all sorts of it; nowhere if its protocol has none.
pub(super) fn place_of_data(over: Protocol, news: News) -> usize {
    let place = DATA_OVER.iter().position(|it| *it == over);
    place.unwrap_or(DATA_OVER.len()) * NEWS.len() + news as usize
}

/// The figures of data.
pub(super) fn data(arbiter: &str) -> [Counter; DATA_SORTS] {
    std::array::from_fn(|place| {
        let over = protocol(DATA_OVER[place / NEWS.len()]);
        let fate = NEWS[place % NEWS.len()];
        let arbiter = arbiter.to_owned();
        counter!(DATA, "arbiter" => arbiter, "protocol" => over, "fate" => fate)
    })
}

/// Where a request stands among [`ASKED`].
pub(super) fn place_of(asked: Asked) -> usize {
    let is_it = |it: &(Protocol, Task)| *it == (asked.protocol, asked.task);
    ASKED.iter().position(is_it).unwrap_or(ASKED.len())
}

/// Where the outcome of a request stands among all of them.
pub(super) fn place_of_concluded(asked: Asked, status: Status) -> usize {
    let place = FINAL.iter().position(|it| *it == status);
    place_of(asked) * OUTCOMES.len() + place.unwrap_or(CONCLUDED)
}

/// Where a request that went with its device stands among all outcomes.
pub(super) fn place_of_removed(asked: Asked) -> usize {
    place_of(asked) * OUTCOMES.len() + FINAL.len()
}

/// The figures of requests that are created.
pub(super) fn created(arbiter: &str) -> [Counter; ASKED.len()] {
    ASKED.map(|(by, to)| {
        let (by, to) = (protocol(by), task(to));
        let arbiter = arbiter.to_owned();
        counter!(CREATED, "arbiter" => arbiter, "protocol" => by, "operation" => to)
    })
}

/// The figures of requests that are final or removed.
pub(super) fn concluded(arbiter: &str) -> [Counter; CONCLUDED] {
    std::array::from_fn(|place| {
        let (by, to) = ASKED[place / OUTCOMES.len()];
        let is = OUTCOMES[place % OUTCOMES.len()];
        counter!(
            CONCLUDED_NAME,
            "arbiter" => arbiter.to_owned(),
            "protocol" => protocol(by),
            "operation" => task(to),
            "status" => is,
        )
    })
}

/// Says what each figure is.
pub(super) fn describe() {
    describe_datagrams();
    describe_exchanges();
    describe_actions();
    describe_gauge!(
        RESIDENT,
        "Devices in memory, by whether they listen: registered, or with something to do."
    );
    describe_counter!(RESTORED, "Devices the start found to bring back.");
    describe_gauge!(
        RESTORE_PROGRESS,
        "Part of the keys of the arbiter whose devices are back since the start; 1 when all are."
    );
    describe_gauge!(
        LOOKUPS,
        "Lookups of devices in the store that are under way."
    );
}

fn describe_datagrams() {
    describe_counter!(
        RECEIVED,
        "Datagrams taken from the sockets of the arbiter, by CoAP type and class of code."
    );
    describe_counter!(
        SENT,
        "Datagrams the kernel took to send, by CoAP type and class of code."
    );
    describe_counter!(
        UNSENT,
        "Datagrams the kernel did not take and that were lost."
    );
    describe_counter!(
        FORWARDED,
        "Datagrams handed to the arbiter their device is at home at."
    );
    describe_counter!(
        TURNED_AWAY,
        "Datagrams that reached no device, by what became of them."
    );
    describe_counter!(
        HEARD,
        "Datagrams that reached their device, by what they were taken for."
    );
}

fn describe_exchanges() {
    describe_counter!(
        BEGUN,
        "Exchanges begun with devices; those for an action are attempts at one."
    );
    describe_counter!(REPEATED, "Datagrams of exchanges that left once more.");
    describe_counter!(
        ACKNOWLEDGED,
        "Exchanges acknowledged before they were answered."
    );
    describe_counter!(ENDED, "Exchanges that are over, by how they ended.");
    describe_gauge!(IN_FLIGHT, "Exchanges in flight.");
    describe_counter!(
        NOTIFIED,
        "Notifications of observed paths, by what they were worth."
    );
    describe_counter!(
        SENDS,
        "Sends of devices that are registered, by what they were worth."
    );
    describe_counter!(
        DATA,
        "Data of devices over plain CoAP or bare UDP, by what it was worth."
    );
    describe_counter!(
        OBSERVATIONS_LOST,
        "Observations that ended though nobody asked for it."
    );
}

fn describe_actions() {
    describe_counter!(CREATED, "Action requests created.");
    describe_counter!(
        CONCLUDED_NAME,
        "Action requests that are final or went with their device, by what became of them."
    );
    describe_gauge!(
        WAITING,
        "Action requests that are not final, by their status."
    );
}

#[cfg(test)]
mod tests {
    use engine::ids::ActionId;

    use super::*;

    #[test]
    fn each_request_has_a_place_and_each_outcome_another() {
        let mut places = Vec::new();
        for (protocol, task) in ASKED {
            let action = ActionId::from_bytes([0; 16]);
            let asked = Asked {
                action,
                protocol,
                task,
            };
            assert!(place_of(asked) < ASKED.len());
            places.extend(FINAL.map(|status| place_of_concluded(asked, status)));
            places.push(place_of_removed(asked));
        }
        assert_eq!(places, (0..CONCLUDED).collect::<Vec<_>>());
    }

    #[test]
    fn each_sort_of_data_has_a_place() {
        let news = [
            News::Told,
            News::Stale,
            News::Unusable,
            News::Excessive,
            News::Empty,
        ];
        let places = DATA_OVER.map(|over| news.map(|news| place_of_data(over, news)));
        let places: Vec<usize> = places.into_iter().flatten().collect();
        assert_eq!(places, (0..DATA_SORTS).collect::<Vec<_>>());
        assert!(place_of_data(Protocol::Lwm2m, News::Told) >= DATA_SORTS);
    }
}
