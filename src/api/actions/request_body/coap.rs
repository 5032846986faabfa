//! How is a CoAP request parsed? (seed 4.2)

use engine::action::parse::coap::{CoapDraft, CoapFault, CoapField};
use engine::action::{CoapRequest, ContentEncoding, Method};

use super::{given, port, text};
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// The request, unless it has faults. Its text has at most `bytes_max` bytes.
pub(super) fn request(fields: &mut Fields, bytes_max: usize) -> Option<CoapRequest> {
    let payload = given(fields, "payload", |text| Ok(text.to_owned()));
    let form = given(fields, "payloadType", ContentEncoding::read);
    let port = port(fields);
    let path = text(fields, "path");
    let draft = CoapDraft {
        method: fields.required("requestType", Method::read),
        port,
        path: path.as_deref(),
        payload: payload.as_deref(),
        form,
    };
    draft.read(bytes_max).unwrap_or_else(|faults| {
        for fault in faults {
            fields.fault(field_of(fault), wrong(fault));
        }
        None
    })
}

fn field_of(fault: CoapFault) -> &'static str {
    match fault.part() {
        CoapField::Path => "path",
        CoapField::Payload => "payload",
        CoapField::Encoding => "payloadType",
    }
}

fn wrong(fault: CoapFault) -> FieldFault {
    match fault {
        CoapFault::EncodingMissing => FieldFault::required(fault),
        CoapFault::Path(_)
        | CoapFault::PathTooLong
        | CoapFault::NotBase64(_)
        | CoapFault::PayloadTooLong { .. }
        | CoapFault::EncodingUnwanted => fault.into(),
    }
}
