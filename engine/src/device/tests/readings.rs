//! Reads of whole objects and instances: how they are requested, and how their values are shown.

use protocol::coap::block::Block;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::value::Value;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, all, answered, ended, logged, read, sent, tlv, undecodable,
    without_record, write,
};
use crate::action::ResultPayload;
use crate::action::Status::{Failed, Succeeded};

#[test]
fn an_instance_is_read_as_its_values_by_path() {
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(read("/3/0"));
    assert!(
        effects.ends_with(&sent("CON GET /3/0 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3/0/0", Value::String("Acme".into())),
        ("/3/0/6/0", Value::Integer(1)),
        ("/3/0/6/1", Value::Integer(5)),
        ("/3/0/9", Value::Integer(87)),
        ("/3/0/13", Value::Time(1_700_000_000)),
    ];
    let answer = tlv(fixture.piggybacked(Code::CONTENT), "/3/0", &values);
    let shown = "/3/0/0=Acme /3/0/6/0=1 /3/0/6/1=5 /3/0/9=87 /3/0/13=2023-11-14T22:13:20Z";
    let expected = answered("#1", shown, &format!(r#"1/1 "205" {shown:?}"#));
    assert_eq!(fixture.receives(HOME, &answer), expected);

    let outcome = fixture.saved(accepted.unwrap().id).outcome.clone().unwrap();
    let values = values.map(|(path, value)| (path.parse().unwrap(), value));
    assert_eq!(outcome.payload, Some(ResultPayload::Values(values.into())));
}

#[test]
fn an_object_is_read_as_the_values_of_its_instances_by_path() {
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.submit(read("/3303")).1;
    assert!(
        effects.ends_with(&sent("CON GET /3303 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3303/0/5700", Value::Float(21.5)),
        ("/3303/2/5700", Value::Float(-4.25)),
        ("/3303/2/5701", Value::String("Cel".into())),
    ];
    let answer = tlv(fixture.piggybacked(Code::CONTENT), "/3303", &values);
    let shown = "/3303/0/5700=21.5 /3303/2/5700=-4.25 /3303/2/5701=Cel";
    let expected = answered("#1", shown, &format!(r#"1/1 "205" {shown:?}"#));
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn a_multiple_resource_is_read_as_its_instances_by_path() {
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.submit(read("/3/0/6")).1;
    assert!(
        effects.ends_with(&sent("CON GET /3/0/6 accept 11542 m1")),
        "{effects:?}"
    );
    let values = [
        ("/3/0/6/0", Value::Integer(1)),
        ("/3/0/6/1", Value::Integer(5)),
    ];
    let answer = tlv(fixture.piggybacked(Code::CONTENT), "/3/0/6", &values);
    let shown = "/3/0/6/0=1 /3/0/6/1=5";
    let expected = answered("#1", shown, &format!(r#"1/1 "205" {shown:?}"#));
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn a_single_resource_may_come_as_tlv_though_text_was_requested() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0/9"));
    let value = [("/3/0/9", Value::Integer(87))];
    let answer = tlv(fixture.piggybacked(Code::CONTENT), "/3/0/9", &value);
    let expected = answered("#1", "/3/0/9=87", r#"1/1 "205" "87""#);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn an_answer_without_a_format_is_tlv_if_several_values_were_requested() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0"));
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_payload([0xc1, 9, 87]);
    let expected = answered("#1", "/3/0/9=87", r#"1/1 "205" "/3/0/9=87""#);
    assert_eq!(fixture.receives(HOME, &answer), expected);
}

#[test]
fn an_object_without_instances_is_read_as_nothing() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3303"));
    let answer = tlv(fixture.piggybacked(Code::CONTENT), "/3303", &[]);
    assert_eq!(
        fixture.receives(HOME, &answer),
        ended("#1", Succeeded, r#"1/1 "205" """#)
    );
}

#[test]
fn a_read_requests_a_format_the_device_announces() {
    let cases = [
        (
            "</>;rt=\"oma.lwm2m\";ct=\"60 110 1542\",</3/0>",
            "CON GET /3/0 accept 110 m1",
        ),
        (
            "</>;rt=\"oma.lwm2m\";ct=\"60 1542\",</3/0>",
            "CON GET /3/0 accept 1542 m1",
        ),
        (
            "</>;rt=\"oma.lwm2m\";ct=\"60 110 11542\",</3/0>",
            "CON GET /3/0 accept 11542 m1",
        ),
        ("</>;rt=\"oma.lwm2m\";ct=60,</3/0>", "CON GET /3/0 m1"),
    ];
    for (objects, requested) in cases {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.1"], objects);
        let effects = fixture.submit(read("/3/0")).1;
        assert!(
            effects.ends_with(&sent(requested)),
            "{objects}: {effects:?}"
        );
    }
}

#[test]
fn values_that_cannot_be_decoded_are_a_failure_and_none_is_published() {
    let cases: [(Option<ContentFormat>, &[u8], &str); 4] = [
        (
            Some(ContentFormat::LWM2M_TLV),
            &[0xc1, 9, 87, 0xc8, 0],
            "the TLV payload is malformed: an entry is cut off",
        ),
        (
            Some(ContentFormat::LWM2M_TLV),
            &[0xc8, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            "the TLV payload is malformed: the value of /3/0/9 is not of type INTEGER",
        ),
        (
            Some(ContentFormat::TEXT),
            b"87",
            "payloads in Content-Format 0 hold one value only",
        ),
        (
            None,
            b"87",
            "the TLV payload is malformed: an entry is cut off",
        ),
    ];
    for (format, payload, why) in cases {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(read("/3/0"));
        let mut answer = fixture.piggybacked(Code::CONTENT).with_payload(payload);
        if let Some(format) = format {
            answer = answer.with_content_format(format);
        }
        let kept = format!("the response about /3/0 cannot be decoded: {why}");
        let why = format!("the response cannot be decoded: {why}");
        let expected = all([undecodable(&kept, payload), failed(r#"1/1 "205""#, &why)]);
        assert_eq!(without_record(fixture.receives(HOME, &answer)), expected);
    }
}

#[test]
fn an_answer_with_an_unreadable_value_has_the_others_and_the_log_names_it() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3303/0"));
    let payload = r#"[{"n":"/3303/0/5700","vs":"hot"},{"n":"/3303/0/5701","vs":"Cel"}]"#;
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(payload);
    let unit = "/3303/0/5701=Cel";
    let mut expected = answered("#1", unit, &format!(r#"1/1 "205" "{unit}""#));
    let entry = logged(&format!(
        "Translator[UserPayloadError] Error: Values of the response about /3303/0 cannot be read \
         and were not stored: the value of /3303/0/5700 is not of type FLOAT. The other values \
         were stored. Kept: {payload:?}"
    ));
    expected.splice(1..1, entry);
    assert_eq!(without_record(fixture.receives(HOME, &answer)), expected);
}

#[test]
fn an_inconsistent_block_is_not_accepted_as_the_answer() {
    let mut fixture = DeviceFixture::registered();
    fixture.ask(read("/3/0"));
    let values = [("/3/0/9", Value::Integer(87))];
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_block2(Block::from_value(0b1110));
    let why = "the block-wise response is invalid: a block does not match its Block option";
    assert_eq!(
        fixture.receives(HOME, &tlv(answer, "/3/0", &values)),
        failed(r#"1/1 "205""#, why)
    );
}

#[test]
fn a_multiple_resource_is_written_as_the_enabler_version_permits() {
    let cases = [
        (
            "lwm2m=1.0",
            "CON POST /3/0 format 11542 \"\u{fffd}\\u{6}A\\0\\u{1}\" m1",
        ),
        ("lwm2m=1.1", "CON PUT /3/0/6/0 format 0 \"1\" m1"),
        ("lwm2m=1.2", "CON PUT /3/0/6/0 format 0 \"1\" m1"),
    ];
    for (release, requested) in cases {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&[release, "lt=86400"], "</3/0>");
        let effects = fixture.submit(write("/3/0/6", "1")).1;
        assert!(
            effects.ends_with(&sent(requested)),
            "{release}: {effects:?}"
        );
        let expected = ended("#1", Succeeded, r#"1/1 "204""#);
        assert_eq!(fixture.answer(Code::CHANGED, ""), expected, "{release}");
    }
}

fn failed(progress: &str, why: &str) -> Lines {
    all([
        ended("#1", Failed, &format!("{progress} {why:?}")),
        logged(&format!(
            "DeviceController[ActionRequestFailed] Error: Action request #1 failed: {why}."
        )),
    ])
}
