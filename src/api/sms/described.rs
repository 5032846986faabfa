//! Which operations send and read SMS? The OpenAPI descriptions.

pub(in crate::api) mod forwarder;
pub(in crate::api) mod network;
pub(in crate::api) mod wake_up;

use engine::sms::SmsStatus;
use engine::sms::address::AddressType;

use super::request_body::{NAME_CHARACTERS_MAX, NUMBER_DIGITS_MAX};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::{page_of, paged};

/// POST.
pub(in crate::api) fn create() -> ApiOperation {
    let text = "Accepts an SMS to the device with this SIM. It is durable before the response. A \
                text that is longer than one message is sent in parts; with a `udh` of your own \
                it is never divided, and must fit one message.\n\nThe SMS is `PENDING` until the \
                network takes it, and leaves the service at most once. Its final status is \
                PATCHed to the SMS forwarder.";
    ApiOperation::new("sendSms", Tag::Sms, "Send an SMS")
        .description(text)
        .json(new_sms(), "The SMS to send.")
        .answer(201, submitted(), "The SMS is accepted.")
        .answer_header(201, "Location", Schema::text(), "The path of the SMS.")
        .leads_to(
            201,
            &["getSms", "cancelSms"],
            &[
                ("iccid", "$request.path.iccid"),
                ("sms", "$response.body#/id"),
            ],
        )
        .once(
            &["QUEUE_FULL"],
            "{{sms_open_max}} SMS to the device have no final status, which is the maximum.",
        )
}

/// GET all.
pub(in crate::api) fn list() -> ApiOperation {
    let text = "Returns the SMS of the device with this SIM in both directions, newest first. The \
                parts of an SMS of the device are joined. SMS are deleted after \
                {{sms_retention_days}}.";
    let operation = ApiOperation::new("listSms", Tag::Sms, "List the SMS of a SIM");
    paged(operation.description(text)).answer(200, page_of(sms()), "A page of SMS.")
}

/// GET one.
pub(in crate::api) fn show() -> ApiOperation {
    let text = "Returns an SMS of either direction. The id of a part is that of its SMS, too.";
    ApiOperation::new("getSms", Tag::Sms, "Get an SMS")
        .description(text)
        .answer(200, sms(), "The SMS.")
}

/// DELETE.
pub(in crate::api) fn cancel() -> ApiOperation {
    let text = "Cancels an SMS that is `PENDING` or `BUFFERED`: its status becomes `CANCELED`. One \
                that is `PENDING` is never sent. For one that is `BUFFERED` the network is told to \
                delete it; if the network delivers it nevertheless, the status stays `CANCELED`.";
    ApiOperation::new("cancelSms", Tag::Sms, "Cancel an SMS")
        .description(text)
        .answer_empty(204, "The SMS is cancelled.")
        .refusal(
            409,
            &["NOT_CANCELLABLE"],
            "The network is sending the SMS, its status is final, or it is an SMS of the device.",
        )
}

/// An SMS of either direction.
pub(in crate::api) fn sms() -> Schema {
    let received = common("MO", 2)
        .must(
            "payload",
            payload(),
            "The text of the parts received so far.",
        )
        .must("multi_part_info", parts(true), "The parts.")
        .named("SmsOfDevice");
    let submitted = common("MT", 1)
        .must("payload", payload(), "The text.")
        .must("multi_part_info", parts(false), "The parts.")
        .must("status", status(), "The status.")
        .must("expiry_date", names::sms_time(), "When its validity ends.")
        .may(
            "in_progress_date",
            names::sms_time(),
            "When the network took it.",
        )
        .may(
            "buffered_date",
            names::sms_time(),
            "When the network reported `BUFFERED`.",
        )
        .may(
            "final_date",
            names::sms_time(),
            "When the status became final.",
        )
        .may(
            "reason",
            Schema::text().example("outcome unknown"),
            "Why it is `FAILED`, where known.",
        )
        .must(
            "source_address_type",
            address_type(),
            "The type of the source address.",
        )
        .may("udh", udh(), "The user data header of the caller.")
        .named("SmsToDevice");
    Schema::one_of([received, submitted]).named("Sms")
}

/// A message of a device, as the forwarder sends it; in the history without the organisation.
pub(in crate::api) fn received_sms() -> Schema {
    let part = Schema::whole(1..=255).example(1_u64);
    let part = Schema::object()
        .must("partno", part.clone(), "The number of the part.")
        .must("total", part, "The number of parts.")
        .must(
            "identifier",
            identifier(),
            "The reference that the parts share.",
        )
        .named("SmsPartInfo");
    Schema::object()
        .must("id", names::sms_id(), "The id of the message.")
        .must("payload", payload(), "The text.")
        .must(
            "submit_date",
            names::sms_time(),
            "When it was accepted (UTC).",
        )
        .must("dest_address", dest(), "The address the device sent it to.")
        .must(
            "source_address",
            names::msisdn(),
            "The MSISDN of the device.",
        )
        .must("dcs", octet(), DCS)
        .must("endpoint", endpoint(), "The device.")
        .may("organisation", organisation(), "The customer.")
        .must("multi_part_info", part, "Which part of an SMS it is.")
        .must("pid", octet(), "The protocol identifier.")
        .named("ReceivedSms")
}

