//! How does the API spell its words? All of them are here, except those that webhook events share.

use engine::EnablerVersion;
use engine::action::timeline::WaitReason;
use engine::action::{
    ContentEncoding, Method, Mode, Operation, PayloadType, Protocol, Status, WakeUp,
};
use engine::admin_log::entry::{Category, Subject};
use engine::bootstrap::{AccountSecurity, BootstrapOperation, BootstrapSecurity, BootstrapState};
use engine::customer::{ApiClient, ClientOwner, Scope, Scopes};
use engine::delivery::body::words as spelled;
use engine::delivery::destination::DestinationState;
use engine::device::record::ObservationState;
use engine::device::snapshot::Presence;
use engine::directory::psk::PskFormat;
use engine::event::{EventType, Lifecycle};
use engine::firmware::campaign::CampaignState;
use engine::firmware::update::{DeliveryMethod, UpdateState};
use engine::job::{JobDeviceStatus, JobState};
use engine::node::NodeState;
use engine::profile::SecurityRequirement;
use engine::query::ActionOrder;
use engine::route::DeviceOperation;
use engine::schedule::{ScheduleState, SkipReason};
use engine::setting::{SettingName, SettingState};
use engine::sms::{ReportedStatus, SmsStatus};
use engine::wake_up::WakeUpKind;

/// A type with words in the API.
pub(super) trait Word: Copy + Sized + 'static {
    /// Every word with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for the value.
    fn word(self) -> &'static str;

    /// The value of a word; the error lists the known words.
    fn read(text: &str) -> Result<Self, String> {
        Self::known(text).ok_or_else(|| {
            let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| *word).collect();
            format!("must be one of {}", words.join(", "))
        })
    }

    /// The value of a word, if the word is known.
    fn known(text: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter();
        words
            .find(|(word, _)| *word == text)
            .map(|(_, meaning)| *meaning)
    }
}

// A table instead of a derive: the types are the engine's, which does not know the spelling of the
// API, and a word must not change with the name of a variant.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:expr),+ $(,)? }) => {
        impl Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
    ($type:ident { $($variant:ident),+ } as $spelled:path) => {
        words!($type { $($variant = $spelled($type::$variant)),+ });
    };
}

