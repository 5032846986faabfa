//! How is a device sent a datagram? For the document of the API.

use engine::action::ContentForm;

use super::{base64, one_of, one_of_many, port, when};
use crate::api::openapi::{Operation as Described, Schema};
use crate::api::words::Word;

/// The bytes of a datagram where the operator says nothing.
const PAYLOAD_BYTES: usize = 508;

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Sends the device a datagram. It leaves from the port at which the service hears \
                datagrams, so that an answer finds its way back; what the device answers is data \
                of the device. The request is `SUCCEEDED` once the datagram left: whether it came \
                nobody says, so there is one attempt and no `resultData`.\n\nWith `SEND_NOW` it \
                leaves at once, to the device's `ip` or, where it has none, to where it was \
                registered from; only a device that is registered and asleep hears it when it \
                next wakes.";
    let titles = ["Datagram of a text", "Datagram of bytes"];
    let body = one_of(cases().into_iter().zip(titles), "UdpAction");
    let summary = "Send a device a datagram";
    super::create("createUdpAction", summary, text, body, super::NO_ADDRESS)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    let titles = [
        "Datagram of a text to several devices",
        "Datagram of bytes to several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "UdpActions");
    super::create_many("createUdpActions", "Send several devices a datagram", body)
}

fn cases() -> [Schema; 2] {
    let sent = format!(
        "What is sent: 1 to {PAYLOAD_BYTES} bytes, in UTF-8. The operator may allow another number."
    );
    let text = Schema::closed()
        .must(
            "payload",
            Schema::text_of(1..=PAYLOAD_BYTES).example("on"),
            &sent,
        )
        .must(
            "payloadType",
            Schema::only(ContentForm::String.word()),
            "The payload is a text.",
        );
    let characters = PAYLOAD_BYTES.div_ceil(3) * 4;
    let sent = format!(
        "What is sent, in base64: 1 to {PAYLOAD_BYTES} bytes. The operator may allow another \
         number."
    );
    let bytes = Schema::closed()
        .must("payload", base64().of_characters(4..=characters), &sent)
        .must(
            "payloadType",
            Schema::only(ContentForm::Base64.word()),
            "The payload is in base64.",
        );
    [text, bytes].map(|case| {
        let to = "The port of the device that it is sent to.";
        when(case.must("port", port(4_445), to))
    })
}
