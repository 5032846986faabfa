//! Which properties does a device have? The OpenAPI schemas.

use engine::action::Protocol;
use engine::action::timeline::WaitReason;
use engine::device::record::ObservationState;
use engine::device::snapshot::Presence;
use engine::limits::{LIFETIME_S_MAX, OFFLINE_AFTER_S_MAX, VALUE_BYTES_MAX};
use engine::profile::SecurityRequirement;

use crate::api::action::described::pending;
use crate::api::bootstrap::described::bootstrap;
use crate::api::messages::described::{message, value};
use crate::api::openapi::{Schema, names};
use crate::api::public_key::described::PUBLIC_KEY;
use crate::api::sms::described::sms;
use crate::api::words::{ONLINE_WORDS, Word};

/// A device without its state.
pub(in crate::api) fn device() -> Schema {
    identity().named("Device")
}

/// A device in a list.
pub(in crate::api) fn listed_device() -> Schema {
    let why = "When and where the device was last seen, as it was last saved: `lastSeen` may be up \
               to an hour old, and with it the state of a device in queue mode.";
    identity()
        .must("presence", presence(), why)
        .named("ListedDevice")
}

/// A single device, as the device inspector returns it.
pub(in crate::api) fn inspector() -> Schema {
    identity()
        .must(
            "presence",
            presence(),
            "When and where the device was last seen.",
        )
        .must(
            "association",
            association().or_null(),
            "The DTLS session, or `null` if the device has none since the service started.",
        )
        .must(
            "registration",
            registration().or_null(),
            "The LwM2M registration, or `null` if the device is not registered.",
        )
        .must(
            "pendingActions",
            Schema::list(pending()),
            "The action requests that are not final, oldest first.",
        )
        .may(
            "exchange",
            exchange(),
            "The exchange in flight. Only one is in flight per device; everything else waits.",
        )
        .must(
            "observations",
            Schema::list(observation()),
            "The observations, oldest first.",
        )
        .must(
            "values",
            Schema::list(known_value()),
            &format!(
                "The last known value of each resource, sorted by path: at most \
                 {{{{last_values_max}}}}. String and opaque values longer than {VALUE_BYTES_MAX} \
                 bytes are left out."
            ),
        )
        .must(
            "recentMessages",
            Schema::list(message()),
            "The last 20 messages, newest first.",
        )
        .must(
            "recentSms",
            Schema::list(sms()),
            "The last 20 SMS, newest first.",
        )
        .may(
            "bootstrap",
            bootstrap(),
            "The last bootstrap, step by step; absent if the device never asked for one.",
        )
        .named("InspectedDevice")
}

const PREVIOUS_VALID: &str =
    "Whether the previous key is still valid: the new one was not used yet.";

fn identity() -> Schema {
    let psk = Schema::object()
        .must(
            "identity",
            names::endpoint(),
            "The PSK identity, or the name in the certificate.",
        )
        .must("configured", Schema::truth(), "Whether a key is set.")
        .may("created", names::instant(), "When the key was set.")
        .may("previousValid", Schema::truth(), PREVIOUS_VALID);
    let public_key = Schema::object()
        .must(
            "key",
            Schema::text().example(PUBLIC_KEY),
            "The SubjectPublicKeyInfo (DER) in base64.",
        )
        .must("created", names::instant(), "When the key was set.")
        .must("previousValid", Schema::truth(), PREVIOUS_VALID);
    Schema::object()
        .must("deviceId", names::device_id(), "The id of the device.")
        .must(
            "number",
            Schema::count().example(80_063_993_375_475_u64),
            "The numeric id of the device.",
        )
        .must("iccid", names::iccid(), "The ICCID of the SIM.")
        .may("imsi", names::imsi(), "The IMSI of the SIM.")
        .may("msisdn", names::msisdn(), "The phone number (MSISDN).")
        .may("ip", names::ip(), "The fixed IP address of the device.")
        .must("endpoint", names::endpoint(), "The LwM2M endpoint name.")
        .may("name", names::label(), "The display name.")
        .must(
            "psk",
            psk,
            "The pre-shared key. The key itself is never returned.",
        )
        .may("publicKey", public_key, "The raw public key.")
        .must("security", security(), SECURITY)
        .may("offlineAfter", offline_after(), OFFLINE_AFTER)
        .must("created", names::instant(), "The creation time.")
        .must("tags", names::tags(names::tag_text()), "The tags.")
}

/// How long a device may be silent.
pub(in crate::api) fn offline_after() -> Schema {
    Schema::whole(1..=OFFLINE_AFTER_S_MAX.into()).example(7_200_u64)
}

/// What the property says.
pub(in crate::api) const OFFLINE_AFTER: &str = concat!(
    "After how many seconds without a message the device is offline. Without it, that of the ",
    "customer applies (`/management-api/v1/presence`), and without that the lifetime of the ",
    "registration."
);

/// What a device is accepted over.
pub(in crate::api) fn security() -> Schema {
    let words = SecurityRequirement::WORDS.iter().map(|(word, _)| *word);
    Schema::one_of_words(words.collect()).example("ANY")
}

/// What the property says.
pub(in crate::api) const SECURITY: &str = concat!(
    "`DTLS`: the device is accepted over DTLS alone, and no request leaves without it. `ANY`: ",
    "with and without DTLS."
);

