//! How does a device answer what it is asked?

use harness::device::configuration::Configuration;
use harness::device::event::{Event, Operation, Output, Uplink};
use harness::device::resource::{Answer, Resource};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::lwm2m::value::Value;

use super::world::{World, answer, answered, at, left_unanswered, sent, told};

#[test]
fn a_read_is_answered_in_the_acknowledgement() {
    let mut world = World::registered(Configuration::new("lamp"));
    // Confirmable GET /3303/0/5700, message id 0x1234, token 0xAB.
    world.hear_bytes(b"\x41\x01\x12\x34\xab\xb43303\x010\x045700");
    // Acknowledgement 2.05 with the same ids, Content-Format 0 and the text.
    let reply = b"\x61\x45\x12\x34\xab\xc0\xff21.5".to_vec();
    let told = answered(Operation::Read, "/3303/0/5700", Code::CONTENT);
    assert_eq!(world.take(), [told, Output::Send(reply)]);
}

#[test]
fn a_write_changes_what_is_read() {
    let mut world = World::registered(Configuration::new("lamp"));
    let write = world.write("/3/0/14", "+02:00");
    world.hear(&write);
    let told = answered(Operation::Write, "/3/0/14", Code::CHANGED);
    assert_eq!(world.take(), [told, sent(&answer(&write, Code::CHANGED))]);
    assert_eq!(
        world.device.value(at("/3/0/14")),
        Some(&Value::String("+02:00".into()))
    );
    assert_eq!(world.device.executed(at("/3/0/14")), 1);
    let read = world.read("/3/0/14");
    world.hear(&read);
    assert_eq!(world.messages()[0].payload, b"+02:00");
}

#[test]
fn what_was_performed_is_remembered_in_order() {
    let mut world = World::registered(Configuration::new("lamp"));
    let asked = [
        world.read("/3/0/0"),
        world.write("/3/0/15", "Europe/Berlin"),
        world.read("/3/0/99"),
        world.execute("/1/0/8").with_payload("0='x'"),
    ];
    asked.iter().for_each(|request| world.hear(request));
    let performed: Vec<_> = world
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
            asked[0].token,
            b"Signalbox".as_slice(),
        ),
        (
            1,
            Operation::Write,
            at("/3/0/15"),
            asked[1].token,
            b"Europe/Berlin".as_slice(),
        ),
        (
            2,
            Operation::Execute,
            at("/1/0/8"),
            asked[3].token,
            b"0='x'".as_slice(),
        ),
    ];
    assert_eq!(performed, expected);
    assert_eq!(world.device.performed_count(), 3);
}

#[test]
fn each_way_to_answer_a_confirmable_request_is_its_own() {
    let path = "/3303/0/5700";
    let read_told = answered(Operation::Read, path, Code::CONTENT);
    let unanswered = left_unanswered(Operation::Read, path);
    for answering in every_answer() {
        let mut world = World::registered(lamp(answering));
        let next = next_message_id(&mut world);
        let read = world.read(path);
        world.hear(&read);
        let piggybacked = value_in(answer(&read, Code::CONTENT));
        let acknowledged = sent(&Message::acknowledgement(read.message_id));
        let apart = |kind| value_in(Message::separate(kind, Code::CONTENT, next, read.token));
        let expected = match answering {
            Answer::Piggybacked => vec![read_told.clone(), sent(&piggybacked)],
            Answer::SeparateConfirmable { .. } | Answer::SeparateNonConfirmable { .. } => {
                vec![acknowledged]
            }
            Answer::NonConfirmable => vec![read_told.clone(), sent(&apart(Kind::NonConfirmable))],
            Answer::AcknowledgeOnly => vec![unanswered.clone(), acknowledged],
            Answer::Silent => vec![unanswered.clone()],
            Answer::Reset => vec![unanswered.clone(), sent(&Message::reset(read.message_id))],
            Answer::Code(code) => {
                vec![
                    answered(Operation::Read, path, code),
                    sent(&answer(&read, code)),
                ]
            }
        };
        assert_eq!(world.take(), expected, "{answering:?}");
        let later = match answering {
            Answer::SeparateConfirmable { .. } => Some(Kind::Confirmable),
            Answer::SeparateNonConfirmable { .. } => Some(Kind::NonConfirmable),
            Answer::Piggybacked
            | Answer::NonConfirmable
            | Answer::AcknowledgeOnly
            | Answer::Silent
            | Answer::Reset
            | Answer::Code(_) => None,
        };
        if let Some(kind) = later {
            assert_eq!(world.pass_to_timeout(), 400, "{answering:?}");
            assert_eq!(
                world.take(),
                [sent(&apart(kind)), read_told.clone()],
                "{answering:?}"
            );
        }
        assert_eq!(
            world.device.performed_count(),
            performs(answering),
            "{answering:?}"
        );
    }
}

