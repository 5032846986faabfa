//! Can a device receive data of another device? Several devices of a customer may have one address,
//! and a request may go to any port of that address.

use protocol::coap::code::Code;

use super::{ELSEWHERE, ID, IP, PlainService};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::plain::{ReportedData, answer, coap, data};
use crate::vocabulary::wire::{DeviceSocket, update};

#[test]
fn a_request_to_a_shared_address_reveals_no_data_sent_from_there() {
    let mut setup = PlainService::new();
    // Only devices of one customer may have one address.
    let rival = Caller::with_token(&setup.service, setup.caller.token());
    rival.create_device("theirs", IP);
    let id = rival.create_over("COAP", "theirs", &coap("GET", "/a", setup.coap.port()));
    let request = setup.coap.receive_request();
    let message = data("t", "mine", setup.id());
    assert_eq!(setup.coap.ask(&message).code, Code::UNAUTHORIZED);
    setup.coap.send(&answer(&request, Code::CONTENT).encode());
    assert_eq!(rival.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(rival.reported("theirs"), []);
}

#[test]
fn data_of_a_registered_device_is_its_own_during_a_request_of_another_to_its_peer() {
    // With several arbiters, a device may not receive the answer from a peer where another is
    // registered.
    let setup = PlainService::with(&[("SIGNALBOX_ARBITERS", "1")]);
    let registered = DeviceSocket::from(IP, &setup.service);
    let location = registered.register(ID, 1);
    // Only devices of one customer may have one address.
    let rival = Caller::with_token(&setup.service, setup.caller.token());
    rival.create_device("theirs", IP);
    let id = rival.create_over("COAP", "theirs", &coap("GET", "/a", registered.port()));
    let request = registered.receive_request();
    assert_eq!(registered.ask(&data("t", "during", 2)).code, Code::CHANGED);
    registered.send(&answer(&request, Code::CONTENT).encode());
    assert_eq!(rival.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(registered.ask(&data("t", "after", 3)).code, Code::CHANGED);
    assert_eq!(registered.ask(&update(&location, 4)).code, Code::CHANGED);
    let expected = ["during", "after"].map(|it| ReportedData::over_coap("t", it));
    assert_eq!(setup.caller.reported(ID), expected);
    assert_eq!(rival.reported("theirs"), []);
}

#[test]
fn data_belongs_to_the_new_owner_of_an_address_despite_an_old_registration_there() {
    let setup = PlainService::new();
    let wire = DeviceSocket::from(IP, &setup.service);
    wire.register(ID, 1);
    setup.caller.move_device(ID, Some(ELSEWHERE));
    setup.caller.create_device("heir", IP);
    assert_eq!(wire.ask(&data("t", "heir", 2)).code, Code::CHANGED);
    assert_eq!(
        setup.caller.reported("heir"),
        [ReportedData::over_coap("t", "heir")]
    );
    assert_eq!(setup.caller.reported(ID), []);
}
