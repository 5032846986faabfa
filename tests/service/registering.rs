//! Is each registration, update and deregistration answered as the standard says?

use protocol::coap::code::Code;
use protocol::coap::option;
use serde_json::json;

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::lwm2m::{execute, outcome, read, when_active, write};
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{
    DeviceSocket, deregister, location_of, register, register_with, request, update,
};

#[test]
fn a_device_registers_updates_and_deregisters() {
    let (service, caller) = known_device();
    let wire = DeviceSocket::to(&service);
    let created = wire.ask(&register(ID, 1));
    assert_eq!(created.code, Code::CREATED);
    let location = location_of(&created);
    assert_eq!(
        (location.len(), location[0].as_str()),
        (2, "rd"),
        "{location:?}"
    );
    assert!(created.payload.is_empty());
    assert_eq!(state(&caller), "AWAKE");
    assert_eq!(wire.ask(&update(&location, 2)).code, Code::CHANGED);
    assert_eq!(wire.ask(&deregister(&location, 3)).code, Code::DELETED);
    assert_eq!(state(&caller), "UNREGISTERED");
    assert_eq!(wire.ask(&update(&location, 4)).code, Code::NOT_FOUND);
    assert_eq!(wire.ask(&deregister(&location, 5)).code, Code::NOT_FOUND);
}

#[test]
fn releases_1_0_to_1_2_are_accepted_and_others_refused() {
    let (service, caller) = known_device();
    let wire = DeviceSocket::to(&service);
    let endpoint = format!("ep={ID}");
    let cases = [
        ("lwm2m=1.0", Some("1.0")),
        ("lwm2m=1.1", Some("1.1")),
        ("lwm2m=1.2", Some("1.2")),
        ("lt=60", Some("1.0")),
        ("lwm2m=2.0", None),
        ("lwm2m=0.9", None),
        ("lwm2m=one", None),
        ("lwm2m=", None),
    ];
    for (id, (version, expected)) in (1..).zip(cases) {
        let answer = wire.ask(&register_with(&[&endpoint, version], "</3/0>", id));
        match expected {
            Some(expected) => {
                assert_eq!(answer.code, Code::CREATED, "{version}");
                assert_eq!(inspect(&caller)["registration"]["version"], expected);
            }
            None => assert_eq!(answer.code, Code::PRECONDITION_FAILED, "{version}"),
        }
    }
}

#[test]
fn a_registration_that_cannot_be_read_is_a_bad_request() {
    let (service, caller) = known_device();
    let wire = DeviceSocket::to(&service);
    let endpoint = format!("ep={ID}");
    let long = format!("sms={}", "1".repeat(65));
    let cases: [(&[&str], &str); 10] = [
        (&["lt=60", "lwm2m=1.1"], "</3/0>"),
        (&["ep=", "lwm2m=1.1"], "</3/0>"),
        (&["ep", "lwm2m=1.1"], "</3/0>"),
        (&[&endpoint, "lt=soon"], "</3/0>"),
        (&[&endpoint, "lt=-1"], "</3/0>"),
        (&[&endpoint, "b=X"], "</3/0>"),
        (&[&endpoint, &long], "</3/0>"),
        (&[&endpoint, "lt=60", "lt=70"], "</3/0>"),
        (&[&endpoint, "lt=60"], "</3/0>,</"),
        (&[&endpoint, "lt=60"], "objects"),
    ];
    for (id, (queries, links)) in (1..).zip(cases) {
        let answer = wire.ask(&register_with(queries, links, id));
        assert_eq!(answer.code, Code::BAD_REQUEST, "{queries:?} {links}");
    }
    assert_eq!(state(&caller), "UNREGISTERED");
    assert_eq!(caller.log_messages(), ["LwM2M[RegistrationRejected]"]);
}

