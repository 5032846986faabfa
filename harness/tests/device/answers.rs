//! How does a device answer requests?

use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, DeviceOutput, Operation, Uplink};
use harness::device::resource::{AnswerMode, Resource};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::lwm2m::value::Value;

use super::world::{Fixture, answer, answered, at, left_unanswered, reported, sent};

#[test]
fn a_read_is_answered_in_the_acknowledgement() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    // Confirmable GET /3303/0/5700, message id 0x1234, token 0xAB.
    fixture.deliver_bytes(b"\x41\x01\x12\x34\xab\xb43303\x010\x045700");
    // Acknowledgement 2.05 with the same ids, Content-Format 0 and the text.
    let reply = b"\x61\x45\x12\x34\xab\xc0\xff21.5".to_vec();
    let event = answered(Operation::Read, "/3303/0/5700", Code::CONTENT);
    assert_eq!(fixture.take(), [event, DeviceOutput::Send(reply)]);
}

#[test]
fn a_write_changes_what_is_read() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let write = fixture.write("/3/0/14", "+02:00");
    fixture.deliver(&write);
    let event = answered(Operation::Write, "/3/0/14", Code::CHANGED);
    assert_eq!(
        fixture.take(),
        [event, sent(&answer(&write, Code::CHANGED))]
    );
    assert_eq!(
        fixture.device.value(at("/3/0/14")),
        Some(&Value::String("+02:00".into()))
    );
    assert_eq!(fixture.device.executed(at("/3/0/14")), 1);
    let read = fixture.read("/3/0/14");
    fixture.deliver(&read);
    assert_eq!(fixture.messages()[0].payload, b"+02:00");
}

#[test]
fn performed_operations_are_logged_in_order() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let requests = [
        fixture.read("/3/0/0"),
        fixture.write("/3/0/15", "Europe/Berlin"),
        fixture.read("/3/0/99"),
        fixture.execute("/1/0/8").with_payload("0='x'"),
    ];
    requests.iter().for_each(|request| fixture.deliver(request));
    let performed: Vec<_> = fixture
        .device
        .performed()
        .map(|done| {
            (
                done.number,
                done.operation,
                done.path,
                done.token,
                &done.payload[..],
            )
        })
        .collect();
    let expected = [
        (
            0,
            Operation::Read,
            at("/3/0/0"),
            requests[0].token,
            b"Signalbox".as_slice(),
        ),
        (
            1,
            Operation::Write,
            at("/3/0/15"),
            requests[1].token,
            b"Europe/Berlin".as_slice(),
        ),
        (
            2,
            Operation::Execute,
            at("/1/0/8"),
            requests[3].token,
            b"0='x'".as_slice(),
        ),
    ];
    assert_eq!(performed, expected);
    assert_eq!(fixture.device.performed_count(), 3);
}

#[test]
fn each_answer_mode_answers_a_confirmable_request_differently() {
    let path = "/3303/0/5700";
    let read_told = answered(Operation::Read, path, Code::CONTENT);
    let unanswered = left_unanswered(Operation::Read, path);
    for answering in every_answer() {
        let mut fixture = Fixture::registered(lamp(answering));
        let next = next_message_id(&mut fixture);
        let read = fixture.read(path);
        fixture.deliver(&read);
        let piggybacked = value_in(answer(&read, Code::CONTENT));
        let acknowledged = sent(&Message::acknowledgement(read.message_id));
        let apart = |kind| value_in(Message::separate(kind, Code::CONTENT, next, read.token));
        let expected = match answering {
            AnswerMode::Piggybacked => vec![read_told.clone(), sent(&piggybacked)],
            AnswerMode::SeparateConfirmable { .. } | AnswerMode::SeparateNonConfirmable { .. } => {
                vec![acknowledged]
            }
            AnswerMode::NonConfirmable => {
                vec![read_told.clone(), sent(&apart(MessageKind::NonConfirmable))]
            }
            AnswerMode::AcknowledgeOnly => vec![unanswered.clone(), acknowledged],
            AnswerMode::Silent => vec![unanswered.clone()],
            AnswerMode::Reset => vec![unanswered.clone(), sent(&Message::reset(read.message_id))],
            AnswerMode::Code(code) => {
                vec![
                    answered(Operation::Read, path, code),
                    sent(&answer(&read, code)),
                ]
            }
        };
        assert_eq!(fixture.take(), expected, "{answering:?}");
        let later = match answering {
            AnswerMode::SeparateConfirmable { .. } => Some(MessageKind::Confirmable),
            AnswerMode::SeparateNonConfirmable { .. } => Some(MessageKind::NonConfirmable),
            AnswerMode::Piggybacked
            | AnswerMode::NonConfirmable
            | AnswerMode::AcknowledgeOnly
            | AnswerMode::Silent
            | AnswerMode::Reset
            | AnswerMode::Code(_) => None,
        };
        if let Some(kind) = later {
            assert_eq!(fixture.pass_to_timeout(), 400, "{answering:?}");
            assert_eq!(
                fixture.take(),
                [sent(&apart(kind)), read_told.clone()],
                "{answering:?}"
            );
        }
        assert_eq!(
            fixture.device.performed_count(),
            performs(answering),
            "{answering:?}"
        );
    }
}

