//! Which operations create, read, update and delete devices? The OpenAPI descriptions.

use engine::EnablerVersion;
use engine::action::Protocol;
use engine::ids::Endpoint;
use engine::limits::{
    DEVICES_EXAMINED_MAX, FILTER_TAGS_MAX, NAMES_SEARCHED_MAX, RECORDS_EXAMINED_MAX,
};

use super::filter::{FIRMWARE_CHARACTERS_MAX, PREFIX_CHARACTERS_MAX};
use crate::api::device::described::{
    OFFLINE_AFTER, SECURITY, device, inspector, listed_device, offline_after, security,
};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};
use crate::api::psk::described::device_key;
use crate::api::public_key::described::{PUBLIC_KEY_IS, public_key_text};
use crate::api::words::ONLINE_WORDS;

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "Give a `deviceId`, an `iccid` or both: each defaults to the other. `endpoint` is \
                the endpoint name of an LwM2M device and defaults to the `deviceId`.\n\nA \
                registration without DTLS is accepted only from the `ip` of the device, unless \
                the operator trusts endpoint names. A device that sends plain CoAP or UDP is \
                identified by its `ip` alone, so no other device may have the same `ip`.";
    ApiOperation::new("createDevice", Tag::Devices, "Create a device")
        .description(text)
        .json(new_device(), "The device to create.")
        .answer(201, device(), "The created device.")
        .answer_header(201, "Location", Schema::text(), "The path of the device.")
        .leads_to(
            201,
            &[
                "getDevice",
                "setDeviceKey",
                "generateDeviceKey",
                "deleteDeviceKey",
                "setDevicePublicKey",
                "deleteDevicePublicKey",
                "createUdpAction",
                "createCoapAction",
                "createLwm2mAction",
                "cancelActions",
            ],
            &[("device", "$response.body#/deviceId")],
        )
        .once(
            &["DEVICE_EXISTS", "ADDRESS_IN_USE"],
            "`DEVICE_EXISTS`: another device has the same identifier. `ADDRESS_IN_USE`: a device \
             of another customer has the same address. `field` names the property.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let text = format!(
        "Returns the devices of the customer that match all filters, sorted by `deviceId`.\n\n\
         `q` is a case-sensitive prefix of `deviceId`, `iccid`, `imsi`, `msisdn` or `endpoint`: \
         `Meter` does not find `meter-7`. If each `tag`, and `registered` with `protocol`, match \
         more than {NAMES_SEARCHED_MAX} devices and `q` matches more than {NAMES_SEARCHED_MAX} \
         identifiers in the whole service, the response is 400 `TOO_BROAD`. Use a longer \
         prefix.\n\nWithout `cursor`, `total` is exact for a single `tag`, for `registered` and \
         `protocol`, and for a search with `q`. Any other list examines at most \
         {DEVICES_EXAMINED_MAX} devices, and {RECORDS_EXAMINED_MAX} with `version`, `object`, \
         `lastSeenBefore`, `lastSeenAfter`, `connectivity` or `firmware`. If more are left, \
         `totalIsExact` is `false`, and `total` and `pageAmount` count what was found among those. \
         Call again with `nextCursor` as `cursor` to continue behind them: `page` and `total` then \
         count from there, and a page may be empty although the list continues. To read a long \
         list, follow `nextCursor` instead of counting pages.\n\n`lastSeenBefore` and \
         `lastSeenAfter` compare with the time that was saved last: while nothing else about a \
         device changes, it is saved once an hour."
    );
    let operation = ApiOperation::new("listDevices", Tag::Devices, "List devices");
    let operation = operation.description(text).faults(&["TOO_BROAD"]);
    let query = |operation: ApiOperation, (name, schema, why)| operation.query(name, schema, why);
    let operation = conditions(tags()).into_iter().fold(operation, query).query(
        "cursor",
        names::device_id(),
        "Only devices behind this one: the `nextCursor` of the previous page.",
    );
    paged(operation).answer(200, page(), "A page of devices.")
}

/// The filter of a bulk call, with the conditions of the list.
pub(in crate::api) fn filter() -> Schema {
    let with = |filter: Schema, (name, schema, why)| filter.may(name, schema, why);
    let tag = Schema::any_of([names::tag(), tags()]);
    let filter = conditions(tag).into_iter().fold(Schema::closed(), with);
    filter.named("DeviceFilter")
}

/// The conditions that select devices, with their names and descriptions.
fn conditions(tag: Schema) -> [(&'static str, Schema, &'static str); 10] {
    [
        ("q", prefix(), "A prefix of an identifier."),
        (
            "registered",
            Schema::truth(),
            "Only devices that are registered, or only those that are not.",
        ),
        (
            "protocol",
            Schema::word::<Protocol>(),
            "Only devices that have ever used this protocol.",
        ),
        (
            "tag",
            tag,
            "Only devices with this tag. With several, only devices with all of them.",
        ),
        (
            "version",
            Schema::word::<EnablerVersion>().example("1.1"),
            "Only devices that are registered with this LwM2M version.",
        ),
        (
            "object",
            Schema::whole(0..=u64::from(u16::MAX)).example(3_303_u64),
            "Only devices that are registered with this object.",
        ),
        (
            "lastSeenBefore",
            names::log_time(),
            "Only devices that were last seen before this time.",
        ),
        (
            "lastSeenAfter",
            names::log_time(),
            "Only devices that were last seen after this time.",
        ),
        (
            "firmware",
            firmware(),
            "Only devices whose last known firmware version (`/3/0/3`) is this.",
        ),
        (
            "connectivity",
            Schema::one_of_words(ONLINE_WORDS.to_vec()).example("OFFLINE"),
            "Only devices with this `presence.connectivity`.",
        ),
    ]
}

