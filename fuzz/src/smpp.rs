//! Which laws hold for PDUs of SMPP? (SMPP 3.4)

use protocol::smpp::pdu::{Pdu, SmppCommand};
use protocol::smpp::receipt::Receipt;

use crate::FuzzOutcome;

/// A decoded PDU is written so that it is read the same, and what it says of a message is read. A
/// submission is never received: parameters of a delivery in it are not written.
pub(crate) fn pdu(bytes: &[u8]) -> FuzzOutcome {
    let Ok(pdu) = Pdu::decode(bytes) else {
        return FuzzOutcome::Refused;
    };
    if let SmppCommand::DeliverSm(message) = &pdu.command {
        let _ = Receipt::of(message);
        let text = message.text();
        if let Some(segment) = text.segment {
            assert!((1..=segment.total).contains(&segment.number));
        }
    }
    if let Ok(written) = pdu.encode() {
        let (length, rest) = written.split_first_chunk().expect("a length");
        assert_eq!(Pdu::rest_of(*length), Ok(rest.len()));
        let again = Pdu::decode(rest).expect("what was written can be read");
        let is_submission = matches!(pdu.command, SmppCommand::SubmitSm(_));
        assert!(again == pdu || is_submission, "{again:?}");
    }
    FuzzOutcome::Read
}