words!(Protocol { Udp, Coap, Lwm2m } as spelled::protocol);
words!(Status {
    Scheduled,
    InProgress,
    Succeeded,
    Failed,
    Cancelled
} as spelled::status);
words!(NodeState { Active = "ACTIVE", Standby = "STANDBY", Draining = "DRAINING", Lost = "LOST" });
words!(Mode { SendNow = "SEND_NOW", SendWhenActive = "SEND_WHEN_ACTIVE" });
words!(WakeUp { Sms = "SMS" });
words!(WakeUpKind {
    Text = "TEXT",
    Data = "DATA",
    RegistrationUpdateTrigger = "REGISTRATION_UPDATE_TRIGGER",
});
words!(Operation {
    Read = "read",
    Write = "write",
    Execute = "execute",
    ObserveStart = "observe-start",
    ObserveEnd = "observe-end",
    Discover = "discover",
    Create = "create",
    Delete = "delete",
    WriteAttributes = "write-attributes",
    WriteInstance = "write-instance",
    ReadComposite = "read-composite",
    WriteComposite = "write-composite",
    ObserveCompositeStart = "observe-composite-start",
    ObserveCompositeEnd = "observe-composite-end",
});
words!(Method { Get = "GET", Post = "POST", Put = "PUT", Delete = "DELETE", Patch = "PATCH" });
words!(ContentEncoding { String = "STRING", Base64 = "BASE64" });
words!(WaitReason {
    Request = "REQUEST",
    PassiveReporting = "PASSIVE_REPORTING",
    Observation = "OBSERVATION",
    Notification = "NOTIFICATION",
    Bootstrap = "BOOTSTRAP",
    Asleep = "ASLEEP",
    Unregistered = "UNREGISTERED",
    Uplink = "UPLINK",
    NotBefore = "NOT_BEFORE",
    FirmwareUpdate = "FIRMWARE_UPDATE",
});
words!(AccountSecurity {
    NoSec = "NOSEC",
    Psk = "PSK",
    Rpk = "RPK",
    X509 = "X509"
});
words!(BootstrapSecurity { NoSec = "NOSEC", Dtls = "DTLS" });
words!(BootstrapState {
    Running = "RUNNING",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    Interrupted = "INTERRUPTED",
});
words!(BootstrapOperation {
    Delete = "DELETE",
    Discover = "DISCOVER",
    Write = "WRITE",
    Finish = "FINISH",
    Pack = "PACK",
});
words!(ObservationState { Held = "HELD", Owed = "OWED" });
words!(Lifecycle {
    FirstContact,
    Registered,
    Updated,
    Deregistered,
    Expired,
    Offline,
    Back,
    Awake,
    Asleep,
    Bootstrapped
} as spelled::lifecycle);
words!(EventType {
    TelemetryData,
    Lifecycle,
    Error,
    ActionResult,
    SmsReceived,
    SmsReport
} as spelled::event_type);
words!(ReportedStatus {
    Buffered = "BUFFERED",
    Delivered = "DELIVERED",
    Failed = "FAILED",
    Expired = "EXPIRED",
});
words!(SmsStatus {
    Pending,
    InProgress,
    Buffered,
    Delivered,
    Failed,
    Expired,
    Canceled
} as spelled::sms_status);
words!(DestinationState {
    RolledOut = "ROLLOUT_DONE",
    Active = "INTEGRATION_ACTIVE",
    Failed = "INTEGRATION_FAILED",
});
words!(ActionOrder {
    Created = "created",
    CreatedDescending = "-created",
    Updated = "updated",
    UpdatedDescending = "-updated",
});
words!(JobState { Running = "RUNNING", Done = "DONE", Cancelled = "CANCELLED" });
words!(CampaignState {
    Running = "RUNNING",
    Paused = "PAUSED",
    Halted = "HALTED",
    Done = "DONE",
    Cancelled = "CANCELLED",
});
words!(DeliveryMethod { Auto = "AUTO", Pull = "PULL", Push = "PUSH" });
words!(UpdateState {
    Pending = "PENDING",
    Transferring = "TRANSFERRING",
    Downloaded = "DOWNLOADED",
    Updating = "UPDATING",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    Skipped = "SKIPPED",
});
words!(ScheduleState { Active = "ACTIVE", Paused = "PAUSED", Ended = "ENDED" });
words!(SkipReason {
    NoDevice = "NO_DEVICE",
    TooManyDevices = "TOO_MANY_DEVICES",
    FilterTooBroad = "TOO_BROAD",
    RequestsOpen = "REQUESTS_OPEN",
});
words!(JobDeviceStatus {
    Pending = "PENDING",
    Accepted = "ACCEPTED",
    Rejected = "REJECTED",
    Cancelled = "CANCELLED",
});
words!(PayloadType { Text, Base64 } as spelled::payload_type);
words!(Category { Error = "error", Info = "info" });
words!(Subject {
    Device = "DEVICE",
    Lifecycle = "LIFECYCLE",
    Integration = "INTEGRATION",
    General = "GENERAL",
});
words!(EnablerVersion { V1_0 = "1.0", V1_1 = "1.1", V1_2 = "1.2" });
words!(Presence { Unregistered = "UNREGISTERED", Awake = "AWAKE", Asleep = "ASLEEP" });
words!(DeviceOperation {
    Register = "REGISTER",
    Update = "UPDATE",
    Deregister = "DEREGISTER",
    Send = "SEND",
    Notify = "NOTIFY",
    Data = "DATA",
    Bootstrap = "BOOTSTRAP",
    Handshake = "HANDSHAKE",
    Unknown = "OTHER",
});
words!(PskFormat { Text = "STRING", Hex = "HEX" });
words!(SettingName { Lwm2mPassiveReporting = "LWM2M_PASSIVE_REPORTING" });
words!(SecurityRequirement { Any = "ANY", Dtls = "DTLS" });
words!(SettingState { Enabled = "ENABLED", Disabled = "DISABLED" });
words!(Scope {
    ActionsRead = "actions:read",
    ActionsWrite = "actions:write",
    LogsRead = "logs:read",
    SettingsRead = "settings:read",
    SettingsWrite = "settings:write",
    IntegrationsRead = "integrations:read",
    IntegrationsWrite = "integrations:write",
    PluginsRead = "plugins:read",
    PluginsWrite = "plugins:write",
    SmsRead = "sms:read",
    SmsWrite = "sms:write",
    DevicesRead = "devices:read",
    DevicesWrite = "devices:write",
});

/// The state of a plugin: that of any destination, in words of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PluginStatus(pub(super) DestinationState);

