//! How does a device send measured values, and which results does it report? (LwM2M Core 1.1
//! section 6.4.4)

use harness::device::configuration::{Configuration, Reachability};
use harness::device::event::{DeviceEvent, DeviceOutput, Uplink};
use harness::device::sending::Unsent;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{Measured, Sample, Scope, decode_samples};
use protocol::lwm2m::value::{ObjectLink, Value};

use super::world::{Fixture, answer, at};

const SENML: [ContentFormat; 2] = [ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR];

#[test]
fn samples_of_every_type_and_time_are_sent() {
    let samples = samples();
    for format in SENML {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        let message = sent(&mut fixture, format, &samples);
        assert_eq!(
            (message.kind, message.code),
            (MessageKind::Confirmable, Code::POST)
        );
        assert_eq!(message.uri_path().collect::<Vec<_>>(), ["dp"]);
        assert_eq!(message.content_format(), Some(format));
        let type_of = |path: Path| {
            let sample = samples.iter().find(|sample| sample.path == path)?;
            Some(sample.value.data_type())
        };
        let read = decode_samples(Some(format), Scope::All, &message.payload, &type_of);
        assert_eq!(read, Ok(samples.clone()), "{format}");
    }
}

#[test]
fn samples_without_time_are_sent_in_formats_without_time() {
    let format = ContentFormat::LWM2M_CBOR;
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let now = [sample("/3303/0/5700", Value::Float(21.5), None)];
    let message = sent(&mut fixture, format, &now);
    let read = decode_samples(Some(format), Scope::All, &message.payload, &|_| None);
    assert_eq!(read, Ok(now.to_vec()));
    fixture.deliver(&answer(&message, Code::CHANGED));
    fixture.take();
    let earlier = [sample(
        "/3/0/9",
        Value::Integer(1),
        Some(Measured::Relative(-1)),
    )];
    for (format, samples) in [
        (format, &earlier[..]),
        (ContentFormat::TEXT, &now),
        (
            ContentFormat::SENML_JSON,
            &[sample("/3303/0/5700", Value::Float(f64::NAN), None)],
        ),
    ] {
        let refused = send(&mut fixture, format, samples);
        assert_eq!(refused, Err(Unsent::Unencodable), "{format}");
        assert_eq!(fixture.take(), []);
    }
}

#[test]
fn the_server_s_response_is_reported() {
    let uplink = Uplink::Send;
    let cases = [
        (Code::CHANGED, DeviceEvent::Sent),
        (
            Code::NOT_FOUND,
            DeviceEvent::Refused {
                uplink,
                code: Code::NOT_FOUND,
            },
        ),
    ];
    for (code, event) in cases {
        let mut fixture = Fixture::registered(Configuration::new("lamp"));
        let message = sent(&mut fixture, ContentFormat::SENML_CBOR, &samples());
        fixture.deliver(&answer(&message, code));
        assert_eq!(fixture.take(), [DeviceOutput::Report(event)]);
        assert!(fixture.device.location().is_some(), "it stays registered");
    }
}

#[test]
fn unacknowledged_samples_are_retransmitted_and_given_up() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let message = sent(&mut fixture, ContentFormat::SENML_JSON, &samples());
    fixture.pass(94_000);
    let put_out = fixture.take();
    let repeats = put_out
        .iter()
        .filter(|it| **it == DeviceOutput::Send(message.encode()));
    assert_eq!(repeats.count(), 4);
    assert_eq!(
        put_out.last(),
        Some(&DeviceOutput::Report(DeviceEvent::GaveUp(Uplink::Send)))
    );
    assert!(fixture.device.location().is_some(), "it stays registered");
}

#[test]
fn a_sleeping_device_wakes_to_send() {
    let mut fixture = Fixture::registered(Configuration {
        reachability: Reachability::Queue {
            awake_window_ms: 1_000,
        },
        ..Configuration::new("lamp")
    });
    fixture.pass(1_000);
    fixture.take();
    assert!(fixture.device.is_asleep());
    send(&mut fixture, ContentFormat::SENML_CBOR, &samples()).unwrap();
    let put_out = fixture.take();
    assert!(matches!(
        put_out[..],
        [
            DeviceOutput::Report(DeviceEvent::Awake),
            DeviceOutput::Send(_)
        ]
    ));
}

#[test]
fn a_device_that_is_busy_or_off_does_not_send() {
    let mut fixture = Fixture::registered(Configuration::new("lamp"));
    let format = ContentFormat::SENML_CBOR;
    send(&mut fixture, format, &samples()).unwrap();
    assert_eq!(send(&mut fixture, format, &samples()), Err(Unsent::Busy));
    fixture.device.power_off();
    assert_eq!(send(&mut fixture, format, &samples()), Err(Unsent::Off));
}

fn send(fixture: &mut Fixture, format: ContentFormat, samples: &[Sample]) -> Result<(), Unsent> {
    let mut result = Ok(());
    fixture.order(|device, now_ms, out| result = device.send(now_ms, format, samples, out));
    result
}

/// Sends samples, and returns the message.
fn sent(fixture: &mut Fixture, format: ContentFormat, samples: &[Sample]) -> Message {
    send(fixture, format, samples).unwrap();
    fixture.message()
}

fn samples() -> Vec<Sample> {
    let (object, instance) = (3, 65_535);
    let earlier = |ms| Some(Measured::Relative(ms));
    let date = |ms| Some(Measured::Absolute(ms));
    vec![
        sample("/3303/0/5700", Value::Float(-21.5), date(1_795_257_412_345)),
        sample("/3303/0/5700", Value::Float(1e300), date(1_795_257_413_000)),
        sample("/3303/0/5700", Value::Float(0.1), earlier(-5_250)),
        sample("/3303/0/5850", Value::Boolean(true), earlier(-250)),
        sample("/3303/0/5821", Value::String("\"é\\\n\u{1}".into()), None),
        sample(
            "/3303/0/5750",
            Value::CoreLink("</1>".into()),
            earlier(60_000),
        ),
        sample("/3/0/9", Value::Integer(-300), None),
        sample("/3/0/10", Value::UnsignedInteger(u64::MAX), None),
        sample("/3/0/13", Value::Time(1_795_257_412), earlier(0)),
        sample("/5/0/0", Value::Opaque(vec![0xfb, 0xff, 0]), None),
        sample("/4/0/1/7", Value::Integer(70_000), None),
        sample("/4/0/1/300", Value::Integer(i64::MIN), None),
        sample(
            "/3/0/22/0",
            Value::ObjectLink(ObjectLink { object, instance }),
            None,
        ),
    ]
}

fn sample(path: &str, value: Value, measured: Option<Measured>) -> Sample {
    Sample {
        path: at(path),
        value,
        measured,
    }
}
