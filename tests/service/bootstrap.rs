//! Are devices bootstrapped: with which accounts, which keys, and what is shown of it?

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use dtls::SigningKey;
use engine::base64_text;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Scope};
use protocol::lwm2m::value::{DataType, Value as Lwm2mValue};
use protocol::lwm2m::version::Version;
use serde_json::{Value, json};

use crate::test_service::{ID, PATIENT, crash, error_codes, error_fields, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::endpoint::Endpoint;
use crate::vocabulary::lwm2m::{execute, outcome};
use crate::vocabulary::plain::answer;
use crate::vocabulary::poll::until;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, register, request};

const KEY: &str = "a key of 16 byte";
const HERE: &str = "127.0.0.21";
const NOSEC: (&str, &str) = ("SIGNALBOX_BOOTSTRAP_NOSEC", "true");

#[test]
fn a_device_is_bootstrapped_over_plain_coap_where_that_is_allowed() {
    let private = ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true");
    let (service, caller) = start(&[PATIENT, NOSEC, private]);
    caller.create_device(ID, HERE);
    let destination = Endpoint::new();
    let wanted = json!({ "name": "all", "url": destination.url("/in") });
    let clouds = format!("{API}/integrate/clouds/webhooks");
    caller.post(&clouds, &wanted).expect(201);
    let mut socket = DeviceSocket::from(HERE, &service);
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut socket, &[&format!("ep={ID}"), "pct=112"], 1);
    assert_eq!(client.value("/0/1/0"), format!("coap://{}", service.coap));
    assert_eq!(client.value("/0/1/2"), "3");
    assert_eq!(client.value("/0/1/10"), "1111");
    assert_eq!(client.value("/1/0/0"), "1111");
    assert_eq!(client.value("/1/0/1"), "86400");
    assert_eq!(client.value("/1/0/7"), "U");
    assert_eq!(
        client.requests,
        [
            "DELETE /",
            "GET /0",
            "PUT /0/1 112",
            "PUT /1/0 112",
            "POST /bs"
        ]
    );
    let shown = once_ended(&caller, ID);
    assert_eq!(
        (&shown["state"], &shown["security"]),
        (&json!("SUCCEEDED"), &json!("NOSEC"))
    );
    let steps = shown["steps"].as_array().unwrap().iter();
    let steps: Vec<_> = steps
        .map(|step| format!("{} {}", text(&step["operation"]), text(&step["code"])))
        .collect();
    assert_eq!(
        steps,
        [
            "DELETE 202",
            "DISCOVER 205",
            "WRITE 204",
            "WRITE 204",
            "FINISH 204"
        ]
    );
    destination.once_so("an event", |posted| {
        posted
            .iter()
            .any(|it| it.json()["lifecycle"]["type"] == "BOOTSTRAPPED")
    });
    socket.register(ID, 9);
}

#[test]
fn a_bootstrap_is_refused_to_strangers_and_without_dtls() {
    let (service, caller) = start(&[PATIENT]);
    caller.create_device(ID, HERE);
    let socket = DeviceSocket::from(HERE, &service);
    let refused = socket.ask(&bootstrap_request(&[&format!("ep={ID}")], 1));
    assert_eq!(refused.code, Code::FORBIDDEN);
    assert_eq!(refused.payload, b"bootstrap needs DTLS");
    until("a log entry", || {
        caller
            .log_messages()
            .contains(&"LwM2M[BootstrapRejected]".to_owned())
            .then_some(())
    });
    let stranger = DeviceSocket::from("127.0.0.99", &service);
    let refused = stranger.ask(&bootstrap_request(&["ep=nobody"], 1));
    assert_eq!(refused.code, Code::FORBIDDEN);
    let operator = Caller::operator(&service);
    let listed = operator
        .request("GET", "/operator-api/v1/strangers")
        .expect(200);
    assert_eq!(listed["items"][0]["endpoint"], "nobody", "{listed}");
}

