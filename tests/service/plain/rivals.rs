//! Can a device, or its customer, get hold of what another says? Several devices may be given one
//! address, and whoever has one may be asked at any port of it.

use protocol::coap::code::Code;

use super::{ELSEWHERE, ID, IP, PlainService};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::plain::{ReportedData, answer, coap, data};
use crate::vocabulary::wire::{DeviceSocket, update};

#[test]
fn whoever_asks_at_an_address_of_several_hears_nothing_that_is_said_from_there() {
    let mut setup = PlainService::new();
    let rival = Caller::of_new_customer(&setup.service, "Umbrella");
    rival.create_device("theirs", IP);
    let id = rival.create_over("COAP", "theirs", &coap("GET", "/a", setup.coap.port()));
    let asked = setup.coap.receive_request();
    let said = data("t", "mine", setup.id());
    assert_eq!(setup.coap.ask(&said).code, Code::UNAUTHORIZED);
    setup.coap.send(&answer(&asked, Code::CONTENT).encode());
    assert_eq!(rival.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(rival.reported("theirs"), []);
}

#[test]
fn a_registered_device_is_heard_though_another_is_asked_where_it_is() {
    // With several, whoever asks where another is registered may not hear the answer.
    let setup = PlainService::with(&[("SIGNALBOX_ARBITERS", "1")]);
    let registered = DeviceSocket::from(IP, &setup.service);
    let location = registered.register(ID, 1);
    let rival = Caller::of_new_customer(&setup.service, "Umbrella");
    rival.create_device("theirs", IP);
    let id = rival.create_over("COAP", "theirs", &coap("GET", "/a", registered.port()));
    let asked = registered.receive_request();
    assert_eq!(registered.ask(&data("t", "during", 2)).code, Code::CHANGED);
    registered.send(&answer(&asked, Code::CONTENT).encode());
    assert_eq!(rival.final_action(&id)["status"], "SUCCEEDED");
    assert_eq!(registered.ask(&data("t", "after", 3)).code, Code::CHANGED);
    assert_eq!(registered.ask(&update(&location, 4)).code, Code::CHANGED);
    let told = ["during", "after"].map(|it| ReportedData::over_coap("t", it));
    assert_eq!(setup.caller.reported(ID), told);
    assert_eq!(rival.reported("theirs"), []);
}

#[test]
fn the_heir_of_an_address_is_heard_from_where_another_is_still_registered() {
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
