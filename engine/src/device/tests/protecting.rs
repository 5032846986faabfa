//! Does a caller learn that the device protects an object, and is it asked all the same? Which
//! server has which rights is decided by the device (LwM2M Core 1.1 section 8).

use protocol::coap::code::Code;

use super::vocabulary::{DeviceFixture, discover, read, sent, write, write_attributes};
use crate::action::Status::Failed;

#[test]
fn a_refusal_of_access_is_the_result_of_each_operation() {
    let requests = [
        (read("/0/0"), "CON GET /0/0 accept 11542 m1"),
        (
            write("/0/0/0", "coaps://a"),
            "CON PUT /0/0/0 format 0 \"coaps://a\" m1",
        ),
        (
            write_attributes("/0/0", "pmin=1"),
            "CON PUT /0/0 ?pmin=1 m1",
        ),
        (discover("/0"), "CON GET /0 accept 40 m1"),
    ];
    for (request, message) in requests {
        let mut fixture = DeviceFixture::registered();
        let (accepted, effects) = fixture.submit(request);
        assert!(effects.ends_with(&sent(message)), "{effects:?}");
        fixture.answer(Code::UNAUTHORIZED, "");
        let refused = fixture.saved(accepted.unwrap().id);
        assert_eq!(refused.status, Failed, "{message}");
        let outcome = refused.outcome.as_ref().unwrap();
        assert_eq!(outcome.code.as_deref(), Some("401"), "{message}");
    }
}

#[test]
fn the_rights_of_a_server_are_an_instance_named_by_its_short_id() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(write("/2/1/2/2222", "3"));
    let message = sent("CON PUT /2/1/2/2222 format 0 \"3\" m1");
    assert!(effects.ends_with(&message), "{effects:?}");
    let effects = fixture.answer(Code::NOT_FOUND, "");
    assert_eq!(effects.len(), 1, "{effects:?}");
    let created = "CON POST /2/1 format 11542 ";
    assert!(effects[0].contains(created), "{effects:?}");
    let owner = fixture.submit(write("/2/1/3", "everyone")).1;
    let unfit = owner.iter().any(|line| line.contains("InvalidDataType"));
    assert!(unfit, "the owner is the short id of a server: {owner:?}");
}