#[test]
fn no_answer_mode_acknowledges_a_non_confirmable_request() {
    let path = "/3303/0/5700";
    for answering in every_answer() {
        let mut fixture = Fixture::registered(lamp(answering));
        let next = next_message_id(&mut fixture);
        let read = fixture.request(MessageKind::NonConfirmable, Operation::Read, path);
        fixture.deliver(&read);
        let apart = |kind, code| Message::separate(kind, code, next, read.token);
        let at_once = match answering {
            AnswerMode::Piggybacked | AnswerMode::NonConfirmable => {
                Some(value_in(apart(MessageKind::NonConfirmable, Code::CONTENT)))
            }
            AnswerMode::Code(code) => Some(apart(MessageKind::NonConfirmable, code)),
            AnswerMode::Reset => Some(Message::reset(read.message_id)),
            AnswerMode::SeparateConfirmable { .. }
            | AnswerMode::SeparateNonConfirmable { .. }
            | AnswerMode::AcknowledgeOnly
            | AnswerMode::Silent => None,
        };
        let messages = fixture.messages();
        assert_eq!(
            messages,
            at_once.into_iter().collect::<Vec<_>>(),
            "{answering:?}"
        );
        assert_eq!(
            fixture.device.performed_count(),
            performs(answering),
            "{answering:?}"
        );
    }
}

#[test]
fn every_answer_mode_applies_to_write_and_execute() {
    for answering in every_answer() {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        for path in ["/3/0/14", "/1/0/8"] {
            fixture.device.answer_with(at(path), answering);
        }
        let (write, execute) = (
            fixture.write("/3/0/14", "+02:00"),
            fixture.execute("/1/0/8"),
        );
        fixture.deliver(&write);
        fixture.deliver(&execute);
        for path in ["/3/0/14", "/1/0/8"] {
            assert_eq!(
                fixture.device.executed(at(path)),
                performs(answering),
                "{answering:?}"
            );
        }
    }
}

#[test]
fn a_separate_response_is_retransmitted_until_it_is_acknowledged() {
    let mut fixture = Fixture::registered(lamp(AnswerMode::SeparateConfirmable { after_ms: 400 }));
    let read = fixture.read("/3303/0/5700");
    fixture.deliver(&read);
    fixture.take();
    fixture.pass_to_timeout();
    let response = fixture.messages().remove(0);
    for _ in 0..2 {
        fixture.pass_to_timeout();
        assert_eq!(fixture.take(), [sent(&response)]);
    }
    fixture.deliver(&Message::acknowledgement(MessageId(
        response.message_id.0 ^ 1,
    )));
    fixture.pass_to_timeout();
    assert_eq!(
        fixture.take(),
        [sent(&response)],
        "the acknowledgement was of something else"
    );
    fixture.deliver(&Message::acknowledgement(response.message_id));
    assert_eq!(fixture.take(), []);
    fixture.pass(200_000);
    assert_eq!(fixture.take(), [], "nothing is due before the update");
}

