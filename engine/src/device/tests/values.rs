//! Values: each of the eight types, as callers write them and as they are encoded; values that do
//! not fit.

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;

use super::vocabulary::{
    DeviceFixture, HOME, Lines, OBJECTS, S, all, answered, created, execute, execute_with, logged,
    moved, read, refused_at_once, sent, updated, write,
};
use crate::action::Status::{Failed, InProgress, Scheduled};

#[test]
fn each_type_is_written_as_a_device_expects_it() {
    let cases = [
        (
            "TIME",
            "/3/0/13",
            "2023-11-14T22:13:20Z",
            r#"format 0 "1700000000""#,
        ),
        ("TIME", "/3/0/13", "1700000000", r#"format 0 "1700000000""#),
        ("STRING", "/3/0/14", "+01:00", r#"format 0 "+01:00""#),
        ("BOOLEAN", "/3306/0/5850", "true", r#"format 0 "1""#),
        ("INTEGER", "/1/0/1", "300", r#"format 0 "300""#),
        ("FLOAT", "/3308/0/5900", "2.15e1", r#"format 0 "21.5""#),
        ("UNSIGNED_INTEGER", "/3387/0/805", "007", r#"format 0 "7""#),
        ("OBJLINK", "/1/0/10", "11:0", r#"format 0 "11:0""#),
        ("OPAQUE", "/5/0/0", "QUJD", r#"format 42 "ABC""#),
    ];
    for (data_type, path, data, written) in cases {
        let mut fixture = DeviceFixture::registered();
        let effects = fixture.submit(write(path, data)).1;
        let expected = sent(&format!("CON PUT {path} {written} m1"));
        assert!(effects.ends_with(&expected), "{data_type}: {effects:?}");
    }
}

#[test]
fn each_type_is_read_as_a_caller_is_shown_it() {
    let cases = [
        ("TIME", "/3/0/13", "1700000000", "2023-11-14T22:13:20Z"),
        ("STRING", "/3/0/14", "+01:00", "+01:00"),
        ("BOOLEAN", "/3306/0/5850", "0", "false"),
        ("INTEGER", "/3/0/9", "87", "87"),
        ("FLOAT", "/3303/0/5700", "21.50", "21.5"),
        ("UNSIGNED_INTEGER", "/1/0/11", "7", "7"),
        ("OBJLINK", "/1/0/10", "11:0", "11:0"),
    ];
    for (data_type, path, answer, shown) in cases {
        let mut fixture = DeviceFixture::registered();
        let effects = fixture.submit(read(path)).1;
        let expected = sent(&format!("CON GET {path} accept 0 m1"));
        assert!(effects.ends_with(&expected), "{data_type}: {effects:?}");
        let values = format!("{path}={shown}");
        let expected = answered("#1", &values, &format!(r#"1/1 "205" {shown:?}"#));
        assert_eq!(
            fixture.answer(Code::CONTENT, answer),
            expected,
            "{data_type}"
        );
    }
}

#[test]
fn an_opaque_resource_is_read_as_bytes_and_shown_as_base64() {
    let cases = [
        (Some(ContentFormat::OCTET_STREAM), &[0, 255, 1][..]),
        (None, &[0, 255, 1]),
        (Some(ContentFormat::TEXT), b"AP8B"),
    ];
    for (format, payload) in cases {
        let mut fixture = DeviceFixture::registered();
        let effects = fixture.submit(read("/6/0/4")).1;
        assert!(
            effects.ends_with(&sent("CON GET /6/0/4 accept 42 m1")),
            "{effects:?}"
        );
        let mut answer = fixture.piggybacked(Code::CONTENT).with_payload(payload);
        if let Some(format) = format {
            answer = answer.with_content_format(format);
        }
        let expected = answered("#1", "/6/0/4=AP8B", r#"1/1 "205" "AP8B""#);
        assert_eq!(fixture.receives(HOME, &answer), expected, "{format:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_saved_failed_and_logged_in_one_step() {
    let why = "the value for /1/0/1 is not of type INTEGER: \
               expected a decimal integer of at most 64 bits";
    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(write("/1/0/1", "soon"));
    let entry = logged(&format!(
        "DeviceController[InvalidDataType] Error: Action request #1 was not sent: {why}."
    ));
    let failed = refused_at_once("#1", InProgress, &format!("0/1 {why:?}"));
    assert_eq!(effects, all([failed, entry.clone()]));
    let id = accepted.unwrap().id;
    assert_eq!(fixture.saved(id).status, Failed);
    assert_eq!(fixture.update(), updated(102), "it is never sent");

    let mut fixture = DeviceFixture::registered();
    let (accepted, effects) = fixture.submit(write("/1/0/1", "soon").when_active());
    assert!(accepted.is_ok());
    let failed = refused_at_once("#1", Scheduled, &format!("0/1 {why:?}"));
    assert_eq!(effects, all([failed, entry]), "whenever it was to be sent");
}

#[test]
fn the_type_is_that_of_the_version_the_device_offers() {
    for (objects, fits) in [
        ("</21/0>;ver=1.0", "AQ=="),
        ("</21>;ver=2.0,</21/0>", "AQ=="),
    ] {
        let mut fixture = DeviceFixture::new();
        fixture.register_with(&["lwm2m=1.1"], objects);
        let effects = fixture.submit(write("/21/0/0", fits)).1;
        let request = if objects.contains("2.0") {
            "format 42"
        } else {
            "format 0"
        };
        assert!(
            effects.last().unwrap().contains(request),
            "{objects}: {effects:?}"
        );
    }
}

#[test]
fn a_value_that_no_longer_fits_when_it_is_sent_fails_without_an_attempt() {
    let mut fixture = DeviceFixture::new();
    fixture.register_with(&["lwm2m=1.1"], "</21>;ver=1.0,</21/0>");
    fixture.ask(write("/21/0/0", "not base64").when_active());
    let message = fixture.updating(&[], "</21>;ver=2.0,</21/0>");
    let effects = fixture.at(S).receives(HOME, &message);
    let why = "the value for /21/0/0 is not of type OPAQUE: expected standard base64";
    let expected = all([
        moved("#1", Scheduled, Failed, &format!("0/1 {why:?}")),
        logged(&format!(
            "DeviceController[InvalidDataType] Error: Action request #1 was not sent: {why}."
        )),
    ]);
    assert!(effects.ends_with(&expected), "{effects:?}");
}

#[test]
fn a_value_for_an_unknown_object_is_sent_as_text() {
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.submit(write("/32769/0/1", "anything")).1;
    let request = sent("CON PUT /32769/0/1 format 0 \"anything\" m1");
    assert!(effects.ends_with(&request), "{effects:?}");
}

#[test]
fn a_value_of_an_unknown_object_is_requested_with_its_type_from_a_device_that_announces_it() {
    let mut fixture = DeviceFixture::new();
    let objects = "</>;rt=\"oma.lwm2m\";ct=\"110 11542\",</32769/0>";
    fixture.register_with(&["lwm2m=1.1"], objects);
    let effects = fixture.submit(read("/32769/0/1")).1;
    let request = sent("CON GET /32769/0/1 accept 110 m1");
    assert!(effects.ends_with(&request), "{effects:?}");
    let answer = fixture
        .piggybacked(Code::CONTENT)
        .with_content_format(ContentFormat::SENML_JSON)
        .with_payload(r#"[{"n":"/32769/0/1","vb":true}]"#);
    let expected = answered("#1", "/32769/0/1=true", r#"1/1 "205" "true""#);
    assert_eq!(fixture.receives(HOME, &answer), expected);
    // A device that refuses it, too, may answer in any format.
    fixture.ask(read("/32769/0/1"));
    let effects = fixture.answer(Code::NOT_ACCEPTABLE, "");
    assert_eq!(effects, sent("CON GET /32769/0/1 m3"));
}

#[test]
fn a_value_of_an_unknown_object_is_shown_as_text_or_as_base64() {
    for (payload, shown) in [(&b"21.5 C"[..], "21.5 C"), (&[0xff, 1], "/wE=")] {
        let mut fixture = DeviceFixture::registered();
        let effects = fixture.submit(read("/32769/0/1")).1;
        assert!(
            effects.ends_with(&sent("CON GET /32769/0/1 m1")),
            "{effects:?}"
        );
        let answer = fixture.piggybacked(Code::CONTENT).with_payload(payload);
        let values = format!("/32769/0/1={shown}");
        let expected = answered("#1", &values, &format!(r#"1/1 "205" {shown:?}"#));
        assert_eq!(fixture.receives(HOME, &answer), expected);
    }
}

#[test]
fn a_write_to_a_multiple_resource_writes_its_instance_zero() {
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.submit(write("/3/0/6", "1")).1;
    assert!(
        effects.ends_with(&sent("CON PUT /3/0/6/0 format 0 \"1\" m1")),
        "{effects:?}"
    );
    let mut fixture = DeviceFixture::registered();
    let effects = fixture.submit(write("/3/0/6/2", "1")).1;
    assert!(
        effects.ends_with(&sent("CON PUT /3/0/6/2 format 0 \"1\" m1")),
        "{effects:?}"
    );
}

#[test]
fn paths_lie_below_the_root_the_device_names() {
    let mut fixture = DeviceFixture::new();
    let objects = format!(
        "</lwm2m>;rt=\"oma.lwm2m\",{}",
        OBJECTS.replace("</", "</lwm2m/")
    );
    fixture.register_with(&["lwm2m=1.1"], &objects);
    let effects = fixture.submit(read("/3/0/9")).1;
    assert!(
        effects.ends_with(&sent("CON GET /lwm2m/3/0/9 accept 0 m1")),
        "{effects:?}"
    );
}

#[test]
fn an_execute_carries_its_arguments_as_text() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(execute("/3/0/4"));
    assert!(
        effects.ends_with(&sent("CON POST /3/0/4 m1")),
        "{effects:?}"
    );
    let mut fixture = DeviceFixture::registered();
    let with_arguments = execute_with("/3/0/4", "0='a'");
    let effects = fixture.submit(with_arguments).1;
    assert!(
        effects.ends_with(&sent("CON POST /3/0/4 format 0 \"0='a'\" m1")),
        "{effects:?}"
    );
}

#[test]
fn an_operation_the_model_does_not_allow_is_sent_anyway() {
    for request in [
        write("/3303/0/5700", "21.5"),
        read("/3/0/4"),
        execute("/3/0/9"),
    ] {
        let mut fixture = DeviceFixture::registered();
        fixture.ask(request);
        let effects = fixture.answer(Code::METHOD_NOT_ALLOWED, "");
        let failed = "save #1 InProgress -> Failed 1/1 \"405\" \"the device answered 4.05\"";
        assert_eq!(effects[3], failed);
    }
}

#[test]
fn sends_are_muted_and_permitted_by_a_boolean_of_the_server_object() {
    for (data, text) in [("true", "1"), ("false", "0")] {
        let mut fixture = DeviceFixture::registered();
        let effects = fixture.submit(write("/1/0/23", data)).1;
        let message = sent(&format!("CON PUT /1/0/23 format 0 {text:?} m1"));
        assert!(effects.ends_with(&message), "{effects:?}");
    }
}

#[test]
fn a_write_of_an_empty_text_is_a_write() {
    let mut fixture = DeviceFixture::registered();
    let (_, effects) = fixture.submit(write("/3/0/14", ""));
    let expected: Lines = all([
        created("#1", InProgress, "0/1"),
        moved("#1", InProgress, InProgress, "1/1"),
        sent("CON PUT /3/0/14 format 0 m1"),
    ]);
    assert_eq!(effects, expected);
}
