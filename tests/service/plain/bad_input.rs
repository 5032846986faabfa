//! Does no input harm the service, and does each invalid input get its defined answer?

use std::net::UdpSocket;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use serde_json::{Value, json};

use super::{ELSEWHERE, ID, IP, PRIVATE, PlainService};
use crate::test_service::{error_codes, keys};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::when_active;
use crate::vocabulary::plain::{ReportedData, UdpDevice, carrying_bytes, coap, data, datagram};
use crate::vocabulary::poll::{PATIENCE, until};
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, request};

#[test]
fn the_largest_possible_datagrams_are_handled() {
    let mut setup = PlainService::new();
    let (over_coap, over_udp) = (vec![1; 65_000], vec![2; 65_507]);
    let large = setup.coap.ask(&data("large", over_coap.clone(), 1));
    assert_eq!(large.code, Code::CHANGED);
    setup.udp.send(&over_udp);
    let reported = setup.caller.once_reported(ID, 2);
    assert_eq!(
        reported,
        [
            ReportedData::over_coap("large", over_coap),
            ReportedData::over_udp(over_udp)
        ]
    );
    let nonsense = request(Code::POST, 2).with_payload(vec![3; 65_000]);
    assert_eq!(setup.coap.ask(&nonsense).code, Code::BAD_REQUEST);
    let path: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    let deep = request(Code::POST, 3).with_uri_path(path);
    assert_eq!(setup.coap.ask(&deep).code, Code::NOT_FOUND);
    let queries: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    let wide = request(Code::POST, 4).with_uri_query(queries);
    assert_eq!(setup.coap.ask(&wide).code, Code::BAD_REQUEST);
    setup.post("well");
}

#[test]
fn a_device_above_its_rate_is_asked_to_pause_and_others_are_accepted() {
    let setup = PlainService::new();
    setup.caller.create_device("other", ELSEWHERE);
    let other = DeviceSocket::from(ELSEWHERE, &setup.service);
    let mut taken = 0;
    let refused = (1..=200).find_map(|id| {
        let answer = setup.coap.ask(&data("t", vec![0; 60_000], id));
        taken += usize::from(answer.code == Code::CHANGED);
        (answer.code != Code::CHANGED).then_some(answer)
    });
    let refused = refused.expect("there is an end to it");
    assert_eq!(refused.code, Code::SERVICE_UNAVAILABLE);
    let max_age_s = refused.max_age().unwrap_or_default();
    assert!(max_age_s > 0, "{refused:?}");
    assert_eq!(other.ask(&data("t", "21.5", 1)).code, Code::CHANGED);
    assert_eq!(
        setup.caller.reported(ID).len(),
        taken,
        "accepted data is published"
    );
}

#[test]
fn a_flood_of_datagrams_from_unknown_addresses_does_no_harm() {
    let mut setup = PlainService::new();
    let strangers: Vec<UdpDevice> = (0..20)
        .map(|number| UdpDevice::from(&format!("127.0.1.{}", number + 1), &setup.service))
        .collect();
    for number in 0..20_000_usize {
        strangers[number % 20].send(&number.to_le_bytes()[..number % 8]);
    }
    setup.post("heard");
    let begun = setup.caller.reported(ID).len();
    until("a datagram to be accepted again", || {
        setup.udp.send(b"heard, too");
        (setup.caller.reported(ID).len() > begun).then_some(())
    });
    let ready = Request::new("GET", "/readyz").send(setup.service.http);
    assert_eq!(ready.status, 200);
    let all = strangers.iter().flat_map(UdpDevice::received);
    assert_eq!(all.count(), 0, "nobody is answered");
}

#[test]
fn noise_from_a_device_s_own_address_does_no_harm() {
    let mut setup = PlainService::new();
    let mut state = 0x706c_6169_6e21_2121_u64;
    for round in 0..3_000_usize {
        let mut bytes = Vec::new();
        for _ in 0..round % 70 {
            // xorshift64: any bytes will do, as long as they are the same each time.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push(state.to_le_bytes()[5]);
        }
        // Some of the datagrams begin like data, and some like a block of data.
        if bytes.len() > 16 {
            let begins: &[u8] = match round % 3 {
                0 => b"\x40\x02..\xd2\x02t",
                1 => b"\x40\x02..\xd3\x02t=x\xc1\x08\xff",
                _ => b"\x50",
            };
            bytes.splice(..begins.len(), begins.iter().copied());
        }
        setup.coap.send(&bytes);
        if round % 50 == 49 {
            setup.coap.received_before_ping();
        }
    }
    setup.next_id = 0xEEE0;
    until("all of it to be met", || {
        // Processing the noise may take a while; until then the device is asked to retry later.
        let message = data("t", "well", setup.id());
        let answer = setup.coap.ask_until_answered(&message);
        (answer.code == Code::CHANGED).then_some(())
    });
    let port = setup.udp.port();
    let id = setup.create_udp(&datagram("well", port));
    assert_eq!(setup.udp.receive(), b"well");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    setup.post("still");
}

