//! Does any sign of life, over any protocol, let out what waits over all of them, in its order?

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

/// What a device does of its own accord.
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

/// A device with an endpoint of each kind at one address.
struct Trio {
    lwm2m: DeviceSocket,
    setup: PlainService,
    location: Vec<String>,
    said: u16,
}

#[test]
fn any_uplink_over_any_protocol_lets_out_what_waits_over_all_of_them() {
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
        trio.meet_all(&ids, uplink);
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
    let told = setup.create_udp(&datagram("now", udp_port));
    assert_eq!(setup.caller.final_action(&told)["status"], "SUCCEEDED");
    assert_eq!(setup.udp.receive(), b"now");
    assert_eq!(setup.caller.action(&waiting)["status"], "SCHEDULED");
    assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new());
}

#[test]
fn what_a_stranger_says_wakes_nobody() {
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
            said: 1,
        }
    }

    /// Has something wait over each protocol, and one more over the first.
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
        self.said += 1;
        let id = self.said;
        let answered = match uplink {
            Uplink::Register => {
                let created = self.lwm2m.ask(&register(ID, id));
                self.location = crate::vocabulary::wire::location_of(&created);
                return;
            }
            Uplink::Update => self.lwm2m.ask(&update(&self.location, id)).code,
            Uplink::Send => self.lwm2m.ask(&sending(id)).code,
            Uplink::Notify(token) => {
                let told = Message::separate(
                    MessageKind::NonConfirmable,
                    Code::CONTENT,
                    MessageId(id),
                    token,
                );
                let told = text_of(told.with_observe(u32::from(id)), "81");
                return self.lwm2m.send(&told.encode());
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

    /// Meets what was let out, in the order in which it was asked, each before the next.
    fn meet_all(&self, ids: &[String; 4], uplink: Uplink) {
        let setup = &self.setup;
        let asked = setup.coap.receive_request();
        assert_eq!(path_of(&asked), "/first", "{uplink:?}");
        assert_eq!(self.lwm2m.received(), [], "one at a time after {uplink:?}");
        setup.coap.send(&answer(&asked, Code::CHANGED).encode());
        for path in ["/3/0/0", "/3/0/1"] {
            let asked = self.lwm2m.receive_request();
            assert_eq!(path_of(&asked), path, "{uplink:?}");
            if path == "/3/0/0" {
                assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new(), "{uplink:?}");
            } else {
                assert_eq!(setup.udp.receive(), b"third", "{uplink:?}");
            }
            let said = answer(&asked, Code::CONTENT);
            self.lwm2m.send(&text_of(said, "value").encode());
        }
        let done = ids.iter().map(|id| setup.caller.final_action(id));
        let done: Vec<Value> = done.collect();
        let codes: Vec<_> = done.iter().map(outcome).collect();
        let expected = ["204", "205", "", "205"].map(|code| ("SUCCEEDED", code));
        assert_eq!(codes, expected, "{uplink:?}");
        check_order(&done);
    }
}

/// Each was begun when the one before had ended.
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
