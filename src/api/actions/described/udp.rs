//! Which operations create UDP requests? The OpenAPI descriptions.

use engine::action::ContentEncoding;

use super::{SENT_NOW, base64, later, one_of, one_of_many, port, when};
use crate::api::openapi::{ApiOperation as Described, Schema};
use crate::api::words::Word;

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = format!(
        "Sends a UDP datagram to the device, from the UDP port of the service. A reply from the \
         device to that port is stored as device data. The request is `SUCCEEDED` as soon as the \
         datagram is sent. UDP does not confirm delivery, so there is one attempt and no \
         `resultData`.\n\n{SENT_NOW}"
    );
    let titles = ["Text datagram", "Binary datagram"];
    let body = one_of(cases().into_iter().zip(titles), "UdpAction");
    let summary = "Create a UDP request";
    super::create("createUdpAction", summary, &text, body, super::NO_ADDRESS)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    let titles = [
        "Text datagram to several devices",
        "Binary datagram to several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "UdpActions");
    let summary = "Create a UDP request for several devices";
    super::create_many("createUdpActions", summary, body)
}

fn cases() -> [Schema; 2] {
    kinds().map(later)
}

/// The kinds of requests, without the devices and the time.
pub(super) fn kinds() -> [Schema; 2] {
    let text = Schema::closed()
        .must(
            "payload",
            datagram(Schema::text(), 1, "udp_payload_bytes_max").example("on"),
            "The payload, sent as UTF-8: 1 to {{udp_payload_bytes_max}} bytes.",
        )
        .must(
            "payloadType",
            Schema::only(ContentEncoding::String.word()),
            "`payload` is text.",
        );
    let bytes = Schema::closed()
        .must(
            "payload",
            datagram(base64(), 2, "udp_payload_base64_max"),
            "The payload in base64: 1 to {{udp_payload_bytes_max}} bytes.",
        )
        .must(
            "payloadType",
            Schema::only(ContentEncoding::Base64.word()),
            "`payload` is base64.",
        );
    let port = || port(4_445);
    [text, bytes].map(|case| when(case.must("port", port(), "The UDP port on the device.")))
}

/// The payload of a datagram as text.
fn datagram(text: Schema, characters_min: u64, characters_max: &str) -> Schema {
    text.of_at_least(characters_min)
        .bounded_by("maxLength", characters_max)
}