#[test]
fn a_separate_response_ends_with_a_reset() {
    let mut fixture = Fixture::registered(lamp(AnswerMode::SeparateConfirmable { after_ms: 400 }));
    let read = fixture.read("/3303/0/5700");
    fixture.deliver(&read);
    fixture.pass_to_timeout();
    let response = fixture.messages().remove(1);
    fixture.deliver(&Message::reset(response.message_id));
    fixture.pass(200_000);
    assert_eq!(fixture.take(), []);
}

#[test]
fn an_unacknowledged_separate_response_is_given_up() {
    let mut fixture = Fixture::registered(lamp(AnswerMode::SeparateConfirmable { after_ms: 400 }));
    let read = fixture.read("/3303/0/5700");
    fixture.deliver(&read);
    fixture.take();
    fixture.pass(120_000);
    let put_out = fixture.take();
    assert_eq!(
        put_out.len(),
        7,
        "five transmissions and two pieces of news"
    );
    assert_eq!(
        put_out.last(),
        Some(&reported(DeviceEvent::GaveUp(Uplink::Answer)))
    );
}

#[test]
fn an_opaque_value_is_encoded_as_bytes_or_as_base64() {
    let mut configuration = Configuration::new("lamp");
    let key = Resource::holding(at("/33000/0/1"), Value::Opaque(vec![0, 0xFF]));
    configuration.resources.push(key);
    let mut fixture = Fixture::registered(configuration);
    let cases = [
        (None, ContentFormat::OCTET_STREAM, vec![0, 0xFF]),
        (
            Some(ContentFormat::OCTET_STREAM),
            ContentFormat::OCTET_STREAM,
            vec![0, 0xFF],
        ),
        (
            Some(ContentFormat::TEXT),
            ContentFormat::TEXT,
            b"AP8=".to_vec(),
        ),
    ];
    for (accept, format, payload) in cases {
        let read = fixture.read("/33000/0/1");
        fixture.deliver(&accept.into_iter().fold(read, Message::with_accept));
        let response = fixture.messages().remove(0);
        assert_eq!(
            (response.content_format(), response.payload),
            (Some(format), payload)
        );
    }
    let write = fixture.write("/33000/0/1", "").with_payload([1, 2, 3]);
    fixture.deliver(&write.with_content_format(ContentFormat::OCTET_STREAM));
    assert_eq!(
        fixture.device.value(at("/33000/0/1")),
        Some(&Value::Opaque(vec![1, 2, 3]))
    );
}

fn every_answer() -> [AnswerMode; 8] {
    [
        AnswerMode::Piggybacked,
        AnswerMode::SeparateConfirmable { after_ms: 400 },
        AnswerMode::SeparateNonConfirmable { after_ms: 400 },
        AnswerMode::NonConfirmable,
        AnswerMode::AcknowledgeOnly,
        AnswerMode::Silent,
        AnswerMode::Reset,
        AnswerMode::Code(Code::UNAUTHORIZED),
    ]
}

fn performs(answering: AnswerMode) -> u64 {
    match answering {
        AnswerMode::Piggybacked
        | AnswerMode::SeparateConfirmable { .. }
        | AnswerMode::SeparateNonConfirmable { .. }
        | AnswerMode::NonConfirmable
        | AnswerMode::AcknowledgeOnly => 1,
        AnswerMode::Silent | AnswerMode::Reset | AnswerMode::Code(_) => 0,
    }
}

fn lamp(answering: AnswerMode) -> Configuration {
    let mut configuration = Configuration::new("lamp");
    for resource in &mut configuration.resources {
        resource.answer = answering;
    }
    configuration
}

fn value_in(response: Message) -> Message {
    response
        .with_content_format(ContentFormat::TEXT)
        .with_payload("21.5")
}

// Message ids increment; an update shows the next one.
fn next_message_id(fixture: &mut Fixture) -> MessageId {
    fixture.order(|device, now_ms, out| device.update(now_ms, out));
    let update = fixture.message();
    fixture.deliver(&answer(&update, Code::CHANGED));
    fixture.take();
    MessageId(update.message_id.0.wrapping_add(1))
}
