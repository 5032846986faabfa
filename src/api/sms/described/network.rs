//! Which operations does the network call? The OpenAPI descriptions.

use engine::limits::{SMS_ADDRESS_CHARACTERS_MAX, SMS_PART_CHARACTERS_MAX, SMS_TAKEN_MAX};
use engine::sms::ReportedStatus;

use super::{address_type, dest, identifier, octet, payload, status, udh};
use crate::api::openapi::{ApiOperation, Schema, Tag, names};

/// POST mo.
pub(in crate::api) fn receive() -> ApiOperation {
    let text = "Hands in an SMS of a device, or one part of it. The device is the one whose MSISDN \
                is `source_address`; `dest_address` does not route. The message is durable before \
                the response.";
    ApiOperation::new("receiveSms", Tag::Network, "Hand in an SMS of a device")
        .description(text)
        .json(received(), "The message.")
        .answer(202, accepted(), "The message is accepted.")
        .refusal(404, &["NOT_FOUND"], "No device has this MSISDN.")
        .once(&[], "")
}

/// POST dlr.
pub(in crate::api) fn report() -> ApiOperation {
    let text = "Reports the outcome of an SMS to a device. `BUFFERED` is not final. A report about \
                an SMS whose status is final changes nothing.";
    let body = Schema::closed()
        .must("id", names::sms_id(), "The id of the SMS.")
        .must(
            "status",
            Schema::word::<ReportedStatus>(),
            "What became of it.",
        )
        .named("NewSmsReport");
    let reported = Schema::object()
        .must("id", names::sms_id(), "The id of the SMS.")
        .must("status", status(), "Its status.")
        .named("ReportedSms");
    ApiOperation::new("reportSms", Tag::Network, "Report the outcome of an SMS")
        .description(text)
        .json(body, "The report.")
        .answer(202, reported, "The SMS and its status.")
        .refusal(404, &["NOT_FOUND"], "There is no such SMS to a device.")
}

/// POST mt.
pub(in crate::api) fn take() -> ApiOperation {
    let text = "Takes SMS that wait for the network, the oldest first. Each is handed out once: \
                its status is `IN PROGRESS` before the response, also if the response is lost. An \
                SMS whose outcome is not reported by the end of its validity becomes \
                `FAILED`.\n\n`withdrawn` has the ids of `BUFFERED` SMS that were cancelled: delete \
                them from the buffer of the network.";
    let max = Schema::whole(1..=u64::from(SMS_TAKEN_MAX)).default(10_u64);
    let wanted = Schema::closed()
        .may("max", max, "The maximum number of SMS.")
        .named("WantedSms");
    ApiOperation::new("takeSms", Tag::Network, "Take SMS to devices")
        .description(text)
        .json(wanted, "How many are wanted.")
        .answer(200, taken(), "The SMS that were taken.")
}

fn received() -> Schema {
    let octet_from_1 = Schema::whole(1..=255).example(1_u64);
    let part = Schema::closed()
        .must("partno", octet_from_1.clone(), "The number of the part.")
        .must("total", octet_from_1, "The number of parts.")
        .must(
            "identifier",
            identifier(),
            "The reference that the parts share.",
        )
        .named("NewSmsPartInfo");
    let source = Schema::text().pattern(r"^\+?[0-9]{1,15}$");
    Schema::closed()
        .must(
            "source_address",
            source.example("882285100000001"),
            "The MSISDN of the device, with or without a plus sign.",
        )
        .must(
            "dest_address",
            dest().of_characters(0..=SMS_ADDRESS_CHARACTERS_MAX),
            "The address that the device sent it to.",
        )
        .must(
            "payload",
            payload().of_characters(0..=SMS_PART_CHARACTERS_MAX),
            "The text; of 8-bit data, its octets in hexadecimal.",
        )
        .must("dcs", octet(), "The data coding scheme.")
        .must("pid", octet(), "The protocol identifier.")
        .may("multi_part_info", part, "Which part of an SMS it is.")
        .named("NewReceivedSms")
}

fn accepted() -> Schema {
    Schema::object()
        .must("id", names::sms_id(), "The id of the message.")
        .named("AcceptedSms")
}

fn taken() -> Schema {
    let part = Schema::object()
        .may("udh", udh(), "The user data header, in hexadecimal.")
        .must("payload", payload(), "The text of the part.")
        .named("SmsPart");
    let sms = Schema::object()
        .must("id", names::sms_id(), "The id, for the report.")
        .must("iccid", names::iccid(), "The SIM of the device.")
        .may(
            "dest_address",
            names::msisdn(),
            "The MSISDN of the device, where known.",
        )
        .must(
            "source_address",
            Schema::text().example("1234"),
            "The source address.",
        )
        .must("source_address_type", address_type(), "Its type.")
        .must(
            "expiry_date",
            names::sms_time(),
            "When the validity ends (UTC).",
        )
        .must("dcs", octet(), "The data coding scheme.")
        .must("pid", octet(), "The protocol identifier.")
        .must(
            "parts",
            Schema::list(part),
            "The messages to send, in order.",
        )
        .named("NetworkSms");
    Schema::object()
        .must("items", Schema::list(sms), "The SMS to send.")
        .must("withdrawn", Schema::list(names::sms_id()), "SMS to delete.")
        .named("TakenSms")
}
