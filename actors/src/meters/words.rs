//! What are the metrics of an arbiter called? Their names, labels and descriptions.

use engine::action::{Method, Operation, Protocol, RequestKind, Status};
use engine::associations::handshake::HandshakeOutcome;
use engine::step_event::{
    ActionRef, ExchangeOutcome, ExchangePurpose, NotificationOutcome, UplinkKind,
};
use metrics::{Counter, counter, describe_counter, describe_gauge};

pub(super) const RECEIVED: &str = "signalbox_datagrams_received_total";
pub(super) const SENT: &str = "signalbox_datagrams_sent_total";
pub(super) const UNSENT: &str = "signalbox_datagrams_unsent_total";
pub(super) const FORWARDED: &str = "signalbox_datagrams_forwarded_total";
pub(super) const DROPPED: &str = "signalbox_datagrams_dropped_total";
pub(super) const HANDLED: &str = "signalbox_datagrams_handled_total";
pub(super) const BEGUN: &str = "signalbox_exchanges_begun_total";
pub(super) const RETRANSMITTED: &str = "signalbox_exchanges_retransmitted_total";
pub(super) const ACKNOWLEDGED: &str = "signalbox_exchanges_acknowledged_total";
pub(super) const ENDED: &str = "signalbox_exchanges_ended_total";
pub(super) const IN_FLIGHT: &str = "signalbox_exchanges_in_flight";
pub(super) const NOTIFIED: &str = "signalbox_notifications_total";
pub(super) const SENDS: &str = "signalbox_sends_total";
pub(super) const DATA: &str = "signalbox_data_total";
pub(super) const OBSERVATIONS_LOST: &str = "signalbox_observations_lost_total";
pub(super) const CREATED: &str = "signalbox_actions_created_total";
pub(super) const FINISHED_NAME: &str = "signalbox_actions_finished_total";
pub(super) const WAITING: &str = "signalbox_actions_waiting";
pub(super) const RESIDENT: &str = "signalbox_devices_resident";
pub(super) const RESTORED: &str = "signalbox_devices_restored_total";
pub(super) const RESTORE_PROGRESS: &str = "signalbox_restore_progress_ratio";
pub(super) const LOOKUPS: &str = "signalbox_registry_lookups";
pub(super) const HANDSHAKES: &str = "signalbox_dtls_handshakes_total";
pub(super) const HANDSHAKES_OPEN: &str = "signalbox_dtls_handshakes_in_progress";
pub(super) const SESSIONS: &str = "signalbox_dtls_sessions";
pub(super) const COOKIES: &str = "signalbox_dtls_cookies_sent_total";
pub(super) const ADDRESS_CHANGES: &str = "signalbox_dtls_address_changes_total";
pub(super) const RECORDS_DROPPED: &str = "signalbox_dtls_records_dropped_total";

/// The labels of the outcomes of handshakes, in the order of `HandshakeOutcome::ALL`.
pub(super) const HANDSHAKE_OUTCOMES: [&str; HandshakeOutcome::ALL.len()] = [
    "completed",
    "resumed",
    "unknown_identity",
    "wrong_key",
    "no_key",
    "revoked",
    "untrusted_certificate",
    "certificate_not_valid_now",
    "unusable_certificate",
    "ended_by_peer",
    "protocol_error",
    "failed",
    "timed_out",
    "evicted",
    "replaced",
    "store_unavailable",
];

/// The labels of the reasons for which records are dropped.
pub(super) const RECORD_DROPS: [&str; 4] = [
    "malformed",
    "not_authentic",
    "unknown_connection_id",
    "unexpected",
];

/// The labels of drop reasons.
pub(super) const DROP_REASONS: [&str; 16] = [
    "malformed",
    "unknown_option",
    "unknown_endpoint",
    "unknown_location",
    "unknown_peer",
    "unknown_address",
    "proxied",
    "unanswerable",
    "overloaded",
    "arbiter_overloaded",
    "queue_full",
    "over_rate_of_stranger",
    "over_rate_of_strangers",
    "over_rate_of_device",
    "over_rate_of_customer",
    "not_restored",
];

/// The protocols whose data is published as received.
const DATA_OVER: [Protocol; 2] = [Protocol::Coap, Protocol::Udp];

/// How many combinations of protocol and outcome there are.
pub(super) const DATA_SORTS: usize = DATA_OVER.len() * NOTIFICATION_OUTCOMES.len();

