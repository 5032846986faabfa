//! Does a device that sleeps get what waits for it when it is heard, and not before?

use std::time::{Duration, Instant};

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Kind, Message, MessageId};
use protocol::coap::token::Token;

use super::{ID, IP, Scene, text_of};
use crate::scene::{NEVER_AWAKE, with};
use crate::vocabulary::caller::text;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::plain::{answer, coap, datagram, path_of};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{Wire, location_of, register_with, request, update};

/// A service that takes a device for silent after a while, and repeats nothing.
const SOON_SILENT: [(&str, &str); 2] = [
    ("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "500"),
    ("SIGNALBOX_COAP_MAX_RETRANSMIT", "0"),
];

/// A device in queue mode, with an endpoint of each kind at one address.
struct Sleeper {
    lwm2m: Wire,
    scene: Scene,
    location: Vec<String>,
    said: u16,
}

#[test]
fn whichever_way_a_device_says_that_it_sleeps_what_is_for_now_waits() {
    let ways: [(&[&str], bool); 6] = [
        (&["lwm2m=1.0", "b=UQ"], true),
        (&["lwm2m=1.1", "Q"], true),
        (&["lwm2m=1.1", "b=U", "Q"], true),
        (&["lwm2m=1.1", "b=UQ"], true),
        (&["lwm2m=1.2", "b=U", "Q"], true),
        (&["lwm2m=1.1", "b=U"], false),
    ];
    for (queries, sleeps) in ways {
        let mut sleeper = Sleeper::saying(&[NEVER_AWAKE], queries);
        let seen = sleeper.scene.caller.inspect(ID);
        assert_eq!(seen["registration"]["queueMode"], sleeps, "{queries:?}");
        if sleeps {
            sleeper.once("ASLEEP");
        }
        let id = sleeper.scene.caller.create_action(ID, &read("/3/0/0"));
        if sleeps {
            assert_eq!(sleeper.scene.caller.action(&id)["sendAttemptsLeft"], 1);
            assert_eq!(sleeper.lwm2m.heard(), [], "{queries:?}");
            sleeper.update();
        }
        sleeper.answer_next("/3/0/0");
        let action = sleeper.scene.caller.final_action(&id);
        assert_eq!(action["status"], "SUCCEEDED", "{queries:?}: {action}");
    }
}

#[test]
fn what_waits_for_a_sleeper_goes_out_in_its_order_over_every_protocol() {
    let mut sleeper = Sleeper::saying(&SOON_SILENT, &["lwm2m=1.1", "Q"]);
    let (coap_port, udp_port) = (sleeper.scene.coap.port(), sleeper.scene.udp.port());
    for turn in 0..2 {
        sleeper.fall_asleep();
        let scene = &sleeper.scene;
        let ids = [
            scene.caller.create_action(ID, &read("/3/0/0")),
            scene.tell(&datagram("second", udp_port)),
            scene.caller.create_action(ID, &when_active(read("/3/0/1"))),
            scene.ask(&coap("GET", "/fourth", coap_port)),
            scene.ask(&when_active(coap("GET", "/fifth", coap_port))),
            scene.tell(&when_active(datagram("sixth", udp_port))),
        ];
        assert_eq!(sleeper.lwm2m.heard(), []);
        assert_eq!(scene.coap.heard(), []);
        assert_eq!(scene.udp.heard(), Vec::<Vec<u8>>::new(), "it sleeps");
        if turn == 0 {
            sleeper.update();
        } else {
            scene.udp.say(b"awake");
        }
        sleeper.answer_next("/3/0/0");
        assert_eq!(sleeper.scene.udp.hear(), b"second");
        sleeper.answer_next("/3/0/1");
        for path in ["/fourth", "/fifth"] {
            let asked = sleeper.scene.answer_next(Code::CONTENT, "1");
            assert_eq!(path_of(&asked), path);
        }
        assert_eq!(sleeper.scene.udp.hear(), b"sixth");
        for id in ids {
            let action = sleeper.scene.caller.final_action(&id);
            assert_eq!(action["status"], "SUCCEEDED", "{action}");
        }
    }
}

#[test]
fn the_first_silence_ends_the_awake_window_and_any_uplink_begins_it_anew() {
    let mut sleeper = Sleeper::saying(&SOON_SILENT, &["lwm2m=1.1", "Q"]);
    let observed = sleeper.scene.observe(&sleeper.lwm2m);
    type Say<'a> = &'a dyn Fn(&mut Sleeper);
    let uplinks: [(&str, Say<'_>); 6] = [
        ("update", &Sleeper::update),
        ("Send", &Sleeper::send),
        ("notification", &|it| it.notify(observed)),
        ("data over CoAP", &|it| it.scene.post("awake")),
        ("data over UDP", &|it| it.scene.udp.say(b"awake")),
        ("registration", &Sleeper::register),
    ];
    for (name, uplink) in uplinks {
        assert_eq!(sleeper.state(), "AWAKE", "before {name}");
        let body = with(read("/3/0/15"), "sendAttempts", 2);
        let id = sleeper.scene.caller.create_action(ID, &body);
        let asked = sleeper.lwm2m.hear_request();
        assert_eq!(path_of(&asked), "/3/0/15");
        sleeper.once("ASLEEP");
        let waiting = sleeper.scene.caller.create_action(ID, &read("/3/0/0"));
        assert_eq!(sleeper.scene.caller.action(&waiting)["sendAttemptsLeft"], 1);
        assert_eq!(sleeper.lwm2m.heard(), [], "it sleeps");
        uplink(&mut sleeper);
        for path in ["/3/0/15", "/3/0/0"] {
            sleeper.answer_next(path);
        }
        assert_eq!(sleeper.state(), "AWAKE", "after {name}");
        for id in [id, waiting] {
            let action = sleeper.scene.caller.final_action(&id);
            assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{name}: {action}");
        }
    }
}

#[test]
fn the_awake_window_begins_anew_with_the_latest_uplink() {
    let window = Duration::from_millis(1_000);
    let setting = ("SIGNALBOX_AWAKE_WINDOW_MS", "1000");
    let mut sleeper = Sleeper::saying(&[setting], &["lwm2m=1.1", "Q"]);
    let registered = Instant::now();
    until("half of the window to pass", || {
        (registered.elapsed() > window / 2).then_some(())
    });
    let heard = Instant::now();
    sleeper.scene.post("still here");
    sleeper.once("ASLEEP");
    assert!(heard.elapsed() >= window, "{:?}", heard.elapsed());
    let heard = Instant::now();
    sleeper.update();
    sleeper.once("ASLEEP");
    assert!(heard.elapsed() >= window, "{:?}", heard.elapsed());
}

#[test]
fn a_device_that_never_registered_is_tried_at_once() {
    let scene = Scene::with(&[NEVER_AWAKE]);
    let id = scene.tell(&datagram("now", scene.udp.port()));
    assert_eq!(scene.udp.hear(), b"now");
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
    let id = scene.ask(&coap("GET", "/now", scene.coap.port()));
    scene.answer_next(Code::CONTENT, "1");
    assert_eq!(scene.caller.final_action(&id)["status"], "SUCCEEDED");
}

impl Sleeper {
    fn saying(settings: &[(&str, &str)], queries: &[&str]) -> Self {
        let scene = Scene::with(settings);
        let lwm2m = Wire::from(IP, &scene.service);
        let mut sleeper = Self {
            lwm2m,
            scene,
            location: Vec::new(),
            said: 0,
        };
        sleeper.register_saying(queries);
        sleeper
    }

    fn id(&mut self) -> u16 {
        self.said += 1;
        self.said
    }

    fn register(&mut self) {
        self.register_saying(&["lwm2m=1.1", "Q"]);
    }

    fn register_saying(&mut self, queries: &[&str]) {
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

    fn send(&mut self) {
        let message = request(Code::POST, self.id())
            .with_uri_path(["dp"])
            .with_content_format(ContentFormat::SENML_JSON)
            .with_payload(r#"[{"n":"/3/0/9","v":80}]"#);
        assert_eq!(self.lwm2m.ask(&message).code, Code::CHANGED);
    }

    fn notify(&mut self, token: Token) {
        let id = self.id();
        let kind = Kind::NonConfirmable;
        let told = Message::separate(kind, Code::CONTENT, MessageId(id), token);
        let told = text_of(told.with_observe(u32::from(id)), "81");
        self.lwm2m.say(&told.encode());
    }

    /// Has the device answer the next request, which is for a path.
    fn answer_next(&self, path: &str) {
        let asked = self.lwm2m.hear_request();
        assert_eq!(path_of(&asked), path);
        let said = text_of(answer(&asked, Code::CONTENT), "value");
        self.lwm2m.say(&said.encode());
    }

    /// Has the device be silent when it is asked something, so that it is taken to sleep.
    fn fall_asleep(&self) {
        let id = self.scene.caller.create_action(ID, &read("/3/0/15"));
        assert_eq!(self.scene.caller.final_action(&id)["status"], "FAILED");
        self.once("ASLEEP");
        let asked = self.lwm2m.heard();
        assert!(asked.iter().all(|it| path_of(it) == "/3/0/15"), "{asked:?}");
    }

    fn state(&self) -> String {
        text(&self.scene.caller.inspect(ID)["presence"]["state"])
    }

    fn once(&self, state: &str) {
        until(state, || (self.state() == state).then_some(()));
    }
}
