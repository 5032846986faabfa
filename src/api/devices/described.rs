//! How are devices made, listed and forgotten? For the document of the API.

use engine::action::Protocol;
use engine::ids::Endpoint;
use engine::limits::NAMES_SEARCHED_MAX;

use crate::api::device::described::{device, inspector};
use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// POST.
pub(in crate::api) fn create() -> Operation {
    let text = "A device is known by its `deviceId` or, where you give none, by its `iccid`; one \
                of them is enough. `endpoint` is the name under which an LwM2M device registers, \
                and is the `deviceId` where you give none.\n\nA device that registers without \
                DTLS is believed only if it comes from its `ip`. A device that sends plain CoAP or \
                datagrams is known by its `ip` alone; where several devices have the same one, \
                none of them is.";
    Operation::new("createDevice", Tag::Devices, "Make a device known")
        .description(text)
        .json(new_device(), "Who the device is.")
        .answer(201, device(), "The device as it is known now.")
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
        .refusal(
            409,
            &["DEVICE_EXISTS"],
            "Another device has one of the names; `field` says which.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> Operation {
    let text = format!(
        "The devices of the customer, by `deviceId`. Filters that are given together all have to \
         fit.\n\n`q` finds the devices whose `deviceId`, `iccid`, `imsi`, `msisdn` or `endpoint` \
         begins so, letter for letter: `Meter` does not find `meter-7`. With {NAMES_SEARCHED_MAX} \
         devices or fewer that the filters fit every search is answered. With more, one that \
         meets more than {NAMES_SEARCHED_MAX} names that begin so, those of other customers \
         among them, is answered 400 `TOO_BROAD`: give more of the name."
    );
    let operation = Operation::new("listDevices", Tag::Devices, "List devices")
        .description(text)
        .query(
            "q",
            beginning(),
            "How one of the names of the device begins.",
        )
        .query(
            "registered",
            Schema::truth(),
            "Whether the device is registered now.",
        )
        .query(
            "protocol",
            Schema::word::<Protocol>(),
            "Over what the device was ever heard.",
        )
        .faults(&["TOO_BROAD"]);
    paged(operation).answer(200, page_of(device()), "A page of devices.")
}

/// GET one.
pub(in crate::api) fn inspect() -> Operation {
    let text = "Who the device is, whether it is there, what it offers and what waits for it.";
    Operation::new("getDevice", Tag::Devices, "Inspect a device")
        .description(text)
        .answer(200, inspector(), "The device as it is now.")
}

/// PATCH.
pub(in crate::api) fn amend() -> Operation {
    let text = "Changes what you name and nothing else. `null` removes `imsi`, `msisdn`, `ip` and \
                `name`. The `deviceId` never changes.\n\nThe change holds from the answer on: the \
                next registration is judged by the new `ip` and found by the new `endpoint`. A \
                registration that exists goes on at its location: requests go to where it came \
                from, and what comes from there is taken, until the device registers or updates \
                its registration. If it has an `ip`, it then has to come from there. Requests and \
                log entries that were made before keep the names the device had.\n\nThe PSK \
                identity is the `endpoint` and changes with it until a key is given; a key keeps \
                its identity.";
    Operation::new("amendDevice", Tag::Devices, "Change who a device is")
        .description(text)
        .json(amended_device(), "What is to be otherwise.")
        .answer(200, device(), "The device as it is known now.")
        .refusal(
            400,
            &[
                "MALFORMED_BODY",
                "WRONG_TYPE",
                "INVALID_VALUE",
                "READ_ONLY",
                "UNKNOWN_PROPERTY",
            ],
            "What was asked cannot be understood or is not to be changed; every fault is told at \
             once.",
        )
        .refusal(
            409,
            &["DEVICE_EXISTS"],
            "Another device has one of the names; `field` says which. Nothing was changed.",
        )
}

/// DELETE.
pub(in crate::api) fn delete() -> Operation {
    let text = "Forgets the device, its registration and its requests. Entries of the \
                administration log stay.";
    Operation::new("deleteDevice", Tag::Devices, "Forget a device")
        .description(text)
        .answer_empty(204, "The device is forgotten.")
}

/// Who a device is, as its maker says.
pub(in crate::api) fn new_device() -> Schema {
    Schema::closed()
        .may("deviceId", names::device_id(), "What you call it.")
        .may("iccid", names::iccid(), "Its SIM.")
        .may("imsi", names::imsi(), "The subscriber of its SIM.")
        .may("msisdn", names::msisdn(), "Its telephone number.")
        .may("ip", names::host_ip(), IP_IS)
        .may("endpoint", names::endpoint(), &endpoint_is())
        .may("name", names::label(), "What people call it.")
        .text_in_one_of(&["deviceId", "iccid"])
        .named("NewDevice")
}

/// What of a device is to be otherwise.
fn amended_device() -> Schema {
    Schema::closed()
        .may_never_null("iccid", names::iccid(), "Its SIM.")
        .may("imsi", names::imsi(), "The subscriber of its SIM.")
        .may("msisdn", names::msisdn(), "Its telephone number.")
        .may("ip", names::host_ip(), IP_IS)
        .may_never_null("endpoint", names::endpoint(), &endpoint_is())
        .may("name", names::label(), "What people call it.")
        .named("AmendedDevice")
}

fn beginning() -> Schema {
    let beginning = Schema::text_of(1..=super::BEGINNING_CHARACTERS_MAX);
    beginning.pattern(names::PRINTABLE).example("8988")
}

const IP_IS: &str = "The address it comes from and is asked at: of one host, and not of a group.";

fn endpoint_is() -> String {
    format!(
        "What it calls itself when it registers; at most {} bytes in UTF-8.",
        Endpoint::LENGTH_MAX
    )
}
