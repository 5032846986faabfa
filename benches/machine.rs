//! What do the decisions of a device's machine cost?

mod fleet;
mod talk;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use engine::action::{Lwm2mRequest, Mode, NewAction, Request};
use engine::datagram::Datagram;
use engine::delivery::address::policy::AddressPolicy;
use engine::device::Device;
use engine::device::record::{DeviceRecord, RestoredDevice};
use engine::directory::bootstrap::ServiceUris;
use engine::effect::{Effect, Effects, Outbound};
use engine::firmware::delivery::DownloadUris;
use engine::ids::TraceId;
use engine::limits::Limits;
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::policy::CustomerPolicy;
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules};
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId};

criterion_group!(machine, update, action);
criterion_main!(machine);

fn update(criterion: &mut Criterion) {
    let mut device = registered();
    let mut m = moment();
    let mut datagram = received(talk::update(
        device.location.iter().map(String::as_str),
        MessageId(1),
    ));
    criterion.bench_function("update that changes nothing", |bench| {
        bench.iter(|| {
            let MessageId(last) = datagram.message.message_id;
            datagram.message.message_id = MessageId(last.wrapping_add(1));
            let mut out = Effects::new();
            device.machine.handle_datagram(&mut m, &datagram, &mut out);
            out
        });
    });
    let mut out = Effects::new();
    device.machine.handle_datagram(&mut m, &datagram, &mut out);
    assert_eq!(
        answers(&out),
        [Code::CHANGED],
        "the update is answered 2.04 and no more"
    );
}

fn action(criterion: &mut Criterion) {
    let mut device = registered();
    let mut m = moment();
    criterion.bench_function("action request: submit, attempt, answer", |bench| {
        bench.iter(|| {
            let mut out = Effects::new();
            device
                .machine
                .submit(&mut m, read(), &mut out)
                .expect("an awake device takes it");
            let request = sent(&out).expect("an awake device is asked at once");
            let answer = Message::response_to(&request, Code::CONTENT, MessageId(0));
            let mut out = Effects::new();
            device.machine.handle_datagram(
                &mut m,
                &received(answer.with_payload("21.5")),
                &mut out,
            );
            out
        });
    });
}

/// A registered device, and the location of its registration.
struct Registered {
    machine: Device,
    location: Vec<String>,
}

fn registered() -> Registered {
    let rules = Rules {
        bootstrap: NoSecBootstrap::default(),
        uris: ServiceUris::default(),
        downloads: DownloadUris::default(),
        limits: Limits::default(),
        transmission: Transmission::STANDARD,
        names: EndpointTrust::AddressRequired,
        own: Box::default(),
        addresses: AddressPolicy::PublicOnly,
    };
    let restored = RestoredDevice {
        profile: fleet::profile(1),
        record: DeviceRecord::default(),
        pending: Vec::new(),
        recent_events: Box::default(),
    };
    let mut m = moment();
    let mut machine = Device::restore(
        &mut m,
        Arc::new(CustomerPolicy::of_rules(Arc::new(rules))),
        restored,
    );
    let mut out = Effects::new();
    let register = talk::register(1, MessageId(0));
    machine.handle_datagram(&mut m, &received(register), &mut out);
    let answer = sent(&out).expect("a registration is answered");
    assert_eq!(answer.code, Code::CREATED);
    let location = answer.location_path().map(str::to_owned).collect();
    Registered { machine, location }
}

fn received(message: Message) -> Datagram {
    let address = SocketAddr::new(IpAddr::V4(fleet::address(1)), 5_683);
    Datagram::new(0, Peer::plain(address), message)
}

/// The message that a step sends to the device.
fn sent(out: &Effects) -> Option<Message> {
    out.as_slice().iter().find_map(message_of)
}

/// The codes of all answers of a step that does nothing else; a Rebind that repeats the peer is
/// ignored, because it costs nothing.
fn answers(out: &Effects) -> Vec<Code> {
    let counts = |effect: &&Effect| !matches!(effect, Effect::Send(Outbound::Rebind { .. }));
    let code = |effect| message_of(effect).map_or(Code::EMPTY, |message| message.code);
    out.as_slice().iter().filter(counts).map(code).collect()
}

fn message_of(effect: &Effect) -> Option<Message> {
    match effect {
        Effect::Send(Outbound::Send { datagram, .. }) => {
            Some(Message::decode(datagram).expect("we send well-formed messages"))
        }
        Effect::Save(_)
        | Effect::Expect(_)
        | Effect::Count(_)
        | Effect::Log(_)
        | Effect::Send(
            Outbound::SendUdp { .. }
            | Outbound::Rebind { .. }
            | Outbound::PrepareBootstrap(_)
            | Outbound::ReadImage(_)
            | Outbound::NoteTransferred { .. },
        ) => None,
    }
}

fn read() -> NewAction {
    NewAction {
        request: Request::Lwm2m(Lwm2mRequest::Read(
            "/3303/0/5700".parse().expect("three numbers are a path"),
        )),
        mode: Mode::SendNow,
        attempts_permitted: 1,
        expires_in_s: None,
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([9; 16]),
        idempotent_call: None,
    }
}

fn moment() -> Moment {
    Moment::new(Timestamp::from_ms(1_795_219_200_000), 7)
}
