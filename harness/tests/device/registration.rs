//! How does a device register, and what if the server refuses?

use harness::device::configuration::{Configuration, Reachability, Retry};
use harness::device::event::{DeviceEvent, DeviceOutput, Uplink};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::lwm2m::version::EnablerVersion;

use super::world::{Fixture, answer, created, queries, reported, sent};

const QUEUE: Reachability = Reachability::Queue {
    awake_window_ms: 5_000,
};

#[test]
fn a_device_registers_with_its_name_lifetime_and_objects() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let [DeviceOutput::Send(datagram)] = &fixture.take()[..] else {
        panic!("not one datagram");
    };
    // Confirmable POST with a token of 8 bytes; message id and token are the device's choice.
    assert_eq!(datagram[..2], [0x48, 0x02]);
    let mut expected = b"\xb2rd\x11\x28\x37ep=lamp\x06lt=300\x09lwm2m=1.1\x03b=U\xff".to_vec();
    expected.extend_from_slice(
        b"</>;rt=\"oma.lwm2m\";ct=\"0 42 11542\",</1/0>,</3/0>,</6/0>,</3303/0>",
    );
    assert_eq!(
        String::from_utf8_lossy(&datagram[12..]),
        String::from_utf8_lossy(&expected)
    );
}

#[test]
fn the_response_makes_it_registered() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    // Acknowledgement 2.01 with the device's ids and Location-Path /rd/7.
    let mut datagram = vec![0x68, 0x41];
    datagram.extend_from_slice(&register.message_id.0.to_be_bytes());
    datagram.extend_from_slice(register.token.as_bytes());
    datagram.extend_from_slice(b"\x82rd\x017");
    assert_eq!(fixture.device.location(), None);
    fixture.deliver_bytes(&datagram);
    let location = fixture.device.location().unwrap().clone();
    assert_eq!(location.to_string(), "/rd/7");
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Registered { location })]
    );
}

#[test]
fn each_version_announces_queue_mode_in_its_own_way() {
    let cases = [
        (
            EnablerVersion::V1_0,
            Reachability::Always,
            vec!["lwm2m=1.0", "b=U"],
        ),
        (EnablerVersion::V1_0, QUEUE, vec!["lwm2m=1.0", "b=UQ"]),
        (EnablerVersion::V1_1, QUEUE, vec!["lwm2m=1.1", "b=U", "Q"]),
        (
            EnablerVersion::V1_2,
            Reachability::Always,
            vec!["lwm2m=1.2", "b=U"],
        ),
        (EnablerVersion::V1_2, QUEUE, vec!["lwm2m=1.2", "b=U", "Q"]),
    ];
    for (version, reachability, parameters) in cases {
        let configuration = Configuration {
            version,
            reachability,
            ..Configuration::new("lamp")
        };
        let register = Fixture::start(configuration).message();
        assert_eq!(queries(&register)[..2], ["ep=lamp", "lt=300"]);
        assert_eq!(queries(&register)[2..], parameters);
        assert_eq!(register.content_format(), Some(ContentFormat::LINK_FORMAT));
        let names_formats = register
            .payload
            .starts_with(b"</>;rt=\"oma.lwm2m\";ct=\"0 42 11542\"");
        assert_eq!(names_formats, version != EnablerVersion::V1_0);
    }
}

#[test]
fn a_registration_whose_response_is_lost_is_retransmitted_byte_by_byte() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let first = fixture.take();
    let waited_ms = fixture.pass_to_timeout();
    assert!((2_000..=3_000).contains(&waited_ms), "{waited_ms}");
    assert_eq!(fixture.take(), first);
    assert_eq!(fixture.pass_to_timeout(), 2 * waited_ms);
    let repeated = fixture.message();
    assert_eq!(sent(&repeated), first[0]);
    fixture.deliver(&created(&repeated));
    assert!(matches!(
        fixture.events()[..],
        [DeviceEvent::Registered { .. }]
    ));
}

#[test]
fn a_duplicate_response_to_a_registration_changes_nothing() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.deliver(&created(&register));
    fixture.take();
    fixture.deliver(&answer(&register, Code::CREATED).with_location_path(["rd", "8"]));
    assert_eq!(fixture.take(), []);
    assert_eq!(fixture.device.location().unwrap().to_string(), "/rd/7");
}

#[test]
fn an_unanswered_registration_is_given_up_and_retried() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let first = fixture.message();
    for _ in 0..4 {
        fixture.pass_to_timeout();
        assert_eq!(fixture.take(), [sent(&first)]);
    }
    fixture.pass_to_timeout();
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::GaveUp(Uplink::Register))]
    );
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
    let again = fixture.message();
    assert_eq!(again.payload, first.payload);
    assert_eq!(
        again.message_id,
        MessageId(first.message_id.0.wrapping_add(1))
    );
    assert_ne!(again.token, first.token);
}

