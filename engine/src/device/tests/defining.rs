//! Are the objects that a customer defines used for its devices?

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::vocabulary::{
    DeviceFixture, HOME, S, all, definition, logged, moved, read, refused_at_once, sent, write,
};
use crate::action::Status::{Failed, InProgress, Scheduled};

const METERS: u16 = 33_000;
const METER: &str = "/33000/0/0";

#[test]
fn a_value_is_checked_by_what_the_customer_defines() {
    let why = "the value for /33000/0/0 is not of type FLOAT: expected a finite decimal number";
    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(33_000, "1.0", "RW", "Float")]);
    let effects = fixture.submit(write(METER, "warm")).1;
    let entry = logged(&format!(
        "DeviceController[InvalidDataType] Error: Action request #1 was not sent: {why}."
    ));
    let failed = refused_at_once("#1", InProgress, &format!("0/1 {why:?}"));
    assert_eq!(effects, all([failed, entry]));
    let effects = fixture.submit(write(METER, "22.5")).1;
    let request = sent("CON PUT /33000/0/0 format 0 \"22.5\" m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_value_has_the_type_the_customer_defines() {
    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(33_000, "1.0", "R", "Opaque")]);
    fixture.ask(read(METER));
    let effects = fixture.answer(Code::CONTENT, "AP8B");
    // Bytes are shown in base64.
    let is_published = effects
        .iter()
        .any(|line| line.contains("/33000/0/0=QVA4Qg=="));
    assert!(is_published, "{effects:?}");

    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(33_000, "1.0", "R", "Integer")]);
    fixture.ask(read(METER));
    let effects = fixture.answer(Code::CONTENT, "warm");
    let failed = effects.iter().any(|line| line.contains("Failed"));
    assert!(failed, "{effects:?}");
}

#[test]
fn a_new_definition_applies_to_scheduled_requests() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(write(METER, "warm").when_active());
    fixture.define(&[&definition(33_000, "1.0", "RW", "Float")]);
    let message = fixture.updating(&[], "");
    let effects = fixture.at(S).receives(HOME, &message);
    let why = "the value for /33000/0/0 is not of type FLOAT: expected a finite decimal number";
    let expected = all([
        moved("#1", Scheduled, Failed, &format!("0/1 {why:?}")),
        logged(&format!(
            "DeviceController[InvalidDataType] Error: Action request #1 was not sent: {why}."
        )),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_removed_definition_no_longer_applies() {
    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(33_000, "1.0", "RW", "Float")]);
    fixture.define(&[]);
    let effects = fixture.submit(write(METER, "warm")).1;
    let request = sent("CON PUT /33000/0/0 format 0 \"warm\" m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_definition_applies_to_the_version_a_device_offers() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1"], "</33000>;ver=2.0,</33000/0>");
    fixture.define(&[
        &definition(33_000, "1.0", "RW", "Float"),
        &definition(33_000, "2.0", "RW", "String"),
    ]);
    let effects = fixture.submit(write(METER, "warm")).1;
    let request = sent("CON PUT /33000/0/0 format 0 \"warm\" m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_defined_object_is_requested_like_one_of_known_types() {
    for (definitions, format) in [(vec![], 112), (vec![METERS], 11_542)] {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.1"], "</>;ct=\"112 11542\",</33000/0>");
        let definitions: Vec<String> = definitions.into_iter().map(several).collect();
        fixture.define(&definitions.iter().map(String::as_str).collect::<Vec<_>>());
        fixture.ask(read("/33000"));
        assert_eq!(fixture.last_request().accept(), Some(ContentFormat(format)));
    }
}

#[test]
fn a_value_without_an_instance_is_refused_if_the_customer_defines_several() {
    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(METERS, "1.0", "R", "Integer")]);
    fixture.ask(read("/33000"));
    let effects = fixture.receives(HOME, &without_instance(&fixture));
    assert_eq!(effects[0], "publish /33000/0/0=9 for #1");

    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&several(METERS)]);
    fixture.ask(read("/33000"));
    let effects = fixture.receives(HOME, &without_instance(&fixture));
    let failed = effects.iter().any(|line| line.contains("Failed"));
    assert!(failed, "{effects:?}");
}

#[test]
fn a_definition_precedes_the_object_of_the_registry() {
    let mut fixture = DeviceFixture::registered();
    fixture.define(&[&definition(3303, "1.0", "RW", "Integer")]);
    let effects = fixture.submit(write("/3303/0/0", "1.5")).1;
    assert!(
        effects
            .iter()
            .any(|line| line.contains("not of type INTEGER")),
        "{effects:?}"
    );
    let effects = fixture.submit(write("/3303/0/0", "15")).1;
    let request = sent("CON PUT /3303/0/0 format 0 \"15\" m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

/// The definition of an object with several instances.
fn several(object: u16) -> String {
    definition(object, "1.0", "R", "Integer").replacen("Single", "Multiple", 1)
}

/// An answer in TLV with the value 9 of resource 0, without an object instance.
fn without_instance(fixture: &DeviceFixture) -> Message {
    fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat::LWM2M_TLV)
        .with_payload([0xc1, 0, 9])
}
