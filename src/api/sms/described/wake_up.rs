//! Which operations set the SMS that wakes devices? The OpenAPI descriptions.

use engine::wake_up::WakeUpKind;

use super::super::request_body::DATA_OCTETS_MAX;
use super::{address_type, source_address};
use crate::api::openapi::{ApiOperation, Schema, Tag};
use crate::api::words::Word as _;

/// What a wake-up message is for.
const WHAT: &str = "An action request with `wakeUp` sends it to a device that sleeps.";

/// GET, of the customer.
pub(in crate::api) fn show() -> ApiOperation {
    let summary = "Get the wake-up message of the customer";
    shown("getWakeUpMessage", Tag::Sms, summary)
}

/// PUT, of the customer.
pub(in crate::api) fn put() -> ApiOperation {
    let summary = "Set the wake-up message of the customer";
    let text = format!("{WHAT} A device may have a message of its own instead.");
    set("setWakeUpMessage", Tag::Sms, summary, &text)
}

/// DELETE, of the customer.
pub(in crate::api) fn delete() -> ApiOperation {
    let summary = "Delete the wake-up message of the customer";
    let text = "Devices with a message of their own keep it.";
    deleted("deleteWakeUpMessage", Tag::Sms, summary, text)
}

/// GET, of a device.
pub(in crate::api) fn show_of_device() -> ApiOperation {
    let summary = "Get the wake-up message of a device";
    shown("getDeviceWakeUpMessage", Tag::Devices, summary)
}

/// PUT, of a device.
pub(in crate::api) fn put_of_device() -> ApiOperation {
    let summary = "Set the wake-up message of a device";
    let text = format!("{WHAT} It takes the place of that of the customer.");
    set("setDeviceWakeUpMessage", Tag::Devices, summary, &text)
}

/// DELETE, of a device.
pub(in crate::api) fn delete_of_device() -> ApiOperation {
    let summary = "Delete the wake-up message of a device";
    let text = "From now on the device is woken with that of the customer.";
    deleted("deleteDeviceWakeUpMessage", Tag::Devices, summary, text)
}

fn shown(id: &'static str, tag: Tag, summary: &'static str) -> ApiOperation {
    let operation = ApiOperation::new(id, tag, summary)
        .description("Returns the message as it was set.")
        .answer(200, message(), "The message.");
    unless_unset(operation)
}

fn set(id: &'static str, tag: Tag, summary: &'static str, text: &str) -> ApiOperation {
    ApiOperation::new(id, tag, summary)
        .description(text)
        .json(new_message(), "The message.")
        .answer(200, message(), "The message.")
}

fn deleted(id: &'static str, tag: Tag, summary: &'static str, text: &str) -> ApiOperation {
    let operation = ApiOperation::new(id, tag, summary)
        .description(text)
        .answer_empty(204, "The message is deleted.");
    unless_unset(operation)
}

fn unless_unset(operation: ApiOperation) -> ApiOperation {
    let why = "There is no such device, or no wake-up message is set.";
    operation.refusal(404, &["NOT_FOUND"], why)
}

fn new_message() -> Schema {
    let text = from(Schema::closed())
        .must("type", Schema::only(WakeUpKind::Text.word()), TYPE)
        .must(
            "payload",
            Schema::text_of(1..=160).example("wake up"),
            "The text. It must fit one message: 160 characters of the GSM 7 bit alphabet, or 70 \
             others.",
        )
        .titled("Text");
    let octets = format!("^([0-9A-Fa-f]{{2}}){{1,{DATA_OCTETS_MAX}}}$");
    let data = from(Schema::closed())
        .must("type", Schema::only(WakeUpKind::Data.word()), TYPE)
        .must(
            "payload",
            Schema::text().pattern(&octets).example("0a01"),
            "The octets of 8-bit data in hexadecimal.",
        )
        .titled("8-bit data");
    let trigger = WakeUpKind::RegistrationUpdateTrigger.word();
    let trigger = from(Schema::closed())
        .must("type", Schema::only(trigger), TYPE)
        .titled("Registration update trigger");
    Schema::one_of([text, data, trigger]).named("NewWakeUpMessage")
}

fn from(body: Schema) -> Schema {
    body.must(
        "source_address",
        Schema::text_of(1..=16).example("1234"),
        &source_address(),
    )
    .may(
        "source_address_type",
        address_type(),
        "Default: 145 for a number, 209 for a name.",
    )
}

const TYPE: &str = "`TEXT`, `DATA` (8-bit data), or `REGISTRATION_UPDATE_TRIGGER`: the Execute of \
                    the resource `/1/0/8`, as a CoAP message in 8-bit data, which LwM2M devices \
                    with the SMS binding understand.";

fn message() -> Schema {
    Schema::object()
        .must(
            "source_address",
            Schema::text().example("1234"),
            "The address of the sender.",
        )
        .must("source_address_type", address_type(), "Its type.")
        .must("type", Schema::word::<WakeUpKind>(), TYPE)
        .may(
            "payload",
            Schema::text().example("wake up"),
            "The text; of 8-bit data, its octets in hexadecimal.",
        )
        .named("WakeUpMessage")
}