/// The kinds of requests, by protocol.
pub(super) const ASKED: [(Protocol, RequestKind); 20] = [
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Read)),
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Write)),
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Execute)),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::ObserveStart),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::ObserveEnd),
    ),
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Discover)),
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Create)),
    (Protocol::Lwm2m, RequestKind::Operation(Operation::Delete)),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::WriteAttributes),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::WriteInstance),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::ReadComposite),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::WriteComposite),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::ObserveCompositeStart),
    ),
    (
        Protocol::Lwm2m,
        RequestKind::Operation(Operation::ObserveCompositeEnd),
    ),
    (Protocol::Coap, RequestKind::Request(Method::Get)),
    (Protocol::Coap, RequestKind::Request(Method::Post)),
    (Protocol::Coap, RequestKind::Request(Method::Put)),
    (Protocol::Coap, RequestKind::Request(Method::Delete)),
    (Protocol::Coap, RequestKind::Request(Method::Patch)),
    (Protocol::Udp, RequestKind::Datagram),
];

/// The final statuses.
const FINAL: [Status; 3] = [Status::Succeeded, Status::Failed, Status::Cancelled];

/// How many combinations of kind and final status there are.
pub(super) const FINISHED: usize = ASKED.len() * FINAL.len();

// Tables and no derive on the types: they belong to the engine, and a label must not change with
// the name of a variant.
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

words!(heard, UPLINK_KINDS(UplinkKind) {
    Register = "register",
    Update = "update",
    Deregister = "deregister",
    Bootstrap = "bootstrap",
    Answer = "answer",
    Notification = "notification",
    Send = "send",
    CoapData = "coap_data",
    UdpData = "udp_data",
    BlockPart = "block",
    Unsolicited = "unsolicited",
    Ping = "ping",
    Unsupported = "unsupported",
    Repeated = "repeated",
});
words!(ending, EXCHANGE_OUTCOMES(ExchangeOutcome) {
    Success = "2.xx",
    ClientError = "4.xx",
    ServerError = "5.xx",
    Unusable = "unusable",
    Reset = "reset",
    NotAcknowledged = "not_acknowledged",
    NotAnswered = "not_answered",
    DeviceGone = "device_gone",
});
words!(news, NOTIFICATION_OUTCOMES(NotificationOutcome) {
    Published = "published",
    Stale = "stale",
    Unusable = "unusable",
    Excessive = "excessive",
    Empty = "empty",
});
words!(purpose, PURPOSES(ExchangePurpose) {
    Action = "action",
    Observation = "observation",
    Report = "report",
    Bootstrap = "bootstrap",
    FirmwareUpdate = "firmware",
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
    Discover = "discover",
    Create = "create",
    Delete = "delete",
    WriteAttributes = "write_attributes",
    WriteInstance = "write_instance",
    ReadComposite = "read_composite",
    WriteComposite = "write_composite",
    ObserveCompositeStart = "observe_composite_start",
    ObserveCompositeEnd = "observe_composite_end",
});
words!(status(Status) {
    Scheduled = "scheduled",
    InProgress = "in_progress",
    Succeeded = "succeeded",
    Failed = "failed",
    Cancelled = "cancelled",
});
words!(protocol(Protocol) { Udp = "udp", Coap = "coap", Lwm2m = "lwm2m" });

/// The label of a kind of request.
pub(crate) const fn task(task: RequestKind) -> &'static str {
    match task {
        RequestKind::Datagram => "datagram",
        RequestKind::Request(method) => self::method(method),
        RequestKind::Operation(operation) => self::operation(operation),
    }
}

/// The place of data among its counters; out of range if its protocol has none.
pub(super) fn place_of_data(over: Protocol, news: NotificationOutcome) -> usize {
    let place = DATA_OVER.iter().position(|it| *it == over);
    place.unwrap_or(DATA_OVER.len()) * NOTIFICATION_OUTCOMES.len() + news as usize
}

/// The counters of data.
pub(super) fn data(arbiter: &str) -> [Counter; DATA_SORTS] {
    std::array::from_fn(|place| {
        let over = protocol(DATA_OVER[place / NOTIFICATION_OUTCOMES.len()]);
        let outcome = NOTIFICATION_OUTCOMES[place % NOTIFICATION_OUTCOMES.len()];
        let arbiter = arbiter.to_owned();
        counter!(DATA, "arbiter" => arbiter, "protocol" => over, "outcome" => outcome)
    })
}

/// The place of a request in [`ASKED`].
pub(super) fn place_of(action: ActionRef) -> usize {
    let is_it = |it: &(Protocol, RequestKind)| *it == (action.protocol, action.task);
    ASKED.iter().position(is_it).unwrap_or(ASKED.len())
}

/// The place of a request's final status among all combinations.
pub(super) fn place_of_concluded(action: ActionRef, status: Status) -> usize {
    let place = FINAL.iter().position(|it| *it == status);
    place_of(action) * FINAL.len() + place.unwrap_or(FINISHED)
}

