//! How is a UDP request parsed? (seed 4.2)

use engine::action::parse::udp::UdpDraft;
use engine::action::{ContentEncoding, UdpRequest};

use super::{port, text};
use crate::api::fields::Fields;
use crate::api::words::Word;

/// The request, unless it has faults.
pub(super) fn request(fields: &mut Fields, bytes_max: usize) -> Option<UdpRequest> {
    const PAYLOAD: &str = "payload";
    let payload = text(fields, PAYLOAD);
    let draft = UdpDraft {
        payload: payload.as_deref(),
        form: fields.required("payloadType", ContentEncoding::read),
        port: port(fields),
    };
    draft.read(bytes_max).unwrap_or_else(|fault| {
        fields.fault(PAYLOAD, fault);
        None
    })
}