#[test]
fn a_device_gets_a_fresh_key_at_each_bootstrap_and_keeps_the_one_before_until_it_is_used() {
    let (mut service, mut caller) = start(&[PATIENT]);
    caller.create_secured_device(ID, KEY);
    let first = bootstrap_over_dtls(&service, &caller);
    assert_ne!(first, KEY.as_bytes());
    assert_eq!(first.len(), 16);
    // The device did not use the new key yet, so the one before it is valid for everything.
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    device.register(&register(ID, 1));

    crash(&mut service, &mut caller);
    let mut device = SecuredDevice::at(HERE, &service);
    device.connect(ID, &first).unwrap();
    device.register(&register(ID, 1));
    until("the end of the key before", || {
        (caller.inspect(ID)["psk"]["previousValid"] == false).then_some(())
    });
    // Its bootstrap account has the key that its customer set, which is for nothing else now.
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    let refused = device.ask(&register(ID, 1));
    assert_eq!(refused.code, Code::FORBIDDEN, "{refused:?}");
    let second = bootstrap_over_dtls(&service, &caller);
    assert_ne!(second, first);
    let mut device = SecuredDevice::at(HERE, &service);
    device.connect(ID, &first).unwrap();
    device.register(&register(ID, 2));
    device.connect(ID, &second).unwrap();
    device.register(&register(ID, 3));
    until("the end of the first key", || {
        device.connect(ID, &first).is_err().then_some(())
    });
}

#[test]
fn a_device_gets_a_fresh_key_pair_at_each_bootstrap_and_registers_with_it() {
    let (mut service, mut caller) = start(&[PATIENT]);
    let first = raw_key();
    caller.create_device(ID, HERE);
    let body = json!({ "publicKey": base64_text::encode(first.public_key()) });
    let path = format!("{API}/devices/{ID}/public-key");
    assert_eq!(caller.try_send("PUT", &path, &body).unwrap().status, 204);
    let server = server_key(&caller);
    let bootstrap = |service: &Service, with: &Arc<SigningKey>| {
        let mut device = SecuredDevice::at(HERE, service);
        device.prove(with, &server).unwrap();
        let mut client = BootstrapClient::new(0);
        client.bootstrap(&mut device, &[], 1);
        client
    };
    // Without any configuration, a device with a public key is given one again.
    let given = bootstrap(&service, &first);
    assert_eq!(given.value("/0/1/2"), "1");
    assert_eq!(given.opaque("/0/1/4"), server);
    let second = Arc::new(SigningKey::from_der(&given.key(), Vec::new()).unwrap());
    assert_eq!(given.opaque("/0/1/3"), second.public_key());
    assert_ne!(second.public_key(), first.public_key());
    assert_eq!(once_ended(&caller, ID)["state"], "SUCCEEDED");

    crash(&mut service, &mut caller);
    let mut device = SecuredDevice::at(HERE, &service);
    device.prove(&first, &server).unwrap();
    device.register(&register(ID, 1));
    device.prove(&second, &server).unwrap();
    device.register(&register(ID, 2));
    let shown = until("the use of the new key", || {
        let shown = caller.inspect(ID)["publicKey"].take();
        (shown["previousValid"] == false).then_some(shown)
    });
    assert_eq!(shown["key"], base64_text::encode(second.public_key()));
    // The account of the bootstrap server has the first key, which is for nothing else now.
    device.prove(&first, &server).unwrap();
    assert_eq!(device.ask(&register(ID, 3)).code, Code::FORBIDDEN);
    let third = bootstrap(&service, &first).key();
    // A device is answered over the session that it was last heard over: the answer to Finish.
    once_ended(&caller, ID);
    let third = Arc::new(SigningKey::from_der(&third, Vec::new()).unwrap());
    device.prove(&third, &server).unwrap();
    device.register(&register(ID, 4));
    until("the end of the second key", || {
        device.prove(&second, &server).is_err().then_some(())
    });
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert!(device.prove(&third, &server).is_err());
}

