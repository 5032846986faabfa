//! Which number encodes which choice? Numbers never change their meaning.

use engine::action::timeline::WaitReason;
use engine::action::{
    ContentEncoding, Method, Mode, Operation, PayloadType, Protocol, Status, WakeUp,
};
use engine::admin_log::entry::{Category, Subject};
use engine::bootstrap::{AccountSecurity, BootstrapOperation, BootstrapSecurity, BootstrapState};
use engine::delivery::destination::{BrokerCommands, DestinationState, JsonPayload, Replay};
use engine::device::queue::CancelRefusal;
use engine::device::record::{Connectivity, Logged, ObservationState, Wakefulness};
use engine::device::snapshot::Presence;
use engine::device::update::UpdateEnd;
use engine::event::{EventType, Lifecycle, PayloadKept};
use engine::firmware::campaign::CampaignState;
use engine::firmware::update::{DeliveryMethod, UpdateState, UpdateStep};
use engine::job::JobState;
use engine::peer::Transport;
use engine::profile::SecurityRequirement;
use engine::route::DeviceOperation;
use engine::schedule::SkipReason;
use engine::setting::{SettingName, SettingState};
use engine::sms::address::AddressType;
use engine::sms::{NetworkTask, SmsPurpose, SmsStatus};
use engine::supervision::Unserved;
use engine::{EnablerVersion, MqttVersion};

use super::Unreadable;

// A table and no derive on the types: they belong to the engine, which knows no format.
macro_rules! codes {
    ($of:ident, $from:ident, $type:ident { $($variant:ident = $code:literal),+ $(,)? }) => {
        #[doc = concat!("The number of this ", stringify!($type), ".")]
        pub(crate) fn $of(choice: $type) -> u8 {
            match choice {
                $($type::$variant => $code,)+
            }
        }

        #[doc = concat!("The ", stringify!($type), " of this number.")]
        pub(crate) fn $from(code: u8) -> Result<$type, Unreadable> {
            match code {
                $($code => Ok($type::$variant),)+
                _ => Err(Unreadable::Damaged(concat!("an unknown ", stringify!($type)))),
            }
        }
    };
}