/// The final status of an SMS, as the forwarder sends it; in the history without the organisation.
pub(in crate::api) fn sms_report() -> Schema {
    Schema::object()
        .must("id", names::sms_id(), "The id of the SMS.")
        .must(
            "final_date",
            names::sms_time(),
            "When the status became final (UTC).",
        )
        .must(
            "submit_date",
            names::sms_time(),
            "When the SMS was accepted (UTC).",
        )
        .may("organisation", organisation(), "The customer.")
        .must("endpoint", endpoint(), "The device.")
        .must("status", status(), "The status: 4 to 7.")
        .named("SmsReport")
}

const DCS: &str = "The data coding scheme (3GPP TS 23.038): 0 is GSM 7 bit, 4 is 8-bit data, 8 is \
                   UCS-2.";

/// What a source address is.
fn source_address() -> String {
    format!(
        "A number of at most {NUMBER_DIGITS_MAX} digits, or a name of at most \
         {NAME_CHARACTERS_MAX} characters."
    )
}

fn new_sms() -> Schema {
    let expiry = names::sms_time();
    Schema::closed()
        .must(
            "source_address",
            Schema::text_of(1..=16).example("1234"),
            &source_address(),
        )
        .must(
            "payload",
            payload(),
            "The text; with a `dcs` of 8-bit data, its octets in hexadecimal.",
        )
        .may(
            "dcs",
            octet(),
            &format!("{DCS} Default: 0, or 8 if GSM 7 bit lacks a character."),
        )
        .may(
            "udh",
            udh(),
            "A user data header of your own, with its length, in hexadecimal.",
        )
        .may(
            "source_address_type",
            address_type(),
            "Default: 145 for a number, 209 for a name.",
        )
        .may(
            "expiry_date",
            expiry,
            "When the validity ends (UTC), at most 7 days from now. Default: {{sms_validity_min}} \
             from now.",
        )
        .named("NewSms")
}

fn submitted() -> Schema {
    Schema::object()
        .must("id", names::sms_id(), "The id of the SMS.")
        .named("SubmittedSms")
}

fn common(direction: &'static str, number: u64) -> Schema {
    let kind = Schema::object()
        .must(
            "id",
            Schema::whole(number..=number),
            "The number of the direction.",
        )
        .must("description", Schema::only(direction), "The direction.")
        .named(match number {
            1 => "SmsTypeMt",
            _ => "SmsTypeMo",
        });
    Schema::object()
        .must("id", names::sms_id(), "The id.")
        .must(
            "iccid",
            names::iccid(),
            "The SIM in the device when the SMS was stored.",
        )
        .must(
            "sms_type",
            kind,
            "The direction: `MO` from the device, `MT` to it.",
        )
        .must(
            "submit_date",
            names::sms_time(),
            "When it was accepted (UTC).",
        )
        .must(
            "source_address",
            Schema::text().example("1234"),
            "The address of the sender.",
        )
        .may(
            "dest_address",
            dest(),
            "The address of the recipient, where known.",
        )
        .must("dcs", octet(), DCS)
        .must("pid", octet(), "The protocol identifier.")
}

fn parts(of_device: bool) -> Schema {
    let number = Schema::whole(1..=255).example(1_u64);
    let parts = Schema::object()
        .must("total", number.clone(), "The number of parts.")
        .must(
            "identifier",
            identifier(),
            "The reference that the parts share.",
        );
    match of_device {
        true => parts
            .must(
                "received",
                Schema::list(number),
                "The parts received so far.",
            )
            .named("ReceivedParts"),
        false => parts.named("SentParts"),
    }
}

pub(super) fn status() -> Schema {
    Schema::object()
        .must(
            "id",
            Schema::whole(1..=7).example(4_u64),
            "The number of the status.",
        )
        .must("status", Schema::word::<SmsStatus>(), "The status.")
        .named("SmsStatus")
}

pub(super) fn address_type() -> Schema {
    let numbers = AddressType::ALL.map(|it| u64::from(it.number()));
    let number = Schema::one_of(numbers.map(|number| Schema::whole(number..=number)));
    Schema::closed()
        .must(
            "id",
            number,
            "145 international, 161 national, 209 alphanumeric.",
        )
        .named("SourceAddressType")
}

pub(super) fn udh() -> Schema {
    let udh = Schema::text().pattern("^([0-9A-Fa-f]{2}){1,140}$");
    udh.example("06050415811581")
}

pub(super) fn payload() -> Schema {
    Schema::text().example("open")
}

pub(super) fn octet() -> Schema {
    Schema::whole(0..=255).example(0_u64)
}

pub(super) fn identifier() -> Schema {
    Schema::whole(0..=65_535).example(0_u64)
}

pub(super) fn dest() -> Schema {
    Schema::text().example("1234")
}

fn endpoint() -> Schema {
    Schema::object()
        .must("id", Schema::count(), "The integer id of the device.")
        .must(
            "name",
            names::label(),
            "Its name, or its device id if it has none.",
        )
        .named("SmsEndpoint")
}

fn organisation() -> Schema {
    Schema::object()
        .must("id", Schema::count(), "The integer id of the customer.")
        .named("SmsOrganisation")
}