#[test]
fn a_device_is_given_the_certificate_that_is_configured_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let of_service = rcgen::generate_simple_self_signed(["coaps.example".to_owned()]).unwrap();
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cert = file("cert.pem", of_service.cert.pem());
    let key = file("key.pem", of_service.signing_key.serialize_pem());
    let (mut service, mut caller) = start(&[PATIENT, NOSEC]);
    caller.create_device(ID, HERE);
    let own = rcgen::generate_simple_self_signed([ID.to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed([ID.to_owned()]).unwrap();
    let config = |certificate: &str, key: &str| {
        json!({
            "servers": [{
                "shortId": 1111, "lifetime": 60, "binding": "U", "security": "X509",
                "certificate": certificate, "key": key,
            }],
            "objects": { "/0/0/15": 3, "/0/0/11": 10 },
        })
    };
    let (own_cert, own_key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let of_device = format!("{API}/devices/{ID}/bootstrap");
    let put =
        |caller: &Caller, path: &str, body: &Value| caller.try_send("PUT", path, body).unwrap();
    let foreign = config(&other.cert.pem(), &own_key);
    let of_another = rcgen::generate_simple_self_signed(["meter-2".to_owned()]).unwrap();
    let (another_cert, another_key) = (
        of_another.cert.pem(),
        of_another.signing_key.serialize_pem(),
    );
    let expired = expired_certificate(&own.signing_key);
    for (path, body, field) in [
        (&of_device, foreign, "servers[0].key"),
        (
            &of_device,
            config(&another_cert, &another_key),
            "servers[0].certificate",
        ),
        (
            &of_device,
            config(&expired, &own_key),
            "servers[0].certificate",
        ),
        (&of_device, config(&own_cert, "***"), "servers[0].key"),
        (
            &of_device,
            config("none", &own_key),
            "servers[0].certificate",
        ),
        (
            &format!("{API}/bootstrap"),
            config(&own_cert, &own_key),
            "servers[0].security",
        ),
    ] {
        let refused = put(&caller, path, &body).expect(400);
        assert_eq!(error_fields(&refused), [field], "{refused}");
    }
    let shown = put(&caller, &of_device, &config(&own_cert, &own_key)).expect(200);
    let expected = config(&own_cert.replace("\r\n", "\n"), "***");
    assert_eq!(shown, expected);

    // What was read is written back with another lifetime: the key stays.
    let mut edited = caller.request("GET", &of_device).expect(200);
    edited["servers"][0]["lifetime"] = json!(120);
    assert_eq!(put(&caller, &of_device, &edited).expect(200), edited);
    edited["servers"][0]["certificate"] = json!(other.cert.pem());
    let refused = put(&caller, &of_device, &edited).expect(400);
    assert_eq!(error_fields(&refused), ["servers[0].key"], "{refused}");

    // The device needs a certificate to verify the service by.
    let socket = DeviceSocket::from(HERE, &service);
    let refused = socket.ask(&bootstrap_request(&[&format!("ep={ID}")], 1));
    assert_eq!(refused.code, Code::INTERNAL_SERVER_ERROR);
    let error = text(&caller.inspect(ID)["bootstrap"]["error"]);
    assert!(error.contains("SIGNALBOX_COAPS_CERT"), "{error}");
    assert!(service.stop().success());
    service.start_again_with(&[
        PATIENT,
        NOSEC,
        ("SIGNALBOX_COAPS_CERT", &cert),
        ("SIGNALBOX_COAPS_KEY", &key),
    ]);
    caller.follow(&service);
    let mut socket = DeviceSocket::from(HERE, &service);
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut socket, &[&format!("ep={ID}")], 2);
    assert_eq!(client.value("/0/1/2"), "2");
    assert_eq!(client.opaque("/0/1/3"), own.cert.der().to_vec());
    assert_eq!(client.opaque("/0/1/4"), of_service.cert.der().to_vec());
    assert_eq!(client.key(), own.signing_key.serialize_der());
    assert_eq!(client.value("/0/1/11"), "10");
}

#[test]
fn a_certificate_for_another_server_may_have_another_name() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let elsewhere = rcgen::generate_simple_self_signed(["another-name".to_owned()]).unwrap();
    let path = format!("{API}/devices/{ID}/bootstrap");
    let config = json!({
        "servers": [{
            "shortId": 2222, "uri": "coaps://lwm2m.example:5684", "lifetime": 60, "binding": "U",
            "security": "X509", "certificate": elsewhere.cert.pem(),
            "key": elsewhere.signing_key.serialize_pem(),
        }],
    });
    caller.try_send("PUT", &path, &config).unwrap().expect(200);
    let refused = caller.try_send("PUT", &format!("{API}/devices/none/bootstrap"), &config);
    assert_eq!(error_codes(&refused.unwrap().expect(404)), ["NOT_FOUND"]);
}

