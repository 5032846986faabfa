//! Does a sleeping device get its waiting requests at its next uplink, and not before?

use protocol::coap::code::Code;

use super::{ID, IP, PlainService, text_of};
use crate::test_service::NEVER_AWAKE;
use crate::vocabulary::lwm2m::{read, when_active};
use crate::vocabulary::plain::{answer, coap, datagram, path_of};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, location_of, register_with, update};

/// A device in queue mode with an LwM2M, a CoAP and a UDP socket at one address.
struct Sleeper {
    lwm2m: DeviceSocket,
    setup: PlainService,
    location: Vec<String>,
    last_id: u16,
}

#[test]
fn however_a_device_announces_queue_mode_its_immediate_requests_wait() {
    let ways: [(&[&str], bool); 6] = [
        (&["lwm2m=1.0", "b=UQ"], true),
        (&["lwm2m=1.1", "Q"], true),
        (&["lwm2m=1.1", "b=U", "Q"], true),
        (&["lwm2m=1.1", "b=UQ"], true),
        (&["lwm2m=1.2", "b=U", "Q"], true),
        (&["lwm2m=1.1", "b=U"], false),
    ];
    for (queries, sleeps) in ways {
        let mut sleeper = Sleeper::with_queries(&[NEVER_AWAKE], queries);
        let device = sleeper.setup.caller.inspect(ID);
        assert_eq!(device["registration"]["queueMode"], sleeps, "{queries:?}");
        if sleeps {
            sleeper.once("ASLEEP");
        }
        let id = sleeper.setup.caller.create_action(ID, &read("/3/0/0"));
        if sleeps {
            assert_eq!(sleeper.setup.caller.action(&id)["sendAttemptsLeft"], 1);
            assert_eq!(sleeper.lwm2m.received(), [], "{queries:?}");
            sleeper.update();
        }
        sleeper.answer_next("/3/0/0");
        let action = sleeper.setup.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{queries:?}: {action}");
    }
}

#[test]
fn waiting_requests_are_sent_in_order_over_every_protocol() {
    // Each answer keeps the device awake for the next request, however late it arrives.
    let mut sleeper = Sleeper::with_queries(&[NEVER_AWAKE], &["lwm2m=1.1", "Q"]);
    let (coap_port, udp_port) = (sleeper.setup.coap.port(), sleeper.setup.udp.port());
    for turn in 0..2 {
        sleeper.once("ASLEEP");
        let setup = &sleeper.setup;
        let ids = [
            setup.caller.create_action(ID, &read("/3/0/0")),
            setup.create_coap(&coap("GET", "/second", coap_port)),
            setup.caller.create_action(ID, &when_active(read("/3/0/1"))),
            setup.create_coap(&when_active(coap("GET", "/fourth", coap_port))),
            setup.create_udp(&datagram("fifth", udp_port)),
        ];
        assert_eq!(sleeper.lwm2m.received(), []);
        assert_eq!(setup.coap.received(), []);
        assert_eq!(setup.udp.received(), Vec::<Vec<u8>>::new(), "it sleeps");
        if turn == 0 {
            sleeper.update();
        } else {
            setup.udp.send(b"awake");
        }
        for (over_lwm2m, over_coap) in [("/3/0/0", "/second"), ("/3/0/1", "/fourth")] {
            sleeper.answer_next(over_lwm2m);
            let request = sleeper.setup.answer_next(Code::CONTENT, "1");
            assert_eq!(path_of(&request), over_coap);
        }
        assert_eq!(sleeper.setup.udp.receive(), b"fifth");
        for id in ids {
            let action = sleeper.setup.caller.final_action(&id);
            assert_eq!(action["status"], "SUCCEEDED", "{action}");
        }
    }
}

#[test]
fn a_request_to_a_device_that_never_registered_is_sent_at_once() {
    let setup = PlainService::with(&[NEVER_AWAKE]);
    let id = setup.create_udp(&datagram("now", setup.udp.port()));
    assert_eq!(setup.udp.receive(), b"now");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    let id = setup.create_coap(&coap("GET", "/now", setup.coap.port()));
    setup.answer_next(Code::CONTENT, "1");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
}

impl Sleeper {
    fn with_queries(settings: &[(&str, &str)], queries: &[&str]) -> Self {
        let setup = PlainService::with(settings);
        let lwm2m = DeviceSocket::from(IP, &setup.service);
        let mut sleeper = Self {
            lwm2m,
            setup,
            location: Vec::new(),
            last_id: 0,
        };
        sleeper.register_with_queries(queries);
        sleeper
    }

    fn id(&mut self) -> u16 {
        self.last_id += 1;
        self.last_id
    }

    fn register_with_queries(&mut self, queries: &[&str]) {
        let endpoint = format!("ep={ID}");
        let queries = [&[endpoint.as_str(), "lt=3600"], queries].concat();
        let message = register_with(&queries, "</1/0>,</3/0>", self.id());
        let created = self.lwm2m.ask(&message);
        assert_eq!(created.code, Code::CREATED, "{queries:?}");
        self.location = location_of(&created);
    }

    fn update(&mut self) {
        let id = self.id();
        let message = update(&self.location, id);
        assert_eq!(self.lwm2m.ask(&message).code, Code::CHANGED);
    }

    /// Has the device answer the next request, which must be for this path.
    fn answer_next(&self, path: &str) {
        let request = self.lwm2m.receive_request();
        assert_eq!(path_of(&request), path);
        let response = text_of(answer(&request, Code::CONTENT), "value");
        self.lwm2m.send(&response.encode());
    }

    fn once(&self, state: &str) {
        until(state, || {
            let shown = self.setup.caller.inspect(ID);
            (shown["presence"]["state"] == state).then_some(())
        });
    }
}