#[test]
fn deviations_of_real_devices_are_accepted() {
    let (service, caller) = known_device();
    let wire = DeviceSocket::to(&service);
    let endpoint = format!("ep={ID}");
    let cases: [(&[&str], &str, &str, bool); 7] = [
        (&[&endpoint], "</3/0>", "U", false),
        (&[&endpoint, "b=UQ"], "</3/0>", "UQ", true),
        (&[&endpoint, "lwm2m=1.1", "Q"], "</3/0>", "UQ", true),
        (
            &[&endpoint, "lwm2m=1.1", "b=UT"],
            "</3>;ver=1.2,</3/0>",
            "UT",
            false,
        ),
        (
            &[&endpoint, "lwm2m=1.0"],
            "</10>;ver=\"1.1\",</10/0>,</2>",
            "U",
            false,
        ),
        (
            &[&endpoint, "lwm2m=1.1", "mac=00:11", "x"],
            "</>;rt=\"oma.lwm2m\";ct=\"60 110 112 11542 11543\",</3/0>",
            "U",
            false,
        ),
        (&[&endpoint, "lwm2m=1.1", "lt=4294967296"], "", "U", false),
    ];
    for (id, (queries, links, binding, queue_mode)) in (1..).zip(cases) {
        let answer = wire.ask(&register_with(queries, links, id));
        assert_eq!(answer.code, Code::CREATED, "{queries:?} {links}");
        let registration = inspect(&caller)["registration"].clone();
        let expected = json!({ "binding": binding, "queueMode": queue_mode });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(registration[name], *value, "{queries:?}: {registration}");
        }
    }
    // Wakaama's own device sends this, with queue mode and without.
    let objects = "</>;rt=\"oma.lwm2m\";ct=110,</1/0>,</2/0>,</3/0>,</31024/10>,</31024/11>";
    for (id, queue) in [(18, &["Q"][..]), (19, &[])] {
        let queries = [&["lwm2m=1.1", &endpoint, "b=U"][..], queue, &["lt=300"]].concat();
        let answer = wire.ask(&register_with(&queries, objects, id));
        assert_eq!(answer.code, Code::CREATED, "{queries:?}");
        let registration = &inspect(&caller)["registration"];
        assert_eq!(registration["queueMode"], !queue.is_empty());
        assert_eq!(registration["objects"][3]["instances"], json!([10, 11]));
    }
    let with_host = register(ID, 20)
        .with_option(option::URI_HOST, b"signalbox.example")
        .with_option(option::URI_PORT, &5683_u16.to_be_bytes());
    assert_eq!(wire.ask(&with_host).code, Code::CREATED);
    let without_format = request(Code::POST, 21)
        .with_uri_path(["rd"])
        .with_uri_query([endpoint.as_str(), "lwm2m=1.1"])
        .with_payload("</3/0>");
    assert_eq!(wire.ask(&without_format).code, Code::CREATED);
}

#[test]
fn a_lifetime_that_is_written_to_the_device_comes_back_in_an_update() {
    let setup = TestService::new();
    let written = setup.caller.perform(ID, &write("/1/0/1", "600"));
    assert_eq!(outcome(&written), ("SUCCEEDED", "204"), "{written}");
    until("the new lifetime", || {
        (inspect(&setup.caller)["registration"]["lifetime"] == 600).then_some(())
    });
}

#[test]
fn an_update_that_is_triggered_releases_the_next_request() {
    let setup = TestService::new();
    let waiting = when_active(read("/3/0/0"));
    let waiting = setup.caller.create_action(ID, &waiting);
    let triggered = setup.caller.perform(ID, &execute("/1/0/8"));
    assert_eq!(outcome(&triggered), ("SUCCEEDED", "204"), "{triggered}");
    let released = setup.caller.final_action(&waiting);
    assert_eq!(outcome(&released), ("SUCCEEDED", "205"), "{released}");
}

#[test]
fn a_device_that_is_disabled_deregisters() {
    let setup = TestService::new();
    let disabled = setup.caller.perform(ID, &execute("/1/0/4"));
    assert_eq!(outcome(&disabled), ("SUCCEEDED", "204"), "{disabled}");
    until("the end of the registration", || {
        inspect(&setup.caller)["registration"]
            .is_null()
            .then_some(())
    });
}

#[test]
fn a_lifetime_is_at_most_a_day_and_an_update_may_change_it() {
    let (service, caller) = known_device();
    let wire = DeviceSocket::to(&service);
    let endpoint = format!("ep={ID}");
    let cases = [
        ("lt=60", 60, json!(60)),
        ("lt=0", 86_400, json!(0)),
        ("lt=86400", 86_400, json!(86_400)),
        ("lt=100000", 86_400, json!(100_000)),
        ("b=U", 86_400, json!(null)),
    ];
    for (id, (lifetime, holds, requested)) in (1..).zip(cases) {
        wire.ask(&register_with(&[&endpoint, lifetime], "</3/0>", id));
        let registration = &inspect(&caller)["registration"];
        assert_eq!(registration["lifetime"], holds, "{lifetime}");
        assert_eq!(registration["lifetimeAsked"], requested, "{lifetime}");
    }
    let location = wire.register(ID, 10);
    let longer = update(&location, 11)
        .with_uri_query(["lt=7200", "b=UQ"])
        .with_payload("</3/0>,</6/0>");
    assert_eq!(wire.ask(&longer).code, Code::CHANGED);
    let registration = &inspect(&caller)["registration"];
    assert_eq!(registration["lifetime"], 7_200);
    assert_eq!(registration["queueMode"], true);
    assert_eq!(registration["objects"][1]["id"], 6);
    let unreadable = update(&location, 12).with_uri_query(["lt=later"]);
    assert_eq!(wire.ask(&unreadable).code, Code::BAD_REQUEST);
    assert_eq!(inspect(&caller)["registration"]["lifetime"], 7_200);
}

/// A service that knows a device.
fn known_device() -> (Service, Caller) {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    (service, caller)
}

fn inspect(caller: &Caller) -> serde_json::Value {
    caller
        .request("GET", &format!("{API}/devices/{ID}"))
        .expect(200)
}

fn state(caller: &Caller) -> String {
    inspect(caller)["presence"]["state"]
        .as_str()
        .expect("a state")
        .to_owned()
}
