//! How does a device get its account?

use harness::device::configuration::{Bootstrapping, Configuration};
use harness::device::event::DeviceEvent;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::coap::token::Token;
use protocol::lwm2m::bootstrap;
use protocol::lwm2m::operation::ExchangeLabel;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Reading;
use protocol::lwm2m::value::Value;

use super::world::{Fixture, answer, at, queries, reported};

#[test]
fn a_device_without_account_is_bootstrapped_and_then_registers() {
    let mut fixture = Fixture::start(without_account(10_000));
    assert_eq!(fixture.take(), [], "it holds off");
    assert_eq!(fixture.pass_to_timeout(), 10_000);
    let asked = fixture.message();
    assert_eq!(asked.uri_path().collect::<Vec<_>>(), ["bs"]);
    assert_eq!(queries(&asked), ["ep=meter", "pct=11542"]);
    fixture.deliver(&answer(&asked, Code::CHANGED));

    assert_eq!(ask(&mut fixture, bootstrap::delete_all), Code::DELETED);
    let list = |label| bootstrap::discover(label, 0);
    assert_eq!(ask(&mut fixture, list), Code::CONTENT);
    assert_eq!(ask(&mut fixture, bootstrap::finish), Code::NOT_ACCEPTABLE);
    fixture.pass_to_timeout();
    let again = fixture.message();
    assert_eq!(again.uri_path().collect::<Vec<_>>(), ["bs"]);
    // The server begins before its answer arrives.
    assert_eq!(ask(&mut fixture, bootstrap::delete_all), Code::DELETED);
    let account = Reading::from([
        (at("/0/1/0"), Value::String("coap://a.example".into())),
        (at("/0/1/1"), Value::Boolean(false)),
        (at("/0/1/10"), Value::Integer(1111)),
    ]);
    assert_eq!(write(&mut fixture, "/0/1", &account), Code::CHANGED);
    let server = Reading::from([
        (at("/1/0/0"), Value::Integer(1111)),
        (at("/1/0/1"), Value::Integer(60)),
    ]);
    assert_eq!(write(&mut fixture, "/1/0", &server), Code::CHANGED);
    assert_eq!(ask(&mut fixture, bootstrap::finish), Code::CHANGED);
    fixture.pass_to_timeout();
    let register = fixture.message();
    assert_eq!(register.uri_path().collect::<Vec<_>>(), ["rd"]);
    assert!(queries(&register).contains(&"lt=60"));
    let links = String::from_utf8(register.payload).unwrap();
    assert!(
        links.contains("</1/0>") && !links.contains("</0"),
        "{links}"
    );
}

#[test]
fn an_account_counts_once_the_bootstrap_is_finished() {
    let mut fixture = Fixture::start(without_account(0));
    let asked = fixture.message();
    fixture.deliver(&answer(&asked, Code::CHANGED));
    fixture.order(|device, now_ms, out| device.reboot(now_ms, out));
    let outputs = fixture.take();
    assert_eq!(outputs[0], reported(DeviceEvent::Rebooted));
    fixture.pass_to_timeout();
    assert_eq!(fixture.message().uri_path().collect::<Vec<_>>(), ["bs"]);
}

/// The answer of the device to a request of the bootstrap server.
fn ask(fixture: &mut Fixture, request: impl FnOnce(ExchangeLabel) -> Message) -> Code {
    let id = fixture.fresh_id();
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let message_id = MessageId(id);
    fixture.deliver(&request(ExchangeLabel { message_id, token }));
    fixture.messages().pop().unwrap().code
}

fn write(fixture: &mut Fixture, instance: &str, values: &Reading) -> Code {
    let instance: Path = at(instance);
    ask(fixture, |label| {
        bootstrap::write(label, instance, values, ContentFormat::LWM2M_TLV).unwrap()
    })
}

fn without_account(hold_off_ms: u32) -> Configuration {
    Configuration {
        bootstrap: Some(Bootstrapping {
            hold_off_ms,
            preferred: Some(ContentFormat::LWM2M_TLV),
            refused_percent: 0,
        }),
        ..Configuration::new("meter")
    }
}