#[test]
fn a_device_is_bootstrapped_with_a_pack_in_each_of_its_formats() {
    let (service, caller) = start(&[PATIENT]);
    caller.create_secured_device(ID, KEY);
    for (id, (accept, format)) in (1..).zip([
        (None, ContentFormat::SENML_CBOR),
        (Some(ContentFormat::SENML_CBOR), ContentFormat::SENML_CBOR),
        (Some(ContentFormat::SENML_JSON), ContentFormat::SENML_JSON),
        (Some(ContentFormat::LWM2M_CBOR), ContentFormat::LWM2M_CBOR),
    ]) {
        let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
        let request = pack_request(&["acc=</0/2>"], accept, id);
        let pack = device.ask(&request);
        assert_eq!(pack.code, Code::CONTENT, "{pack:?}");
        assert_eq!(pack.content_format(), Some(format));
        // A repeated request leads to no other key.
        assert_eq!(device.ask(&request).payload, pack.payload);
        let mut client = BootstrapClient::new(0);
        client.keep_all(format, &pack.payload);
        assert_eq!(client.value("/0/1/0"), format!("coaps://{}", service.coaps));
        assert_eq!(client.value("/0/1/10"), "1111");
        assert_eq!(client.value("/1/0/1"), "86400");
        let shown = once_ended(&caller, ID);
        assert_eq!(shown["state"], "SUCCEEDED", "{shown}");
        let steps = shown["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 1, "{shown}");
        let step = (
            &steps[0]["operation"],
            &steps[0]["format"],
            &steps[0]["code"],
        );
        assert_eq!(step, (&json!("PACK"), &json!(format.0), &json!("205")));
        device.connect(ID, client.key()).unwrap();
        device.register(&register(ID, 90 + id));
    }
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    let refused = device.ask(&pack_request(&[], Some(ContentFormat::LWM2M_TLV), 9));
    assert_eq!(refused.code, Code::NOT_ACCEPTABLE);
}

#[test]
fn a_pack_that_is_long_is_sent_block_by_block() {
    let (service, caller) = start(&[PATIENT, NOSEC]);
    caller.create_device(ID, HERE);
    let servers: Vec<_> = (1..=8)
        .map(|id| json!({ "shortId": id, "lifetime": 60, "binding": "U", "security": "RPK" }))
        .collect();
    let config = json!({ "servers": servers });
    let path = format!("{API}/devices/{ID}/bootstrap");
    caller.try_send("PUT", &path, &config).unwrap().expect(200);
    let socket = DeviceSocket::from(HERE, &service);
    let ask = |number: u32| {
        let request = pack_request(&[&format!("ep={ID}")], None, 10 + number as u16);
        let block = Block::new(number, More::No, BlockSize::MAX);
        match number {
            0 => socket.ask(&request),
            _ => socket.ask(&request.with_block2(block)),
        }
    };
    let early = ask(1);
    assert_eq!(early.code, Code::BAD_REQUEST, "{early:?}");
    let mut body = Vec::new();
    for number in 0.. {
        let part = ask(number);
        assert_eq!(part.code, Code::CONTENT, "{part:?}");
        body.extend(&part.payload);
        if !part.block2().unwrap().has_more() {
            break;
        }
        let shown = caller.inspect(ID)["bootstrap"].take();
        assert_eq!(shown["state"], "RUNNING", "{shown}");
    }
    assert!(body.len() > 2 * BlockSize::MAX.bytes());
    assert_eq!(once_ended(&caller, ID)["state"], "SUCCEEDED");
    let mut client = BootstrapClient::new(0);
    client.keep_all(ContentFormat::SENML_CBOR, &body);
    // The account of the bootstrap server is at 0 or 1.
    for (instance, id) in (2..=9).zip(1..) {
        assert_eq!(client.value(&format!("/0/{instance}/10")), id.to_string());
    }
}

#[test]
fn a_bootstrap_that_a_crash_interrupts_loses_no_key_and_is_repeated() {
    let (mut service, mut caller) = start(&[PATIENT]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    let mut client = BootstrapClient::new(0);
    device.send(&bootstrap_request(&[&format!("ep={ID}")], 1));
    // Up to the account, which has a key.
    while client.answer_next(&mut device) != "PUT /0/1 11542" {}
    let written = client.key();
    crash(&mut service, &mut caller);
    assert_eq!(caller.inspect(ID)["bootstrap"]["state"], "INTERRUPTED");
    let mut device = SecuredDevice::at(HERE, &service);
    device
        .connect(ID, &written)
        .expect("the key was saved before it was written");
    device
        .connect(ID, KEY)
        .expect("the bootstrap account has it");
    let next = bootstrap_over_dtls(&service, &caller);
    assert_ne!(next, written);
    device.connect(ID, &next).unwrap();
    device.register(&register(ID, 4));
}

#[test]
fn a_refused_finish_fails_the_bootstrap_with_its_step() {
    let (service, caller) = start(&[PATIENT]);
    caller.create_secured_device(ID, KEY);
    let mut device = SecuredDevice::connected(HERE, &service, ID, KEY);
    let mut client = BootstrapClient::new(1);
    client.finish = Code::NOT_ACCEPTABLE;
    client.bootstrap(&mut device, &[], 1);
    assert!(
        client.requests.contains(&"PUT /0/2 11542".to_owned()),
        "{:?}",
        client.requests
    );
    let shown = once_ended(&caller, ID);
    assert_eq!(shown["state"], "FAILED");
    assert_eq!(shown["error"], "the device answered Finish with 4.06");
    let entries = caller.log_entries();
    let entry = entries
        .iter()
        .find(|it| it["message"] == "LwM2M[BootstrapRejected]");
    let said = text(&entry.expect("it is logged")["description"]);
    assert!(said.contains("Finish with 4.06"), "{said}");
}

#[test]
fn a_device_comes_to_its_bootstrap_when_a_caller_triggers_it() {
    let (service, caller) = start(&[PATIENT, NOSEC]);
    caller.create_device(ID, HERE);
    let mut socket = DeviceSocket::from(HERE, &service);
    socket.register(ID, 1);
    let action = caller.create_action(ID, &execute("/1/0/9"));
    let asked = socket.receive_request();
    socket.send(&answer(&asked, Code::CHANGED).encode());
    assert_eq!(outcome(&caller.final_action(&action)), ("SUCCEEDED", "204"));
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut socket, &[&format!("ep={ID}")], 2);
    assert_eq!(once_ended(&caller, ID)["state"], "SUCCEEDED");
}

#[test]
fn a_device_is_given_what_is_configured_for_it_or_for_its_customer() {
    let settings = [
        PATIENT,
        NOSEC,
        ("SIGNALBOX_PUBLIC_COAPS", "coaps://iot.example:5684"),
    ];
    let (mut service, mut caller) = start(&settings);
    caller.create_device(ID, HERE);
    let of_customer = json!({
        "servers": [
            { "shortId": 1111, "lifetime": 3600, "binding": "UQ", "security": "PSK" },
            { "shortId": 2222, "uri": "coap://second.example:5683", "lifetime": 60, "binding": "U",
              "security": "NOSEC" },
        ],
        "objects": { "/1/1/13": 2, "/3/0/15": "Europe/Berlin" },
    });
    let path = format!("{API}/bootstrap");
    let put = caller.try_send("PUT", &path, &of_customer).unwrap();
    assert_eq!(put.expect(200), of_customer);
    crash(&mut service, &mut caller);
    assert_eq!(caller.request("GET", &path).expect(200), of_customer);
    let mut socket = DeviceSocket::from(HERE, &service);
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut socket, &[&format!("ep={ID}")], 1);
    for (path, value) in [
        ("/0/1/0", "coaps://iot.example:5684"),
        ("/0/1/2", "0"),
        ("/0/2/0", "coap://second.example:5683"),
        ("/0/2/2", "3"),
        ("/1/0/7", "UQ"),
        ("/1/0/1", "3600"),
        ("/1/1/0", "2222"),
        ("/1/1/13", "2"),
        ("/3/0/15", "Europe/Berlin"),
    ] {
        assert_eq!(client.value(path), value, "{path}");
    }
    assert_eq!(client.key().len(), 16);

    let own = json!({
        "servers": [{ "shortId": 7, "lifetime": 60, "binding": "U", "security": "NOSEC" }],
        "objects": {},
    });
    let of_device = format!("{API}/devices/{ID}/bootstrap");
    caller.request("GET", &of_device).expect(404);
    let put = caller.try_send("PUT", &of_device, &own).unwrap();
    assert_eq!(put.expect(200), own);
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut socket, &[&format!("ep={ID}")], 2);
    assert_eq!(client.value("/0/1/10"), "7");
    assert_eq!(caller.request("DELETE", &of_device).status, 204);
    caller.request("DELETE", &of_device).expect(404);
    caller
        .request("GET", &format!("{API}/devices/nobody/bootstrap"))
        .expect(404);
}

