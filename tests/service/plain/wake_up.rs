//! Does any uplink over any protocol release the waiting requests of all protocols, in order?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use serde_json::Value;

use super::{ID, IP, PlainService, text_of};
use crate::vocabulary::caller::text;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::plain::{answer, coap, data, datagram, path_of};
use crate::vocabulary::wire::{DeviceSocket, register, request, update};

/// What a device sends by itself.
#[derive(Clone, Copy, Debug)]
enum Uplink {
    Register,
    Update,
    Send,
    Notify(Token),
    CoapData,
    RefusedCoapData,
    UdpData,
    EmptyUdpDatagram,
}

/// A device with an LwM2M, a CoAP and a UDP socket at one address.
struct Trio {
    lwm2m: DeviceSocket,
    setup: PlainService,
    location: Vec<String>,
    last_id: u16,
}

#[test]
fn any_uplink_over_any_protocol_releases_the_requests_of_all_protocols() {
    let mut trio = Trio::new();
    let observed = trio.setup.observe(&trio.lwm2m);
    let uplinks = [
        Uplink::Update,
        Uplink::Send,
        Uplink::Notify(observed),
        Uplink::CoapData,
        Uplink::UdpData,
        Uplink::RefusedCoapData,
        Uplink::EmptyUdpDatagram,
        Uplink::Register,
    ];
    for uplink in uplinks {
        let ids = trio.schedule();
        for id in &ids {
            assert_eq!(trio.setup.caller.action(id)["status"], "SCHEDULED");
        }
        trio.uplink(uplink);
        trio.answer_all(&ids, uplink);
    }
}

#[test]
fn an_answer_or_an_acknowledgement_is_no_uplink() {
    let setup = PlainService::new();
    let (coap_port, udp_port) = (setup.coap.port(), setup.udp.port());
    let waiting = setup.create_udp(&when_active(datagram("waits", udp_port)));
    for code in [Code::CONTENT, Code::NOT_FOUND] {
        let id = setup.create_coap(&coap("GET", "/now", coap_port));
        setup.answer_next(code, "now");
        setup.caller.final_action(&id);
        assert_eq!(setup.caller.action(&waiting)["status"], "SCHEDULED");
    }
    let id = setup.create_udp(&datagram("now", udp_port));
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(setup.udp.receive(), b"now");
    assert_eq!(setup.caller.action(&waiting)["status"], "SCHEDULED");
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
}

#[test]
fn datagrams_of_strangers_release_nothing() {
    let mut setup = PlainService::new();
    let port = setup.udp.port();
    let waiting = setup.create_udp(&when_active(datagram("waits", port)));
    let stranger = DeviceSocket::from(super::ELSEWHERE, &setup.service);
    assert_eq!(stranger.ask(&data("t", "x", 1)).code, Code::UNAUTHORIZED);
    assert_eq!(stranger.ask(&register(ID, 2)).code, Code::FORBIDDEN);
    let get = request(Code::GET, 3).with_uri_path(["nothing"]);
    assert_eq!(setup.coap.ask(&get).code, Code::NOT_FOUND);
    assert_eq!(setup.caller.action(&waiting)["status"], "SCHEDULED");
    setup.post("awake");
    assert_eq!(setup.udp.receive(), b"waits");
}

impl Trio {
    fn new() -> Self {
        let setup = PlainService::new();
        let lwm2m = DeviceSocket::from(IP, &setup.service);
        let location = lwm2m.register(ID, 1);
        Self {
            lwm2m,
            setup,
            location,
            last_id: 1,
        }
    }

    /// Schedules a request over each protocol, and one more over the first.
    fn schedule(&self) -> [String; 4] {
        let (setup, caller) = (&self.setup, &self.setup.caller);
        let (coap_port, udp_port) = (setup.coap.port(), setup.udp.port());
        [
            setup.create_coap(&when_active(coap("GET", "/first", coap_port))),
            caller.create_action(ID, &when_active(read("/3/0/0"))),
            setup.create_udp(&when_active(datagram("third", udp_port))),
            caller.create_action(ID, &when_active(read("/3/0/1"))),
        ]
    }

    fn uplink(&mut self, uplink: Uplink) {
        self.last_id += 1;
        let id = self.last_id;
        let answered = match uplink {
            Uplink::Register => {
                let created = self.lwm2m.ask(&register(ID, id));
                self.location = crate::vocabulary::wire::location_of(&created);
                return;
            }
            Uplink::Update => self.lwm2m.ask(&update(&self.location, id)).code,
            Uplink::Send => self.lwm2m.ask(&sending(id)).code,
            Uplink::Notify(token) => {
                let notification = Message::separate(
                    MessageKind::NonConfirmable,
                    Code::CONTENT,
                    MessageId(id),
                    token,
                );
                let notification = text_of(notification.with_observe(u32::from(id)), "81");
                return self.lwm2m.send(&notification.encode());
            }
            Uplink::CoapData => self.setup.coap.ask(&data("t", "21.5", id)).code,
            Uplink::RefusedCoapData => {
                let refused = self.setup.coap.ask(&data("+", "21.5", id));
                assert_eq!(refused.code, Code::BAD_REQUEST);
                return;
            }
            Uplink::UdpData => return self.setup.udp.send(b"21.5"),
            Uplink::EmptyUdpDatagram => return self.setup.udp.send(b""),
        };
        assert_eq!(answered, Code::CHANGED, "{uplink:?}");
    }

    /// Answers the released requests in their order, each before the next.
    fn answer_all(&self, ids: &[String; 4], uplink: Uplink) {
        let setup = &self.setup;
        let request = setup.coap.receive_request();
        assert_eq!(path_of(&request), "/first", "{uplink:?}");
        assert_eq!(self.lwm2m.received(), [], "one at a time after {uplink:?}");
        setup.coap.send(&answer(&request, Code::CHANGED).encode());
        for path in ["/3/0/0", "/3/0/1"] {
            let request = self.lwm2m.receive_request();
            assert_eq!(path_of(&request), path, "{uplink:?}");
            if path == "/3/0/0" {
                assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new(), "{uplink:?}");
            } else {
                assert_eq!(setup.udp.receive(), b"third", "{uplink:?}");
            }
            let response = answer(&request, Code::CONTENT);
            self.lwm2m.send(&text_of(response, "value").encode());
        }
        let done = ids.iter().map(|id| setup.caller.final_action(id));
        let done: Vec<Value> = done.collect();
        let codes: Vec<_> = done.iter().map(outcome).collect();
        let expected = ["204", "205", "", "205"].map(|code| ("SUCCEEDED", code));
        assert_eq!(codes, expected, "{uplink:?}");
        check_order(&done);
    }
}

/// Checks that each request was begun after the one before had ended.
fn check_order(done: &[Value]) {
    for pair in done.windows(2) {
        let began = text(&pair[1]["timeline"][0]["time"]);
        let ended = text(&pair[0]["updated"]);
        assert!(ended <= began, "{ended} and {began}");
    }
}

fn sending(id: u16) -> Message {
    request(Code::POST, id)
        .with_uri_path(["dp"])
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"n":"/3/0/9","v":80}]"#)
}