/// The counters of created requests.
pub(super) fn created(arbiter: &str) -> [Counter; ASKED.len()] {
    ASKED.map(|(by, to)| {
        let (by, to) = (protocol(by), task(to));
        let arbiter = arbiter.to_owned();
        counter!(CREATED, "arbiter" => arbiter, "protocol" => by, "operation" => to)
    })
}

/// The counters of requests that are final.
pub(super) fn concluded(arbiter: &str) -> [Counter; FINISHED] {
    std::array::from_fn(|place| {
        let (by, to) = ASKED[place / FINAL.len()];
        let is = status(FINAL[place % FINAL.len()]);
        counter!(
            FINISHED_NAME,
            "arbiter" => arbiter.to_owned(),
            "protocol" => protocol(by),
            "operation" => task(to),
            "status" => is,
        )
    })
}

/// Describes each metric.
pub(super) fn describe() {
    describe_datagrams();
    describe_exchanges();
    describe_actions();
    describe_gauge!(RESIDENT, "Devices in memory, by presence.");
    describe_counter!(RESTORED, "Devices to restore at the start.");
    describe_gauge!(
        RESTORE_PROGRESS,
        "Fraction of the arbiter's key range that is restored since the start; 1 when complete."
    );
    describe_gauge!(LOOKUPS, "Device lookups in the store in progress.");
    describe_dtls();
}

fn describe_dtls() {
    describe_counter!(HANDSHAKES, "DTLS handshakes ended, by outcome.");
    describe_gauge!(HANDSHAKES_OPEN, "DTLS handshakes in progress.");
    describe_gauge!(SESSIONS, "DTLS sessions.");
    describe_counter!(COOKIES, "DTLS hellos answered with a cookie.");
    describe_counter!(
        ADDRESS_CHANGES,
        "Changes of the address of a device that its DTLS session followed."
    );
    describe_counter!(RECORDS_DROPPED, "DTLS records dropped, by reason.");
}

fn describe_datagrams() {
    describe_counter!(
        RECEIVED,
        "Datagrams received by the arbiter, by CoAP type and code class."
    );
    describe_counter!(SENT, "Datagrams sent, by CoAP type and code class.");
    describe_counter!(UNSENT, "Datagrams the kernel did not accept for sending.");
    describe_counter!(
        FORWARDED,
        "Datagrams forwarded to the arbiter that owns the device."
    );
    describe_counter!(
        DROPPED,
        "Datagrams dropped or refused without a device, by reason."
    );
    describe_counter!(HANDLED, "Datagrams processed by their device, by kind.");
}

fn describe_exchanges() {
    describe_counter!(
        BEGUN,
        "Exchanges started, by purpose; those for an action are its attempts."
    );
    describe_counter!(RETRANSMITTED, "Retransmitted datagrams.");
    describe_counter!(
        ACKNOWLEDGED,
        "Exchanges with an empty acknowledgement before the response."
    );
    describe_counter!(ENDED, "Exchanges ended, by result.");
    describe_gauge!(IN_FLIGHT, "Exchanges in flight.");
    describe_counter!(NOTIFIED, "Notifications received, by result.");
    describe_counter!(SENDS, "Send operations of registered devices, by result.");
    describe_counter!(
        DATA,
        "Messages with plain CoAP or UDP data, by protocol and result."
    );
    describe_counter!(
        OBSERVATIONS_LOST,
        "Observations that ended without a request to end them."
    );
}

fn describe_actions() {
    describe_counter!(CREATED, "Action requests created.");
    describe_counter!(FINISHED_NAME, "Action requests that are final, by status.");
    describe_gauge!(WAITING, "Action requests that are not final, by status.");
}

#[cfg(test)]
mod tests {
    use engine::ids::ActionId;

    use super::*;

    #[test]
    fn each_request_has_a_place_and_each_final_status_another() {
        let mut places = Vec::new();
        for (protocol, task) in ASKED {
            let action = ActionId::from_bytes([0; 16]);
            let action = ActionRef {
                action,
                protocol,
                task,
            };
            assert!(place_of(action) < ASKED.len());
            places.extend(FINAL.map(|status| place_of_concluded(action, status)));
        }
        assert_eq!(places, (0..FINISHED).collect::<Vec<_>>());
    }

    #[test]
    fn each_sort_of_data_has_a_place() {
        let news = [
            NotificationOutcome::Published,
            NotificationOutcome::Stale,
            NotificationOutcome::Unusable,
            NotificationOutcome::Excessive,
            NotificationOutcome::Empty,
        ];
        let places = DATA_OVER.map(|over| news.map(|news| place_of_data(over, news)));
        let places: Vec<usize> = places.into_iter().flatten().collect();
        assert_eq!(places, (0..DATA_SORTS).collect::<Vec<_>>());
        assert!(place_of_data(Protocol::Lwm2m, NotificationOutcome::Published) >= DATA_SORTS);
    }
}
