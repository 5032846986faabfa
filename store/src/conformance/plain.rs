//! What is stored of devices that speak plain CoAP or bare UDP?

use engine::Value;
use engine::action::{
    Action, CoapRequest, Content, ContentEncoding, Method, Protocol, Request, UdpRequest,
};
use engine::change::Change;
use engine::device::record::{DeviceRecord, ProtocolsSeen};
use engine::event::{Data, Event, EventContent, Telemetry};
use engine::peer::Peer;
use engine::query::{HistoryFilter, KnownValue};
use engine::topic::Topic;
use engine::{Path, PathAndQuery, event};

use super::outbox::all_waiting;
use super::restoring::{keep, one};
use super::samples::{
    self, acme, action, at, created, device, known, operations, record, requests,
};
use super::{TestBed, commit, put, wait};

pub(super) fn requests_come_back(ground: &TestBed<'_>) {
    let mut store = ground.open();
    let meter = device(&acme(), 1);
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    let of_methods = Method::ALL.map(|method| coap(method, "/", None));
    let of_forms = [
        coap(
            Method::Put,
            "/a/%20b?c=d&e",
            Some(content(ContentEncoding::String, "Grüße")),
        ),
        coap(
            Method::Post,
            "/",
            Some(content(ContentEncoding::Base64, "AAH/")),
        ),
        udp(content(ContentEncoding::String, "")),
        udp(content(ContentEncoding::Base64, "")),
        udp(content(ContentEncoding::String, &"x".repeat(10_000))),
    ];
    let all = requests().into_iter().chain(of_methods).chain(of_forms);
    let all = all.chain(operations().map(Request::Lwm2m));
    let all: Vec<Action> = all
        .zip(1..)
        .map(|(request, rng)| Action {
            request,
            ..action(&meter, 10, rng)
        })
        .collect();
    for request in &all {
        assert_eq!(commit(&*store, created(request)), Ok(()));
    }
    for _ in 0..2 {
        for request in &all {
            assert_eq!(wait(store.action(request.id)), Ok(Some(request.clone())));
        }
        drop(store);
        store = ground.open();
    }
}

pub(super) fn data_comes_back_and_is_no_known_value(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    let path = Path::resource(3303, 0, 5700);
    let telemetry = EventContent::Telemetry(Telemetry {
        source: Protocol::Lwm2m,
        cause: event::Cause::Send,
        measured_at: None,
        values: [(path, Value::Integer(21))].into(),
    });
    let topic = |text: &str| Some(Topic::parse(text).expect("a topic"));
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let happenings = [
        telemetry,
        data(Protocol::Coap, topic("a/b"), b"{\"t\":21}"),
        data(Protocol::Coap, topic(&"ü".repeat(126)), &every_byte),
        data(Protocol::Udp, None, &every_byte),
        data(Protocol::Udp, None, &every_byte.repeat(256)),
    ];
    for (happening, second) in happenings.into_iter().zip(1..) {
        let event = Event {
            content: happening,
            ..samples::event(&meter, second, 5)
        };
        put(&*store, vec![Change::AppendEvent(Box::new(event.clone()))]);
        let queued = all_waiting(&*store, &acme()).into_iter().next_back();
        let read = wait(store.event(acme(), queued.expect("it was stored")));
        assert_eq!(read, Ok(Some(event)));
        let expected = KnownValue {
            path,
            value: Value::Integer(21),
            at: at(1),
        };
        assert_eq!(wait(store.values_of(meter.key())), Ok(vec![expected]));
    }
    drop(store);
    let kept = wait(ground.open().events_of(
        HistoryFilter::all_of(meter.customer.clone(), meter.key()),
        10,
    ))
    .map(|it| it.events);
    assert_eq!(kept.map(|events| events.len()), Ok(5));
}

pub(super) fn protocols_seen_come_back(ground: &TestBed<'_>) {
    let store = ground.open();
    let meter = device(&acme(), 1);
    assert_eq!(commit(&*store, known(&meter)), Ok(()));
    let mut protocols = ProtocolsSeen::default();
    let one_by_one = Protocol::ALL.map(|protocol| {
        protocols.note(protocol);
        protocols
    });
    let alone = Protocol::ALL.map(|protocol| ProtocolsSeen::restored([protocol], Some(protocol)));
    let odd = [
        ProtocolsSeen::default(),
        ProtocolsSeen::restored([Protocol::Udp, Protocol::Lwm2m], Some(Protocol::Udp)),
        ProtocolsSeen::restored(Protocol::ALL, None),
    ];
    for protocols in one_by_one.into_iter().chain(alone).chain(odd) {
        let expected = DeviceRecord {
            peer: Some(Peer::bare(([192, 0, 2, 7], 40_000).into())),
            protocols_seen: protocols,
            ..record(10, "</3/0>")
        };
        keep(&*store, &meter, &expected);
        assert_eq!(one(&*store, meter.key()).record, expected);
    }
}

fn data(source: Protocol, topic: Option<Topic>, bytes: &[u8]) -> EventContent {
    EventContent::Data(Box::new(Data {
        source,
        topic,
        bytes: bytes.into(),
    }))
}

fn coap(method: Method, target: &str, content: Option<Content>) -> Request {
    Request::Coap(CoapRequest {
        method,
        port: samples::PORT,
        target: PathAndQuery::parse(target).expect("a path"),
        content,
    })
}

fn udp(content: Content) -> Request {
    Request::Udp(UdpRequest {
        content,
        port: samples::PORT,
    })
}

fn content(form: ContentEncoding, text: &str) -> Content {
    Content::parse(form, text).expect("base64, where it is said to be")
}