fn association() -> Schema {
    let kinds = Schema::one_of_words(vec!["PSK", "RPK", "X509"]);
    Schema::object()
        .must(
            "kind",
            kinds.example("PSK"),
            "What the device proved: `PSK` its pre-shared key, `RPK` its raw public key, `X509` a \
             certificate.",
        )
        .may("identity", names::endpoint(), "The PSK identity.")
        .must(
            "cipherSuite",
            Schema::text().example("TLS_PSK_WITH_AES_128_CCM_8"),
            "The cipher suite, as IANA names it.",
        )
        .must(
            "connectionId",
            Schema::truth(),
            "Whether the device has a Connection ID, so that it may change its address without a \
             handshake.",
        )
        .must(
            "resumed",
            Schema::truth(),
            "Whether the last handshake resumed an earlier session.",
        )
        .must(
            "lastHandshake",
            names::instant(),
            "When the last handshake ended.",
        )
        .must(
            "authenticated",
            names::instant(),
            "When the device last proved its key; earlier than `lastHandshake` if that resumed a \
             session.",
        )
        .must(
            "address",
            Schema::text().example("203.0.113.5:61000"),
            "The address and port of the device.",
        )
        .must(
            "addressChanges",
            Schema::count().example(3_u64),
            "How often the device changed its address since the last handshake.",
        )
        .named("Association")
}

fn exchange() -> Schema {
    let purposes = [
        WaitReason::Request,
        WaitReason::PassiveReporting,
        WaitReason::Observation,
        WaitReason::Notification,
        WaitReason::Bootstrap,
        WaitReason::FirmwareUpdate,
    ];
    let purposes = Schema::one_of_words(purposes.map(WaitReason::word).to_vec());
    Schema::object()
        .must(
            "purpose",
            purposes.example("PASSIVE_REPORTING"),
            "`REQUEST`: an action request. `PASSIVE_REPORTING`: a read for passive reporting. \
             `OBSERVATION`: an observation is renewed. `NOTIFICATION`: the further blocks of a \
             notification are requested. `BOOTSTRAP`: the device is being bootstrapped.",
        )
        .may("requestId", Schema::uuid(), "The action request.")
        .may("path", path(), "The observed path.")
        .must("since", names::instant(), "When the exchange began.")
        .named("Exchange")
}

fn observation() -> Schema {
    let state = "`HELD`: the observation is active on the device. `OWED`: the device lost the \
                 observation, or the rest of a notification in blocks is missing. Unless the rest \
                 arrives, the service starts the observation again after the next message from \
                 the device.";
    let request = "The request that started it.";
    Schema::object()
        .may(
            "path",
            path(),
            "The observed path; absent if several are observed at once.",
        )
        .may(
            "paths",
            Schema::list(path()),
            "The paths that are observed at once; `/` is everything.",
        )
        .may(
            "attributes",
            Schema::map(Schema::text().or_null()),
            "The conditions of its notifications, given at its start.",
        )
        .must("state", Schema::word::<ObservationState>(), state)
        .must("since", names::instant(), "The start of the observation.")
        .must("requestId", Schema::uuid(), request)
        .named("Observation")
}

fn known_value() -> Schema {
    Schema::object()
        .must("path", path(), "The path of the resource.")
        .must("value", value(), "The value.")
        .must(
            "type",
            Schema::text().example("FLOAT"),
            "The LwM2M data type of the value.",
        )
        .must("time", names::instant(), "The time of the value.")
        .named("KnownValue")
}

fn path() -> Schema {
    Schema::text().example("/3303/0/5700")
}

fn presence() -> Schema {
    Schema::object()
        .must(
            "state",
            Schema::word::<Presence>().example("ASLEEP"),
            "`UNREGISTERED`: the device has no LwM2M registration. `AWAKE`: it is registered and \
             reachable. `ASLEEP`: it is registered in queue mode and its awake window is over.",
        )
        .may(
            "connectivity",
            Schema::one_of_words(ONLINE_WORDS.to_vec()).example("ONLINE"),
            "`OFFLINE`: the device was silent for longer than its `offlineAfter` or, without one, \
             than the lifetime of its registration. Absent if nobody knows: the device was never \
             heard, or it has neither a registration nor an `offlineAfter`.",
        )
        .may(
            "firstRegistered",
            names::instant(),
            "The time of the first message from the device, over any protocol.",
        )
        .may(
            "lastSeen",
            names::instant(),
            "The time of the last message.",
        )
        .may(
            "protocol",
            Schema::word::<Protocol>().example("LWM2M"),
            "The protocol of the last message.",
        )
        .may(
            "address",
            Schema::text().example("10.0.0.7:49152"),
            "The source address and port of the last message.",
        )
        .named("Presence")
}

fn registration() -> Schema {
    let lifetime = Schema::whole(1..=u64::from(LIFETIME_S_MAX)).example(86_400_u64);
    let requested = Schema::whole(0..=u64::from(u32::MAX)).example(86_400_u64);
    Schema::object()
        .must(
            "registered",
            names::instant(),
            "The time of the registration.",
        )
        .must(
            "expires",
            names::instant(),
            "When the registration expires unless the device updates it.",
        )
        .must("lifetime", lifetime, "The effective lifetime, in seconds.")
        .may(
            "lifetimeAsked",
            requested,
            "The lifetime the device requested (`lt`), in seconds.",
        )
        .must(
            "binding",
            Schema::text().example("UQ"),
            "The binding (`b`).",
        )
        .must("queueMode", Schema::truth(), "Whether queue mode is used.")
        .must(
            "version",
            Schema::text().example("1.1"),
            "The LwM2M version.",
        )
        .may("smsNumber", Schema::text(), "The SMS number (`sms`).")
        .must("objects", Schema::list(object()), "The registered objects.")
        .named("Registration")
}

fn object() -> Schema {
    let number = || Schema::whole(0..=u64::from(u16::MAX));
    Schema::object()
        .must("id", number().example(3_303_u64), "The object id.")
        .may(
            "version",
            Schema::text().example("1.1"),
            "The object version, if the device registered one.",
        )
        .must(
            "instances",
            Schema::list(number().example(0_u64)),
            "The instance ids.",
        )
        .named("OfferedObject")
}