/// GET one.
pub(in crate::api) fn inspect() -> ApiOperation {
    let text = "Returns the identifiers, presence, registration, pending requests, observations, \
                last values and recent messages of a device.";
    ApiOperation::new("getDevice", Tag::Devices, "Get a device")
        .description(text)
        .answer(200, inspector(), "The device.")
}

/// PATCH.
pub(in crate::api) fn amend() -> ApiOperation {
    let text = "Changes only the given fields. `null` removes `imsi`, `msisdn`, `ip`, `name` or \
                all `tags`. Of `tags`, only the given ones are changed, and one that is `null` is \
                removed. The `deviceId` cannot be changed.\n\nThe change takes effect immediately: \
                the next registration must use the new `endpoint` and come from the new `ip`. An \
                existing registration stays valid at its address until the device registers \
                again or updates its registration; that message must come from the new `ip`, if \
                there is one. Existing action requests and log entries keep the previous \
                identifiers.\n\nAs long as no key is set, the PSK identity follows the \
                `endpoint`. Once a key is set, its identity does not change.";
    ApiOperation::new("amendDevice", Tag::Devices, "Update a device")
        .description(text)
        .json(amended_device(), "The fields to change.")
        .answer(200, device(), "The updated device.")
        .refusal(
            400,
            &[
                "MALFORMED_BODY",
                "WRONG_TYPE",
                "INVALID_VALUE",
                "OUT_OF_RANGE",
                "READ_ONLY",
                "UNKNOWN_PROPERTY",
            ],
            "The body is invalid or names a read-only property. `errors` lists every fault.",
        )
        .refusal(
            409,
            &["DEVICE_EXISTS", "ADDRESS_IN_USE"],
            "Another device has the same identifier, or a device of another customer the same \
             address. `field` names the property. Nothing was changed.",
        )
}

/// DELETE.
pub(in crate::api) fn delete() -> ApiOperation {
    let text = "Deletes the device with its registration and messages. Messages are no longer \
                shown at once; their bytes are erased when they are \
                {{history_retention_days}} old. Action requests end: those in status `SCHEDULED` \
                become `CANCELLED`, those in status `IN_PROGRESS` become `FAILED`. They can be \
                read until {{action_retention_days}} after their creation, also after another \
                device was created with the same `deviceId`. Entries of the administration log \
                stay.";
    ApiOperation::new("deleteDevice", Tag::Devices, "Delete a device")
        .description(text)
        .answer_empty(204, "The device is deleted.")
}

/// The body that creates a device.
pub(in crate::api) fn new_device() -> Schema {
    Schema::closed()
        .may("deviceId", names::device_id(), "The id of the device.")
        .may("iccid", names::iccid(), ICCID)
        .may("imsi", names::imsi(), IMSI)
        .may("msisdn", names::msisdn(), MSISDN)
        .may("ip", names::host_ip(), IP)
        .may("endpoint", names::endpoint(), &endpoint_is())
        .may("name", names::label(), NAME)
        .may("security", security(), SECURITY)
        .may("offlineAfter", offline_after(), OFFLINE_AFTER)
        .may("publicKey", public_key_text(), PUBLIC_KEY_IS)
        .may("psk", device_key(), PSK)
        .may("tags", names::tags(names::tag_text()), TAGS)
        .text_in_one_of(&["deviceId", "iccid"])
        .named("NewDevice")
}

/// The body that updates a device.
fn amended_device() -> Schema {
    Schema::closed()
        .may_never_null("iccid", names::iccid(), ICCID)
        .may("imsi", names::imsi(), IMSI)
        .may("msisdn", names::msisdn(), MSISDN)
        .may("ip", names::host_ip(), IP)
        .may_never_null("endpoint", names::endpoint(), &endpoint_is())
        .may("name", names::label(), NAME)
        .may_never_null("security", security(), SECURITY)
        .may("offlineAfter", offline_after(), OFFLINE_AFTER)
        .may("tags", names::tags(names::tag_text().or_null()), TAGS)
        .named("AmendedDevice")
}

fn page() -> Schema {
    page_of(listed_device())
        .must(
            "total",
            Schema::count().example(1_u64),
            "The number of devices in the list, as far as they were examined.",
        )
        .must(
            "totalIsExact",
            Schema::truth(),
            "Whether all devices were examined. If not, there may be more than `total`.",
        )
        .may(
            "nextCursor",
            names::device_id(),
            "The list continues behind this device. Absent if nothing follows.",
        )
}

fn tags() -> Schema {
    let max = u64::try_from(FILTER_TAGS_MAX).expect("a small bound");
    Schema::list(names::tag()).many(1..=max)
}

fn prefix() -> Schema {
    let prefix = Schema::text_of(1..=PREFIX_CHARACTERS_MAX);
    prefix.pattern(names::PRINTABLE).example("8988")
}

fn firmware() -> Schema {
    let version = Schema::text_of(1..=FIRMWARE_CHARACTERS_MAX);
    version.pattern(names::PRINTABLE).example("1.4.2")
}

const PSK: &str = "The pre-shared key (PSK) for DTLS. It is stored encrypted and never returned.";
const ICCID: &str = "The ICCID of the SIM.";
const IMSI: &str = "The IMSI of the SIM.";
const MSISDN: &str = "The phone number (MSISDN), digits without `+`.";
const NAME: &str = "The display name.";
const TAGS: &str = "The tags: at most 32. Keys and values have letters, digits, `.`, `_` and `-`.";
const IP: &str = "The fixed IP address of the device: unicast IPv4 or IPv6. The service sends \
                  requests to it and accepts messages from it.";

fn endpoint_is() -> String {
    let max = Endpoint::LENGTH_MAX;
    format!("The LwM2M endpoint name: at most {max} bytes in UTF-8.")
}
