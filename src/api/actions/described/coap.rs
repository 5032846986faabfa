//! Which operations create CoAP requests? The OpenAPI descriptions.

use engine::action::{ContentEncoding, Method};
use engine::limits::COAP_PATH_BYTES_MAX;

use super::{SENT_NOW, as_often, base64, later, one_of, one_of_many, port, when};
use crate::api::openapi::{ApiOperation as Described, Schema};
use crate::api::words::Word;

/// A path with a query: without control characters, blanks, and what RFC 3986 does not allow.
const PATH: &str = r##"^/([^\s\u0000-\u001F\u007F-\u009F"#%<>\\^`{|}]|%[0-9A-Fa-f]{2})*$"##;

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = format!(
        "Creates a CoAP request (RFC 7252) to the device. The service sends it from its CoAP \
         port. A 2.xx response means success: its code and payload become the `resultData`. \
         Payloads and responses that exceed one datagram use block-wise transfers (RFC \
         7959).\n\n{SENT_NOW}"
    );
    let titles = [
        "CoAP request",
        "CoAP request with text",
        "CoAP request with bytes",
    ];
    let body = one_of(cases().into_iter().zip(titles), "CoapAction");
    let summary = "Create a CoAP request";
    super::create("createCoapAction", summary, &text, body, super::NO_ADDRESS)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    let titles = [
        "CoAP request to several devices",
        "CoAP request with text to several devices",
        "CoAP request with bytes to several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "CoapActions");
    let summary = "Create a CoAP request for several devices";
    super::create_many("createCoapActions", summary, body)
}

fn cases() -> [Schema; 3] {
    kinds().map(later)
}

/// The kinds of requests, without the devices and the time.
pub(super) fn kinds() -> [Schema; 3] {
    let bare = coap_request();
    let text = coap_request()
        .must(
            "payload",
            Schema::text()
                .bounded_by("maxLength", "action_data_bytes_max")
                .example("on"),
            "The payload, sent as UTF-8.",
        )
        .must(
            "payloadType",
            Schema::only(ContentEncoding::String.word()),
            "`payload` is text.",
        );
    let bytes = coap_request()
        .must(
            "payload",
            base64().bounded_by("maxLength", "action_data_bytes_max"),
            "The payload, in base64.",
        )
        .must(
            "payloadType",
            Schema::only(ContentEncoding::Base64.word()),
            "`payload` is base64.",
        );
    [bare, text, bytes].map(when).map(as_often)
}

/// The properties of every CoAP request.
fn coap_request() -> Schema {
    let path = Schema::text_of(1..=COAP_PATH_BYTES_MAX).pattern(PATH);
    let resource =
        format!("The absolute path, with an optional query: at most {COAP_PATH_BYTES_MAX} bytes.");
    Schema::closed()
        .must("port", port(5_683), "The UDP port on the device.")
        .must("path", path.example("/led?color=r"), &resource)
        .must("requestType", Schema::word::<Method>(), "The CoAP method.")
}
