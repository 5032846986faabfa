//! Are PDUs read as they are written, and those of other programs as the standard says?

use super::*;
use crate::smpp::message::{RECEIPT_WANTED, UDHI};
use crate::smpp::status::ESME_RTHROTTLED;

#[test]
fn every_command_is_read_as_it_is_written() {
    let commands = [
        SmppCommand::BindTransceiver(credentials()),
        SmppCommand::BindTransceiverResp,
        SmppCommand::SubmitSm(Box::new(submit())),
        SmppCommand::SubmitSmResp("00f3a1".into()),
        SmppCommand::DeliverSm(Box::new(deliver())),
        SmppCommand::DeliverSmResp,
        SmppCommand::CancelSm(Box::new(Cancellation {
            message_id: "00f3a1".into(),
            source: address("1234"),
            dest: address("882285100000001"),
        })),
        SmppCommand::CancelSmResp,
        SmppCommand::EnquireLink,
        SmppCommand::EnquireLinkResp,
        SmppCommand::Unbind,
        SmppCommand::UnbindResp,
        SmppCommand::GenericNack,
        SmppCommand::OtherRequest(0x103),
        SmppCommand::OtherResponse(0x8000_0103),
    ];
    for command in commands {
        let pdu = Pdu::request(7, command);
        assert_eq!(round(&pdu), pdu);
    }
}

#[test]
fn a_long_message_is_a_payload() {
    let long = ShortMessage {
        octets: vec![b'a'; 300].into(),
        ..submit()
    };
    let pdu = Pdu::request(1, SmppCommand::SubmitSm(Box::new(long)));
    assert_eq!(round(&pdu), pdu);
}

#[test]
fn a_bind_has_the_octets_of_the_standard() {
    let pdu = Pdu::request(1, SmppCommand::BindTransceiver(credentials()));
    let octets = pdu.encode().unwrap();
    let expected = [
        &[0, 0, 0, 0x2f, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1][..],
        b"SMPP3TEST\0secret08\0SUBMIT1\0\x34\0\0\0",
    ];
    assert_eq!(octets, expected.concat());
}

#[test]
fn a_response_with_an_error_needs_no_body() {
    let header = [
        0x80, 0, 0, 4, 0, 0, 0, 0x58, 0, 0, 0, 9, // the body is missing
    ];
    let expected = Pdu {
        sequence: 9,
        status: ESME_RTHROTTLED,
        command: SmppCommand::SubmitSmResp("".into()),
    };
    assert_eq!(Pdu::decode(&header), Ok(expected.clone()));
    let with_rubbish = [&header[..], &[0xff; 90]].concat();
    assert_eq!(Pdu::decode(&with_rubbish), Ok(expected));
}

#[test]
fn a_request_that_cannot_be_read_has_its_header() {
    let cut = [0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9, b'a', b'b'];
    let read = Pdu::decode(&cut).unwrap();
    assert_eq!(
        (read.sequence, read.command),
        (9, SmppCommand::OtherRequest(5))
    );
}

#[test]
fn the_length_of_a_pdu_is_bounded() {
    assert_eq!(Pdu::rest_of([0, 0, 0, 16]), Ok(12));
    for length in [[0, 0, 0, 0], [0, 0, 0, 15], [0, 2, 0, 0], [0xff; 4]] {
        assert!(Pdu::rest_of(length).is_err(), "{length:?}");
    }
    assert!(Pdu::decode(&[0; 11]).is_err());
}

#[test]
fn what_does_not_fit_its_field_is_not_written() {
    let cases = [
        ShortMessage {
            source: address("a name too long for a field"),
            ..submit()
        },
        ShortMessage {
            source: address("Zoë"),
            ..submit()
        },
        ShortMessage {
            validity_period: "soon".into(),
            ..submit()
        },
    ];
    for message in cases {
        let pdu = Pdu::request(1, SmppCommand::SubmitSm(Box::new(message)));
        assert!(pdu.encode().is_err(), "{pdu:?}");
    }
}

#[test]
fn no_password_is_printed() {
    assert!(!format!("{:?}", credentials()).contains("secret08"));
}

fn round(pdu: &Pdu) -> Pdu {
    let octets = pdu.encode().unwrap();
    let (length, rest) = octets.split_first_chunk().unwrap();
    assert_eq!(Pdu::rest_of(*length), Ok(rest.len()));
    Pdu::decode(rest).unwrap()
}

fn credentials() -> Credentials {
    Credentials {
        system_id: "SMPP3TEST".into(),
        password: "secret08".into(),
        system_type: "SUBMIT1".into(),
    }
}

fn address(text: &str) -> Address {
    Address {
        ton: 1,
        npi: 1,
        text: text.into(),
    }
}

fn submit() -> ShortMessage {
    ShortMessage {
        source: address("1234"),
        dest: address("882285100000001"),
        esm_class: UDHI,
        data_coding: 8,
        validity_period: "261124120000000+".into(),
        registered_delivery: RECEIPT_WANTED,
        octets: [5, 0, 3, 7, 2, 1, 0x04, 0x36].into(),
        user_message_reference: Some(500),
        ..ShortMessage::default()
    }
}

fn deliver() -> ShortMessage {
    ShortMessage {
        source: address("882285100000001"),
        dest: address("1234"),
        esm_class: 0b0000_0100,
        octets: b"id:00f3a1 stat:DELIVRD"[..].into(),
        user_message_reference: Some(500),
        receipted_message_id: Some("00f3a1".into()),
        message_state: Some(2),
        segment: Some(Segment {
            reference: 300,
            total: 2,
            number: 1,
        }),
        ..ShortMessage::default()
    }
}
