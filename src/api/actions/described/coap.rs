//! How is a device made a CoAP request? For the document of the API.

use engine::action::{ContentForm, Method};
use engine::limits::{ACTION_DATA_BYTES_MAX, COAP_PATH_BYTES_MAX};

use super::{as_often, base64, one_of, one_of_many, port, when};
use crate::api::openapi::{Operation as Described, Schema};
use crate::api::words::Word;

/// A path with a query: no controls, no blanks, and what RFC 3986 keeps out of both.
const PATH: &str = r##"^/([^\s\u0000-\u001F\u007F-\u009F"#%<>\\^`{|}]|%[0-9A-Fa-f]{2})*$"##;

/// POST for one device.
pub(in crate::api) fn create() -> Described {
    let text = "Makes the device a CoAP request (RFC 7252). It leaves from the port at which the \
                service hears CoAP. An answer of class 2.xx is a success; its code and payload are \
                the `resultData`. Payloads and answers that do not fit one datagram travel in \
                blocks (RFC 7959).\n\nWith `SEND_NOW` it leaves at once, to the device's `ip` or, \
                where it has none, to where it was registered from; only a device that is \
                registered and asleep hears it when it next wakes.";
    let titles = [
        "CoAP request",
        "CoAP request with a text",
        "CoAP request with bytes",
    ];
    let body = one_of(cases().into_iter().zip(titles), "CoapAction");
    let summary = "Make a device a CoAP request";
    super::create("createCoapAction", summary, text, body, super::NO_ADDRESS)
}

/// POST for several devices.
pub(in crate::api) fn create_many() -> Described {
    let titles = [
        "CoAP request to several devices",
        "CoAP request with a text to several devices",
        "CoAP request with bytes to several devices",
    ];
    let body = one_of_many(cases().into_iter().zip(titles), "CoapActions");
    super::create_many(
        "createCoapActions",
        "Make several devices a CoAP request",
        body,
    )
}

fn cases() -> [Schema; 3] {
    let bare = asked();
    let text = asked()
        .must(
            "payload",
            Schema::text_of(0..=ACTION_DATA_BYTES_MAX).example("on"),
            "What is sent along, in UTF-8.",
        )
        .must(
            "payloadType",
            Schema::only(ContentForm::String.word()),
            "The payload is a text.",
        );
    let bytes = asked()
        .must(
            "payload",
            base64().of_characters(0..=ACTION_DATA_BYTES_MAX),
            "What is sent along, in base64.",
        )
        .must(
            "payloadType",
            Schema::only(ContentForm::Base64.word()),
            "The payload is in base64.",
        );
    [bare, text, bytes].map(when).map(as_often)
}

/// What every request says.
fn asked() -> Schema {
    let path = Schema::text_of(1..=COAP_PATH_BYTES_MAX).pattern(PATH);
    let resource = format!(
        "The resource: an absolute path of at most {COAP_PATH_BYTES_MAX} bytes, with its query if \
         it has one."
    );
    Schema::closed()
        .must(
            "port",
            port(5_683),
            "The port of the device that it is made at.",
        )
        .must("path", path.example("/led?color=r"), &resource)
        .must("requestType", Schema::word::<Method>(), "The method.")
}