#[test]
fn an_address_that_is_not_of_one_host_is_refused() {
    let setup = PlainService::new();
    let none = [
        "224.0.1.187",
        "239.255.255.250",
        "255.255.255.255",
        "0.0.0.0",
        "ff02::fd",
        "ff05::fd",
        "::",
        "::ffff:224.0.1.187",
        "here",
        "127.0.0.1:5683",
        "",
    ];
    for ip in none {
        let body = json!({ "deviceId": "odd", "ip": ip });
        let refused = setup.caller.post(&format!("{API}/devices"), &body);
        assert_eq!(refused.expect(400)["errors"][0]["field"], "ip", "{ip}");
        let device = format!("{API}/devices/{ID}");
        let patch = json!({ "ip": ip });
        let refused = setup.caller.try_send("PATCH", &device, &patch).unwrap();
        assert_eq!(refused.expect(400)["errors"][0]["field"], "ip", "{ip}");
    }
    let import = format!("{API}/devices/import");
    let line = r#"{"deviceId":"odd","ip":"224.0.1.187"}"#;
    let reported = setup.caller.authorized("POST", &import);
    let reported = reported
        .text("application/x-ndjson", line)
        .send(setup.service.http);
    let reported = reported.expect(200);
    assert_eq!(reported["created"], 0, "{reported}");
    assert!(keys(&reported).len() > 1, "{reported}");
    assert_eq!(setup.caller.inspect(ID)["ip"], IP);
}

#[test]
fn the_service_sends_no_request_to_itself_and_nothing_loops() {
    let setup = PlainService::new();
    let own = setup.service.coap.ip().to_string();
    setup.caller.create_device("mirror", &own);
    check_mirror(&setup.service, &setup.caller);
    let id = setup.create_udp(&datagram("well", setup.udp.port()));
    assert_eq!(setup.udp.receive(), b"well");
    assert_eq!(setup.caller.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(setup.caller.reported("mirror"), []);
}

#[test]
fn a_service_that_listens_on_every_address_sends_no_request_to_itself() {
    let service = Service::start_everywhere_with(&[PRIVATE]);
    let caller = Caller::of_new_customer(&service, "Acme");
    caller.create_device("mirror", &service.http.ip().to_string());
    check_mirror(&service, &caller);
    caller.create_device(ID, IP);
    let device = UdpSocket::bind((IP, 0)).unwrap();
    device.set_read_timeout(Some(PATIENCE)).unwrap();
    let port = device.local_addr().unwrap().port();
    let id = caller.create_over("UDP", ID, &datagram("well", port));
    let (length, from) = device.recv_from(&mut [0; 16]).unwrap();
    assert_eq!((length, from.port()), (4, service.udp.port()));
    assert_eq!(caller.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(caller.reported("mirror"), []);
}

/// Checks that a request to a device at an address of the service is refused for each of the
/// service's own ports.
fn check_mirror(service: &Service, caller: &Caller) {
    let post = data("t", "echo", 7).encode();
    let mut own = vec![service.coap.port(), service.udp.port()];
    // The API listens at one address alone.
    own.extend(
        service
            .coap
            .ip()
            .is_unspecified()
            .then_some(service.http.port()),
    );
    for port in own {
        let cases: [(&str, Value); 4] = [
            ("COAP", coap("POST", "/?t=echo", port)),
            ("UDP", datagram("echo", port)),
            ("UDP", when_active(datagram("echo", port))),
            ("UDP", carrying_bytes(json!({ "port": port }), &post)),
        ];
        for (protocol, body) in cases {
            let refused = caller.try_over(protocol, "mirror", &body).expect(409);
            assert_eq!(error_codes(&refused), ["ADDRESS_FORBIDDEN"], "{refused}");
        }
    }
    assert_eq!(caller.reported("mirror"), [], "it does not hear itself");
}

#[test]
fn a_coap_message_over_udp_is_data_and_data_at_the_coap_port_is_ignored() {
    let setup = PlainService::new();
    let message = data("t", "a message", 1).encode();
    setup.udp.send(&message);
    assert_eq!(
        setup.caller.once_reported(ID, 1),
        [ReportedData::over_udp(message)]
    );
    for bytes in [&b"21.5"[..], b"{\"a\":1}", b"", b"\0"] {
        setup.coap.send(bytes);
        assert_eq!(setup.coap.received_before_ping(), [], "{bytes:?}");
    }
    let unsolicited = Message::separate(
        MessageKind::Confirmable,
        Code::CONTENT,
        MessageId(9),
        Token::from_u64(9),
    );
    setup.coap.send(&unsolicited.encode());
    assert_eq!(setup.coap.receive(), Message::reset(MessageId(9)));
    assert_eq!(setup.caller.reported(ID).len(), 1);
}