codes!(of_status, status, Status {
    Scheduled = 1,
    InProgress = 2,
    Succeeded = 3,
    Failed = 4,
    Cancelled = 5,
});
codes!(of_mode, mode, Mode { SendNow = 1, SendWhenActive = 2 });
codes!(of_operation, operation, Operation {
    Read = 1,
    Write = 2,
    Execute = 3,
    ObserveStart = 4,
    ObserveEnd = 5,
    Discover = 6,
    Create = 7,
    Delete = 8,
    WriteAttributes = 9,
    WriteInstance = 10,
    ReadComposite = 11,
    WriteComposite = 12,
    ObserveCompositeStart = 13,
    ObserveCompositeEnd = 14,
});
codes!(of_method, method, Method { Get = 1, Post = 2, Put = 3, Delete = 4, Patch = 5 });
codes!(of_content_form, content_form, ContentEncoding { String = 1, Base64 = 2 });
codes!(of_transport, transport, Transport { Coap = 1, Udp = 2, Coaps = 3 });
codes!(of_security, security, SecurityRequirement { Any = 1, Dtls = 2 });
codes!(of_lifecycle, lifecycle, Lifecycle {
    Registered = 1,
    Deregistered = 2,
    Expired = 3,
    FirstContact = 4,
    Updated = 5,
    Offline = 6,
    Back = 7,
    Awake = 8,
    Asleep = 9,
    Bootstrapped = 10,
});
codes!(of_bootstrap_state, bootstrap_state, BootstrapState {
    Running = 1,
    Succeeded = 2,
    Failed = 3,
    Interrupted = 4,
});
codes!(of_bootstrap_security, bootstrap_security, BootstrapSecurity { NoSec = 1, Dtls = 2 });
codes!(of_account_security, account_security, AccountSecurity {
    NoSec = 1,
    Psk = 2,
    Rpk = 3,
    X509 = 4
});
codes!(of_bootstrap_operation, bootstrap_operation, BootstrapOperation {
    Delete = 1,
    Discover = 2,
    Write = 3,
    Finish = 4,
    Pack = 5,
});
codes!(of_event_type, event_type, EventType {
    TelemetryData = 1,
    Lifecycle = 2,
    Error = 3,
    ActionResult = 4,
    SmsReceived = 5,
    SmsReport = 6,
});
codes!(of_payload_kept, payload_kept, PayloadKept { No = 1, Yes = 2 });
codes!(of_wait_reason, wait_reason, WaitReason {
    Request = 1,
    PassiveReporting = 2,
    Observation = 3,
    Notification = 4,
    Asleep = 5,
    Unregistered = 6,
    Uplink = 7,
    NotBefore = 8,
    Bootstrap = 9,
    FirmwareUpdate = 10,
});
codes!(of_campaign_state, campaign_state, CampaignState {
    Running = 1,
    Paused = 2,
    Halted = 3,
    Done = 4,
    Cancelled = 5,
});
codes!(of_delivery_method, delivery_method, DeliveryMethod { Auto = 1, Pull = 2, Push = 3 });
codes!(of_update_state, update_state, UpdateState {
    Pending = 1,
    Transferring = 2,
    Downloaded = 3,
    Updating = 4,
    Succeeded = 5,
    Failed = 6,
    Skipped = 7,
});
codes!(of_update_step, update_step, UpdateStep {
    Offers = 1,
    Downloads = 2,
    Applies = 3,
    Installs = 4,
    Pushes = 5,
    Verifies = 6,
});
codes!(of_observation_state, observation_state, ObservationState { Held = 1, Owed = 2 });
codes!(of_protocol, protocol, Protocol { Udp = 1, Coap = 2, Lwm2m = 3 });
codes!(of_payload_type, payload_type, PayloadType { Text = 1, Base64 = 2 });
codes!(of_subject, subject, Subject { Device = 1, Lifecycle = 2, Integration = 3, General = 4 });
codes!(of_category, category, Category { Error = 1, Info = 2 });
codes!(of_skip_reason, skip_reason, SkipReason {
    NoDevice = 1,
    TooManyDevices = 2,
    FilterTooBroad = 3,
    RequestsOpen = 4,
});
codes!(of_enabler_version, enabler_version, EnablerVersion { V1_0 = 1, V1_1 = 2, V1_2 = 3 });
codes!(of_address_type, address_type, AddressType {
    International = 1,
    National = 2,
    Alphanumeric = 3,
});
codes!(of_network_task, network_task, NetworkTask { Send = 1, Withdraw = 2 });
codes!(of_sms_status, sms_status, SmsStatus {
    Pending = 1,
    InProgress = 2,
    Buffered = 3,
    Delivered = 4,
    Failed = 5,
    Expired = 6,
    Canceled = 7,
});
codes!(of_sms_purpose, sms_purpose, SmsPurpose { Message = 1, WakeUp = 2 });
codes!(of_wake_up, wake_up, WakeUp { Sms = 1 });
codes!(of_job_state, job_state, JobState { Running = 1, Done = 2, Cancelled = 3 });
codes!(of_cancel_refusal, cancel_refusal, CancelRefusal { NotPending = 1, NotScheduled = 2 });
codes!(of_update_end, update_end, UpdateEnd { Cancelled = 1, TimeOver = 2 });
codes!(of_presence, presence, Presence { Unregistered = 1, Awake = 2, Asleep = 3 });
codes!(of_device_operation, device_operation, DeviceOperation {
    Register = 1,
    Update = 2,
    Deregister = 3,
    Send = 4,
    Notify = 5,
    Data = 6,
    Bootstrap = 7,
    Handshake = 8,
    Unknown = 9,
});
codes!(of_unserved, unserved, Unserved { Unknown = 1, Busy = 2, Failed = 3 });
codes!(of_setting, setting, SettingName { Lwm2mPassiveReporting = 1 });
codes!(of_setting_state, setting_state, SettingState { Enabled = 1, Disabled = 2 });
codes!(of_destination_state, destination_state, DestinationState {
    RolledOut = 1,
    Active = 2,
    Failed = 3,
});
codes!(of_json_payload, json_payload, JsonPayload { AsText = 1, Parsed = 2 });
codes!(of_mqtt_version, mqtt_version, MqttVersion { V5 = 5, V3 = 3 });
codes!(of_broker_commands, broker_commands, BrokerCommands { Off = 1, On = 2 });
codes!(of_replay, replay, Replay { None = 1, UnderWay = 2 });
codes!(of_connectivity, connectivity, Connectivity { Unknown = 1, Online = 2, Offline = 3 });
codes!(of_wakefulness, wakefulness, Wakefulness { Unreported = 1, Awake = 2, Asleep = 3 });
codes!(of_logged, logged, Logged { No = 1, Yes = 2 });