impl Word for PluginStatus {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("INSTALLED", Self(DestinationState::RolledOut)),
        ("ACTIVE", Self(DestinationState::Active)),
        ("FAILED", Self(DestinationState::Failed)),
    ];

    fn word(self) -> &'static str {
        match self.0 {
            DestinationState::RolledOut => "INSTALLED",
            DestinationState::Active => "ACTIVE",
            DestinationState::Failed => "FAILED",
        }
    }
}

/// The word for what an API client of the network may do.
pub(super) const NETWORK_SCOPE: &str = "network";

/// The word for all scopes, including future ones.
const EVERY_SCOPE: &str = "all";

/// The scopes of a list of words.
pub(crate) fn read_scopes(words: &[String]) -> Result<Scopes, String> {
    if words.is_empty() {
        return Err("must have at least one item".to_owned());
    }
    words
        .iter()
        .try_fold(Scopes::NONE, |scopes, word| match word.as_str() {
            EVERY_SCOPE => Ok(Scopes::ALL),
            word => Scope::read(word)
                .map(|scope| scopes.with(scope))
                .map_err(|why| format!("{word:?} {why}, {EVERY_SCOPE}")),
        })
}

/// Every word for a scope.
pub(super) fn every_scope_word() -> Vec<&'static str> {
    let words = Scope::WORDS.iter().map(|(word, _)| *word);
    words.chain([EVERY_SCOPE]).collect()
}

/// The words for a set of scopes.
pub(super) fn scope_words(scopes: Scopes) -> Vec<&'static str> {
    if scopes == Scopes::ALL {
        return vec![EVERY_SCOPE];
    }
    Scope::ALL
        .into_iter()
        .filter(|scope| scopes.has(*scope))
        .map(Scope::word)
        .collect()
}

/// The words for what a token with these scopes of an API client may do.
pub(super) fn scope_words_of(client: &ApiClient, scopes: Scopes) -> Vec<&'static str> {
    match client.owner {
        ClientOwner::Customer(_) => scope_words(scopes),
        ClientOwner::Network => vec![NETWORK_SCOPE],
    }
}

/// The words for whether a device is online.
pub(super) const ONLINE_WORDS: [&str; 2] = [ONLINE, OFFLINE];

const ONLINE: &str = "ONLINE";

/// The device was silent for too long.
const OFFLINE: &str = "OFFLINE";

/// The word for whether a device is online.
pub(super) fn online_word(is_online: bool) -> &'static str {
    if is_online { ONLINE } else { OFFLINE }
}

/// Whether a word says that a device is online.
pub(super) fn read_online(text: &str) -> Result<bool, String> {
    match text {
        ONLINE => Ok(true),
        OFFLINE => Ok(false),
        _ => Err(format!("must be one of {}", ONLINE_WORDS.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_one_value() {
        check::<Protocol>();
        check::<Status>();
        check::<ActionOrder>();
        check::<Scope>();
        check::<SettingName>();
        check::<SecurityRequirement>();
        check::<SettingState>();
        check::<Mode>();
        check::<WakeUp>();
        check::<WakeUpKind>();
        check::<Operation>();
        check::<Method>();
        check::<ContentEncoding>();
        check::<ObservationState>();
        check::<WaitReason>();
        check::<Lifecycle>();
        check::<EventType>();
        check::<DestinationState>();
        check::<PluginStatus>();
        check::<PayloadType>();
        check::<PskFormat>();
        check::<Presence>();
        check::<DeviceOperation>();
        check::<Subject>();
        check::<Category>();
    }

    #[test]
    fn the_error_of_an_unknown_word_lists_the_known_ones() {
        assert_eq!(
            Protocol::read("udp"),
            Err("must be one of UDP, COAP, LWM2M".to_owned())
        );
    }

    #[test]
    fn scopes_survive_printing_and_parsing() {
        let some = ["actions:read".to_owned(), "devices:write".to_owned()];
        assert_eq!(scope_words(read_scopes(&some).unwrap()), some);
        let with_all = ["logs:read".to_owned(), "all".to_owned()];
        assert_eq!(read_scopes(&with_all), Ok(Scopes::ALL));
        assert_eq!(scope_words(Scopes::ALL), ["all"]);
        assert!(read_scopes(&["logs:write".to_owned()]).is_err());
        assert!(
            read_scopes(&[]).is_err(),
            "who may do nothing needs no secret"
        );
    }

    fn check<T: Word + std::fmt::Debug + PartialEq>() {
        for (word, case) in T::WORDS {
            assert_eq!(case.word(), *word);
            assert_eq!(T::read(word), Ok(*case));
        }
    }
}
