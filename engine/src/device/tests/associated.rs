//! A device that uses a security association is recognised by it, at any address.

use protocol::coap::code::Code;

use super::vocabulary::{DeviceFixture, Lines, MINUTE, OBJECTS, S, coap, logged, peer, read};
use crate::action::{Method, Status};
use crate::associations::handshake::HandshakeFault;

/// The association of the device, at addresses other than its own.
const HERE: &str = "10.0.9.1:5684 over DTLS";
const THERE: &str = "10.0.9.2:61000 over DTLS";

#[test]
fn a_device_is_recognised_by_its_association_at_any_address() {
    let mut fixture = DeviceFixture::new();
    let registration = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    let answered = fixture.receives(HERE, &registration);
    assert!(
        answered.ends_with(&sent(HERE, "ACK 2.01 L1 to 101")),
        "{answered:?}"
    );
    let update = fixture.updating(&[], "");
    let answered = fixture.receives(THERE, &update);
    assert!(
        answered.ends_with(&sent(THERE, "ACK 2.04 to 102")),
        "{answered:?}"
    );
    let found_at = fixture.device().found_at().expect("it is registered");
    assert_eq!(found_at.address, peer(THERE).address, "its latest address");
}

#[test]
fn an_answer_over_the_association_is_accepted_from_any_address() {
    let mut fixture = DeviceFixture::new();
    let registration = fixture.registration(&["lwm2m=1.1", "lt=86400"], OBJECTS);
    fixture.receives(HERE, &registration);
    let id = fixture.ask(read("/3/0/0"));
    let answer = fixture.piggybacked(Code::CONTENT).with_payload("ours");
    fixture.receives(THERE, &answer);
    assert_eq!(fixture.saved(id).status, Status::Succeeded);
}

#[test]
fn a_request_over_coap_goes_to_the_association_of_the_last_uplink() {
    let mut fixture = DeviceFixture::new();
    let data = fixture.request(Code::POST, &[]).with_uri_query(["t=flow"]);
    fixture.receives(HERE, &data);
    let id = fixture.ask(coap(Method::Get, "/a", ""));
    let answer = fixture.piggybacked(Code::CONTENT).with_payload("on");
    fixture.receives(THERE, &answer);
    assert_eq!(fixture.saved(id).status, Status::Succeeded);
}

#[test]
fn a_registration_with_the_name_of_another_device_is_refused() {
    let mut fixture = DeviceFixture::new();
    let registration = fixture
        .request(Code::POST, &["rd"])
        .with_uri_query(["ep=other", "lwm2m=1.1"]);
    let refused = fixture.receives(HERE, &registration);
    assert!(
        refused.ends_with(&sent(
            HERE,
            "ACK 4.03 \"endpoint name not accepted from this address\" to 101"
        )),
        "{refused:?}"
    );
    assert_eq!(fixture.snapshot().registration, None);
}

#[test]
fn refused_handshakes_are_logged_once_a_minute_and_counted() {
    let mut fixture = DeviceFixture::registered();
    let entry = |unlogged| {
        logged(&format!(
            "CoAP[UnauthorizedDevice] Error: A DTLS handshake from {} was rejected: the sender \
             has another key than the device. The device has the IP address 10.0.0.1 and is \
             registered at 10.0.0.1:5683.{unlogged}",
            peer(THERE)
        ))
    };
    let mut refuse_at = |at| {
        let fixture = fixture.at(at);
        fixture.is_refused_a_handshake(THERE, HandshakeFault::WrongKey)
    };
    assert_eq!(refuse_at(S), entry(""));
    assert_eq!(refuse_at(2 * S), [""; 0]);
    assert_eq!(refuse_at(3 * S), [""; 0]);
    let unlogged = " Rejected since 2023-11-14T22:13:22.000Z and not logged: 2 more.";
    assert_eq!(refuse_at(S + MINUTE), entry(unlogged));
}

fn sent(to: &str, message: &str) -> Lines {
    vec![format!("send {}: {message}", peer(to))]
}
