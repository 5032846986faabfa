//! Which operations create, read, update and delete devices? The OpenAPI descriptions.

use engine::action::Protocol;
use engine::ids::Endpoint;
use engine::limits::NAMES_SEARCHED_MAX;

use crate::api::device::described::{device, inspector};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

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
         `Meter` does not find `meter-7`. If the other filters match more than \
         {NAMES_SEARCHED_MAX} devices and `q` matches more than {NAMES_SEARCHED_MAX} \
         identifiers in the whole service, the response is 400 `TOO_BROAD`. Use a longer prefix."
    );
    let operation = ApiOperation::new("listDevices", Tag::Devices, "List devices")
        .description(text)
        .query("q", beginning(), "A prefix of an identifier.")
        .query(
            "registered",
            Schema::truth(),
            "Only devices that are registered, or only those that are not.",
        )
        .query(
            "protocol",
            Schema::word::<Protocol>(),
            "Only devices that have ever used this protocol.",
        )
        .faults(&["TOO_BROAD"]);
    paged(operation).answer(200, page_of(device()), "A page of devices.")
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
    let text = "Changes only the given fields. `null` removes `imsi`, `msisdn`, `ip` or `name`. \
                The `deviceId` cannot be changed.\n\nThe change takes effect immediately: the \
                next registration must use the new `endpoint` and come from the new `ip`. An \
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
        .named("AmendedDevice")
}

fn beginning() -> Schema {
    let beginning = Schema::text_of(1..=super::BEGINNING_CHARACTERS_MAX);
    beginning.pattern(names::PRINTABLE).example("8988")
}

const ICCID: &str = "The ICCID of the SIM.";
const IMSI: &str = "The IMSI of the SIM.";
const MSISDN: &str = "The phone number (MSISDN), digits without `+`.";
const NAME: &str = "The display name.";
const IP: &str = "The fixed IP address of the device: unicast IPv4 or IPv6. The service sends \
                  requests to it and accepts messages from it.";

fn endpoint_is() -> String {
    let max = Endpoint::LENGTH_MAX;
    format!("The LwM2M endpoint name: at most {max} bytes in UTF-8.")
}