#[test]
fn every_fault_of_a_configuration_is_reported() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let wrong = json!({
        "servers": [
            { "shortId": 0, "lifetime": 86_401, "binding": "X", "security": "OSCORE" },
            { "shortId": 1, "uri": "coap://a", "lifetime": 1, "binding": "U", "security": "PSK" },
            { "uri": "http://a", "extra": 1 },
            { "shortId": 2, "lifetime": 1, "binding": "U", "security": "PSK", "key": "" },
        ],
        "objects": { "/0/1/0": "coap://a", "/3/0/13": "soon", "/3/0": 1, "/3/0/15": [] },
    });
    let refused = caller
        .try_send("PUT", &format!("{API}/bootstrap"), &wrong)
        .unwrap();
    let refused = refused.expect(400);
    assert_eq!(
        error_fields(&refused),
        [
            "objects./0/1/0",
            "objects./3/0",
            "objects./3/0/13",
            "objects./3/0/15",
            "servers[0].binding",
            "servers[0].lifetime",
            "servers[0].security",
            "servers[0].shortId",
            "servers[1].uri",
            "servers[2].binding",
            "servers[2].extra",
            "servers[2].lifetime",
            "servers[2].security",
            "servers[2].shortId",
            "servers[2].uri",
            "servers[3].key",
        ],
        "{refused}"
    );
    for body in [
        json!({}),
        json!({ "servers": [] }),
        json!({ "servers": {} }),
    ] {
        let path = format!("{API}/devices/{ID}/bootstrap");
        let refused = caller.try_send("PUT", &path, &body).unwrap().expect(400);
        assert_eq!(error_codes(&refused).len(), 1, "{refused}");
    }
}

