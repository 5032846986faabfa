//! What does a device look like? For the document of the API.

use engine::action::Protocol;
use engine::device::record::ObservationState;
use engine::device::snapshot::Presence;
use engine::limits::{LIFETIME_S_MAX, VALUE_BYTES_MAX, VALUES_MAX};

use crate::api::action::described::action;
use crate::api::messages::described::{message, value};
use crate::api::openapi::{Schema, names};

/// A device as a list shows it.
pub(in crate::api) fn device() -> Schema {
    identity().named("Device")
}

/// A device as the inspector shows it.
pub(in crate::api) fn inspector() -> Schema {
    identity()
        .must("presence", presence(), "Where and when it was heard.")
        .must(
            "registration",
            registration().or_null(),
            "What it said when it registered; `null` where it is not registered.",
        )
        .must(
            "pendingActions",
            Schema::list(action()),
            "The requests that are not final, oldest first.",
        )
        .must(
            "observations",
            Schema::list(observation()),
            "What is observed of it, oldest first.",
        )
        .must(
            "values",
            Schema::list(known_value()),
            &format!(
                "The last known value of each resource, by path: {VALUES_MAX} at most. A resource \
                 whose last text or opaque value has more than {VALUE_BYTES_MAX} bytes is missing."
            ),
        )
        .must(
            "recentMessages",
            Schema::list(message()),
            "What it said and did lately, newest first.",
        )
        .named("InspectedDevice")
}

fn identity() -> Schema {
    let psk = Schema::object()
        .must(
            "identity",
            names::endpoint(),
            "What the device calls itself when it shows its key.",
        )
        .must("configured", Schema::truth(), "Whether it has a key.");
    Schema::object()
        .must("deviceId", names::device_id(), "What you call it.")
        .must(
            "number",
            Schema::count().example(80_063_993_375_475_u64),
            "What it is called where only numbers will do.",
        )
        .must("iccid", names::iccid(), "Its SIM.")
        .may("imsi", names::imsi(), "The subscriber of its SIM.")
        .may("msisdn", names::msisdn(), "Its telephone number.")
        .may("ip", names::ip(), "The address it is known by.")
        .must(
            "endpoint",
            names::endpoint(),
            "What it calls itself when it registers.",
        )
        .may("name", names::label(), "What people call it.")
        .must("psk", psk, "What may be told of its pre-shared key.")
        .must("created", names::instant(), "When it was made.")
}

fn observation() -> Schema {
    let state = "Whether the device knows of it (`HELD`), or forgot it and is asked again when it \
                 is next heard (`OWED`).";
    Schema::object()
        .must("path", path(), "What is observed.")
        .must("state", Schema::word::<ObservationState>(), state)
        .must("since", names::instant(), "When it began.")
        .must("requestId", Schema::uuid(), "The request that began it.")
        .named("Observation")
}

fn known_value() -> Schema {
    Schema::object()
        .must("path", path(), "Where the value is.")
        .must("value", value(), "The value.")
        .must(
            "type",
            Schema::text().example("FLOAT"),
            "The LwM2M data type of the value.",
        )
        .must("time", names::instant(), "When the device told it.")
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
            "Whether it is registered, and whether it listens now.",
        )
        .may(
            "firstRegistered",
            names::instant(),
            "When it was first heard, over whatever protocol.",
        )
        .may("lastSeen", names::instant(), "When it was last heard.")
        .may(
            "protocol",
            Schema::word::<Protocol>().example("LWM2M"),
            "How it was last heard.",
        )
        .may(
            "address",
            Schema::text().example("10.0.0.7:49152"),
            "Where it was last heard from.",
        )
        .named("Presence")
}

fn registration() -> Schema {
    let lifetime = Schema::whole(1..=u64::from(LIFETIME_S_MAX)).example(86_400_u64);
    let asked = Schema::whole(0..=u64::from(u32::MAX)).example(86_400_u64);
    Schema::object()
        .must("registered", names::instant(), "When it registered.")
        .must(
            "expires",
            names::instant(),
            "When the registration ends unless it is updated.",
        )
        .must("lifetime", lifetime, "Seconds that hold.")
        .may(
            "lifetimeAsked",
            asked,
            "Seconds the device asked for, where it asked for any.",
        )
        .must(
            "binding",
            Schema::text().example("UQ"),
            "Over what the device listens.",
        )
        .must("queueMode", Schema::truth(), "Whether it sleeps.")
        .must("version", Schema::text().example("1.1"), "Its LwM2M.")
        .may("smsNumber", Schema::text(), "Where it takes SMS.")
        .must("objects", Schema::list(object()), "What it offers.")
        .named("Registration")
}

fn object() -> Schema {
    let number = || Schema::whole(0..=u64::from(u16::MAX));
    Schema::object()
        .must(
            "id",
            number().example(3_303_u64),
            "The number of the object.",
        )
        .may(
            "version",
            Schema::text().example("1.1"),
            "Its version, where the device said one.",
        )
        .must(
            "instances",
            Schema::list(number().example(0_u64)),
            "The numbers of its instances.",
        )
        .named("OfferedObject")
}
