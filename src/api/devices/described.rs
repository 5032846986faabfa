//! How are devices made, listed and forgotten? For the document of the API.

use crate::api::device::described::{device, inspector};
use crate::api::openapi::{Operation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// POST.
pub(in crate::api) fn create() -> Operation {
    let text = "A device is known by its `deviceId` or, where you give none, by its `iccid`; one \
                of them is enough. `endpoint` is the name under which an LwM2M device registers, \
                and is the `deviceId` where you give none.\n\nA device that registers without \
                DTLS is believed only if it comes from its `ip`.";
    Operation::new("createDevice", Tag::Devices, "Make a device known")
        .description(text)
        .json(new_device(), "Who the device is.")
        .answer(201, device(), "The device as it is known now.")
        .answer_header(201, "Location", Schema::text(), "The path of the device.")
        .leads_to(
            201,
            &["getDevice", "setDeviceKey", "createAction", "cancelActions"],
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
    let operation = Operation::new("listDevices", Tag::Devices, "List devices")
        .description("The devices of the customer, by `deviceId`.");
    paged(operation).answer(200, page_of(device()), "A page of devices.")
}

/// GET one.
pub(in crate::api) fn inspect() -> Operation {
    let text = "Who the device is, whether it is there, what it offers and what waits for it.";
    Operation::new("getDevice", Tag::Devices, "Inspect a device")
        .description(text)
        .answer(200, inspector(), "The device as it is now.")
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
        .may("ip", names::ip(), "The address it comes from.")
        .may(
            "endpoint",
            names::endpoint(),
            "What it calls itself when it registers.",
        )
        .may("name", names::label(), "What people call it.")
        .text_in_one_of(&["deviceId", "iccid"])
        .named("NewDevice")
}