#[test]
fn each_way_to_answer_a_non_confirmable_request_owes_no_acknowledgement() {
    let path = "/3303/0/5700";
    for answering in every_answer() {
        let mut world = World::registered(lamp(answering));
        let next = next_message_id(&mut world);
        let read = world.request(Kind::NonConfirmable, Operation::Read, path);
        world.hear(&read);
        let apart = |kind, code| Message::separate(kind, code, next, read.token);
        let at_once = match answering {
            Answer::Piggybacked | Answer::NonConfirmable => {
                Some(value_in(apart(Kind::NonConfirmable, Code::CONTENT)))
            }
            Answer::Code(code) => Some(apart(Kind::NonConfirmable, code)),
            Answer::Reset => Some(Message::reset(read.message_id)),
            Answer::SeparateConfirmable { .. }
            | Answer::SeparateNonConfirmable { .. }
            | Answer::AcknowledgeOnly
            | Answer::Silent => None,
        };
        let messages = world.messages();
        assert_eq!(
            messages,
            at_once.into_iter().collect::<Vec<_>>(),
            "{answering:?}"
        );
        assert_eq!(
            world.device.performed_count(),
            performs(answering),
            "{answering:?}"
        );
    }
}

#[test]
fn every_way_to_answer_holds_for_write_and_execute_too() {
    for answering in every_answer() {
        let mut world = World::registered(Configuration::new("lamp"));
        for path in ["/3/0/14", "/1/0/8"] {
            world.device.answer_with(at(path), answering);
        }
        let (write, execute) = (world.write("/3/0/14", "+02:00"), world.execute("/1/0/8"));
        world.hear(&write);
        world.hear(&execute);
        for path in ["/3/0/14", "/1/0/8"] {
            assert_eq!(
                world.device.executed(at(path)),
                performs(answering),
                "{answering:?}"
            );
        }
    }
}

#[test]
fn a_separate_answer_is_repeated_until_it_is_acknowledged() {
    let mut world = World::registered(lamp(Answer::SeparateConfirmable { after_ms: 400 }));
    let read = world.read("/3303/0/5700");
    world.hear(&read);
    world.take();
    world.pass_to_timeout();
    let response = world.messages().remove(0);
    for _ in 0..2 {
        world.pass_to_timeout();
        assert_eq!(world.take(), [sent(&response)]);
    }
    world.hear(&Message::acknowledgement(MessageId(
        response.message_id.0 ^ 1,
    )));
    world.pass_to_timeout();
    assert_eq!(
        world.take(),
        [sent(&response)],
        "the acknowledgement was of something else"
    );
    world.hear(&Message::acknowledgement(response.message_id));
    assert_eq!(world.take(), []);
    world.pass(200_000);
    assert_eq!(world.take(), [], "nothing is left to say before the update");
}

#[test]
fn a_separate_answer_is_dropped_when_it_is_refused() {
    let mut world = World::registered(lamp(Answer::SeparateConfirmable { after_ms: 400 }));
    let read = world.read("/3303/0/5700");
    world.hear(&read);
    world.pass_to_timeout();
    let response = world.messages().remove(1);
    world.hear(&Message::reset(response.message_id));
    world.pass(200_000);
    assert_eq!(world.take(), []);
}

#[test]
fn a_separate_answer_nobody_acknowledges_is_given_up() {
    let mut world = World::registered(lamp(Answer::SeparateConfirmable { after_ms: 400 }));
    let read = world.read("/3303/0/5700");
    world.hear(&read);
    world.take();
    world.pass(120_000);
    let put_out = world.take();
    assert_eq!(
        put_out.len(),
        7,
        "five transmissions and two pieces of news"
    );
    assert_eq!(put_out.last(), Some(&told(Event::GaveUp(Uplink::Answer))));
}

#[test]
fn an_opaque_value_travels_as_bytes_or_as_base64() {
    let mut configuration = Configuration::new("lamp");
    let key = Resource::holding(at("/33000/0/1"), Value::Opaque(vec![0, 0xFF]));
    configuration.resources.push(key);
    let mut world = World::registered(configuration);
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
        let read = world.read("/33000/0/1");
        world.hear(&accept.into_iter().fold(read, Message::with_accept));
        let response = world.messages().remove(0);
        assert_eq!(
            (response.content_format(), response.payload),
            (Some(format), payload)
        );
    }
    let write = world.write("/33000/0/1", "").with_payload([1, 2, 3]);
    world.hear(&write.with_content_format(ContentFormat::OCTET_STREAM));
    assert_eq!(
        world.device.value(at("/33000/0/1")),
        Some(&Value::Opaque(vec![1, 2, 3]))
    );
}

fn every_answer() -> [Answer; 8] {
    [
        Answer::Piggybacked,
        Answer::SeparateConfirmable { after_ms: 400 },
        Answer::SeparateNonConfirmable { after_ms: 400 },
        Answer::NonConfirmable,
        Answer::AcknowledgeOnly,
        Answer::Silent,
        Answer::Reset,
        Answer::Code(Code::UNAUTHORIZED),
    ]
}

fn performs(answering: Answer) -> u64 {
    match answering {
        Answer::Piggybacked
        | Answer::SeparateConfirmable { .. }
        | Answer::SeparateNonConfirmable { .. }
        | Answer::NonConfirmable
        | Answer::AcknowledgeOnly => 1,
        Answer::Silent | Answer::Reset | Answer::Code(_) => 0,
    }
}

fn lamp(answering: Answer) -> Configuration {
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

// The device counts its message ids up; an update shows where it stands.
fn next_message_id(world: &mut World) -> MessageId {
    world.order(|device, now_ms, out| device.update(now_ms, out));
    let update = world.message();
    world.hear(&answer(&update, Code::CHANGED));
    world.take();
    MessageId(update.message_id.0.wrapping_add(1))
}