#[test]
fn a_refused_device_waits_longer_each_time_until_a_success() {
    let retry = Retry {
        first_ms: 1_000,
        most_ms: 3_000,
    };
    let mut fixture = Fixture::start(Configuration {
        retry,
        ..Configuration::new("lamp")
    });
    for wait_ms in [1_000, 2_000, 3_000, 3_000] {
        refuse_registration(&mut fixture, wait_ms);
    }
    let register = fixture.message();
    fixture.deliver(&created(&register));
    fixture.pass_to_timeout();
    let update = fixture.messages().remove(0);
    fixture.deliver(&answer(&update, Code::NOT_FOUND));
    let [
        DeviceOutput::Report(DeviceEvent::RegistrationLost),
        DeviceOutput::Send(register),
    ] = &fixture.take()[..]
    else {
        panic!("no new registration");
    };
    let register = Message::decode(register).unwrap();
    fixture.deliver(&answer(&register, Code::FORBIDDEN));
    let waited_ms = fixture.pass_to_timeout();
    assert!((1_000..=1_250).contains(&waited_ms), "{waited_ms}");
}

fn refuse_registration(fixture: &mut Fixture, wait_ms: i64) {
    let code = Code::FORBIDDEN;
    let register = fixture.message();
    fixture.deliver(&answer(&register, code));
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Refused {
            uplink: Uplink::Register,
            code
        })]
    );
    let waited_ms = fixture.pass_to_timeout();
    assert!(
        (wait_ms..=wait_ms + wait_ms / 4).contains(&waited_ms),
        "{waited_ms}"
    );
}

#[test]
fn the_max_age_of_a_busy_server_delays_the_retry() {
    for code in [Code::SERVICE_UNAVAILABLE, Code::TOO_MANY_REQUESTS] {
        let mut fixture = Fixture::start(Configuration::new("lamp"));
        let register = fixture.message();
        fixture.deliver(&answer(&register, code).with_max_age(77));
        assert_eq!(
            fixture.events(),
            [DeviceEvent::Refused {
                uplink: Uplink::Register,
                code
            }]
        );
        assert_eq!(fixture.pass_to_timeout(), 77_000);
        assert_eq!(queries(&fixture.message()), queries(&register));
    }
}

#[test]
fn the_max_age_of_another_refusal_does_not_matter() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.deliver(&answer(&register, Code::FORBIDDEN).with_max_age(77));
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
}

#[test]
fn a_response_without_a_location_is_a_failure() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.deliver(&answer(&register, Code::CREATED));
    let code = Code::CREATED;
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::Refused {
            uplink: Uplink::Register,
            code
        })]
    );
    assert_eq!(fixture.device.location(), None);
}

#[test]
fn a_reset_of_the_registration_is_a_failure() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.deliver(&Message::reset(register.message_id));
    assert_eq!(
        fixture.take(),
        [reported(DeviceEvent::GaveUp(Uplink::Register))]
    );
    assert!((2_000..=2_500).contains(&fixture.pass_to_timeout()));
}

#[test]
fn each_copy_of_a_separate_response_is_acknowledged() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    fixture.deliver(&Message::acknowledgement(register.message_id));
    assert_eq!(fixture.take(), []);
    let id = MessageId(9_000);
    let created = Message::separate(MessageKind::Confirmable, Code::CREATED, id, register.token)
        .with_location_path(["rd", "7"]);
    let acknowledgement = sent(&Message::acknowledgement(id));
    fixture.deliver(&created);
    let location = fixture.device.location().unwrap().clone();
    assert_eq!(
        fixture.take(),
        [
            acknowledgement.clone(),
            reported(DeviceEvent::Registered { location })
        ]
    );
    fixture.deliver(&created);
    assert_eq!(fixture.take(), [acknowledgement]);
}

#[test]
fn a_response_with_an_unknown_critical_option_is_rejected() {
    let mut fixture = Fixture::start(Configuration::new("lamp"));
    let register = fixture.message();
    let id = MessageId(9_000);
    let created = Message::separate(MessageKind::Confirmable, Code::CREATED, id, register.token)
        .with_location_path(["rd", "7"])
        .with_option(65_001, b"?");
    fixture.deliver(&created);
    let gave_up = reported(DeviceEvent::GaveUp(Uplink::Register));
    assert_eq!(fixture.take(), [sent(&Message::reset(id)), gave_up]);
    assert_eq!(fixture.device.location(), None);
}
