//! How is a CoAP request parsed? (seed 4.2)

use engine::action::parse::coap::{CoapFault, Draft, Part};
use engine::action::{CoapRequest, ContentForm, Method};

use super::{given, port, text};
use crate::api::fields::{Fields, Wrong};
use crate::api::words::Word;

/// The request, unless it has faults.
pub(super) fn request(fields: &mut Fields) -> Option<CoapRequest> {
    let payload = given(fields, "payload", |text| Ok(text.to_owned()));
    let form = given(fields, "payloadType", ContentForm::read);
    let port = port(fields);
    let path = text(fields, "path");
    let draft = Draft {
        method: fields.required("requestType", Method::read),
        port,
        path: path.as_deref(),
        payload: payload.as_deref(),
        form,
    };
    draft.read().unwrap_or_else(|faults| {
        for fault in faults {
            fields.fault(field_of(fault), wrong(fault));
        }
        None
    })
}

fn field_of(fault: CoapFault) -> &'static str {
    match fault.part() {
        Part::Path => "path",
        Part::Payload => "payload",
        Part::Form => "payloadType",
    }
}

fn wrong(fault: CoapFault) -> Wrong {
    match fault {
        CoapFault::FormMissing => Wrong::required(fault),
        CoapFault::Path(_)
        | CoapFault::PathTooLong
        | CoapFault::NotBase64(_)
        | CoapFault::PayloadTooLong
        | CoapFault::FormUnwanted => fault.into(),
    }
}