/// A certificate of the device whose time is over, in PEM.
fn expired_certificate(key: &rcgen::KeyPair) -> String {
    let mut params = rcgen::CertificateParams::new([ID.to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    params.self_signed(key).unwrap().pem()
}

/// The bootstrap of a device as the inspector shows it, once it has ended.
fn once_ended(caller: &Caller, device: &str) -> Value {
    until("the end of the bootstrap", || {
        let shown = caller.inspect(device)["bootstrap"].take();
        shown["ended"].is_string().then_some(shown)
    })
}

/// Bootstraps the device over DTLS with its first key. Returns the fresh key.
fn bootstrap_over_dtls(service: &Service, caller: &Caller) -> Vec<u8> {
    let mut device = SecuredDevice::connected(HERE, service, ID, KEY);
    let mut client = BootstrapClient::new(0);
    client.bootstrap(&mut device, &[&format!("ep={ID}")], 1);
    assert_eq!(client.value("/0/1/0"), format!("coaps://{}", service.coaps));
    assert_eq!(client.value("/0/1/2"), "0");
    let shown = once_ended(caller, ID);
    assert_eq!(shown["state"], "SUCCEEDED", "{shown}");
    client.key()
}

/// A Bootstrap-Pack-Request.
fn pack_request(queries: &[&str], accept: Option<ContentFormat>, id: u16) -> Message {
    let request = request(Code::GET, id)
        .with_uri_path(["bspack"])
        .with_uri_query(queries);
    match accept {
        Some(format) => request.with_accept(format),
        None => request,
    }
}

fn raw_key() -> Arc<SigningKey> {
    let key = rcgen::KeyPair::generate().unwrap().serialize_der();
    Arc::new(SigningKey::from_der(&key, Vec::new()).unwrap())
}

/// The public key of the service, in DER.
fn server_key(caller: &Caller) -> Vec<u8> {
    let shown = caller.request("GET", &format!("{API}/dtls")).expect(200);
    base64_text::decode(&text(&shown["publicKey"])).unwrap()
}

/// A Bootstrap-Request.
fn bootstrap_request(queries: &[&str], id: u16) -> Message {
    request(Code::POST, id)
        .with_uri_path(["bs"])
        .with_uri_query(queries)
}

/// What a device sends and receives with.
pub(crate) trait Wire {
    fn put(&mut self, message: &Message);
    fn take(&mut self) -> Message;
    fn take_answer(&mut self, request: &Message) -> Message;
}

impl Wire for DeviceSocket {
    fn put(&mut self, message: &Message) {
        self.send(&message.encode());
    }

    fn take(&mut self) -> Message {
        self.receive_request()
    }

    fn take_answer(&mut self, request: &Message) -> Message {
        self.ask_among_others(request)
    }
}

impl Wire for SecuredDevice {
    fn put(&mut self, message: &Message) {
        self.send(message);
    }

    fn take(&mut self) -> Message {
        self.receive_request()
    }

    fn take_answer(&mut self, request: &Message) -> Message {
        self.ask(request)
    }
}

/// A device during its bootstrap.
pub(crate) struct BootstrapClient {
    /// The instance of the account of its bootstrap server.
    own: u16,
    finish: Code,
    values: BTreeMap<Path, Lwm2mValue>,
    /// What it was requested, and the format of what was written.
    requests: Vec<String>,
}

impl BootstrapClient {
    pub(crate) fn new(own: u16) -> Self {
        Self {
            own,
            finish: Code::CHANGED,
            values: BTreeMap::new(),
            requests: Vec::new(),
        }
    }

    /// Asks for its bootstrap and answers everything up to Finish.
    pub(crate) fn bootstrap(&mut self, wire: &mut impl Wire, queries: &[&str], id: u16) {
        let accepted = wire.take_answer(&bootstrap_request(queries, id));
        assert_eq!(accepted.code, Code::CHANGED, "{accepted:?}");
        while self.answer_next(wire) != "POST /bs" {}
    }

    /// Answers the next request. Returns what it was.
    fn answer_next(&mut self, wire: &mut impl Wire) -> String {
        let asked = wire.take();
        let segments: Vec<_> = asked.uri_path().collect();
        let path = format!("/{}", segments.join("/"));
        let (name, code, payload) = match asked.code {
            Code::DELETE => (format!("DELETE {path}"), Code::DELETED, String::new()),
            Code::GET => {
                let own = format!("</>;lwm2m=1.1,</0/{}>;uri=\"coaps://bs.example\"", self.own);
                (format!("GET {path}"), Code::CONTENT, own)
            }
            Code::PUT => {
                let format = asked.content_format().unwrap();
                self.keep(format, Path::parse(&path).unwrap(), &asked.payload);
                (
                    format!("PUT {path} {}", format.0),
                    Code::CHANGED,
                    String::new(),
                )
            }
            _ => (format!("POST {path}"), self.finish, String::new()),
        };
        let response = Message::response_to(&asked, code, MessageId(0)).with_payload(payload);
        wire.put(&response);
        self.requests.push(name.clone());
        name
    }

    fn keep(&mut self, format: ContentFormat, instance: Path, bytes: &[u8]) {
        let values = payload::decode(Some(format), instance, bytes, type_of).unwrap();
        self.values.extend(values);
    }

    /// Keeps a pack.
    fn keep_all(&mut self, format: ContentFormat, bytes: &[u8]) {
        let samples = payload::decode_samples(Some(format), Scope::All, bytes, &type_of).unwrap();
        let values = samples
            .into_iter()
            .map(|sample| (sample.path, sample.value));
        self.values.extend(values);
    }

    fn value(&self, path: &str) -> String {
        let path = Path::parse(path).unwrap();
        self.values[&path].to_text()
    }

    fn opaque(&self, path: &str) -> Vec<u8> {
        let path = Path::parse(path).unwrap();
        let Lwm2mValue::Opaque(bytes) = &self.values[&path] else {
            panic!("{path} is opaque");
        };
        bytes.clone()
    }

    /// The secret key of the first account.
    pub(crate) fn key(&self) -> Vec<u8> {
        self.opaque("/0/1/5")
    }
}

fn type_of(path: Path) -> Option<DataType> {
    let resource = model::resource(path.object_id(), Version::new(9, 9), path.resource_id()?);
    resource?.data_type()
}
