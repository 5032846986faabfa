//! How is each kind of request without a path answered, and what is stored of it?

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::option;

use super::{ID, PlainService};
use crate::vocabulary::plain::{ReportedData, data};
use crate::vocabulary::wire::request;

/// The topic and the bytes stored of a request.
type Stored = Option<(&'static str, &'static [u8])>;

#[test]
fn each_request_is_answered_and_stored_as_documented() {
    let setup = PlainService::with(&[("SIGNALBOX_DATA_BYTES_MAX", "2048")]);
    let mut expected = Vec::new();
    for (id, (queries, payload, code, stored)) in (1..).zip(bodies()) {
        let message = request(Code::POST, id)
            .with_uri_query(&queries)
            .with_payload(payload);
        assert_eq!(
            setup.coap.ask(&message).code,
            code,
            "{queries:?} {payload:?}"
        );
        expected.extend(stored.map(|(topic, bytes)| ReportedData::over_coap(topic, bytes)));
    }
    assert_eq!(setup.caller.reported(ID), expected);
}

#[test]
fn options_are_handled_as_the_standard_says() {
    let setup = PlainService::new();
    let post = |id| data("t", "21.5", id);
    let cases: [(Message, Code); 11] = [
        (post(1).with_option(2_049, b"x"), Code::BAD_OPTION),
        (post(2).with_option(option::OSCORE, b""), Code::BAD_OPTION),
        (
            post(3).with_option(option::PROXY_URI, b"coap://h/"),
            Code::PROXYING_NOT_SUPPORTED,
        ),
        (
            post(4).with_option(option::PROXY_SCHEME, b"coap"),
            Code::PROXYING_NOT_SUPPORTED,
        ),
        (
            post(6).with_option(option::URI_PORT, &[1, 2, 3]),
            Code::BAD_OPTION,
        ),
        (post(7).with_uri_query(["x".repeat(256)]), Code::BAD_OPTION),
        (data(&"x".repeat(254), "21.5", 8), Code::BAD_OPTION),
        (post(9).with_option(2_048, b"x"), Code::CHANGED),
        (
            post(10).with_option(option::URI_HOST, b"signalbox.example"),
            Code::CHANGED,
        ),
        (
            post(11).with_option(option::CONTENT_FORMAT, &[50]),
            Code::CHANGED,
        ),
        (
            post(12).with_option(option::NO_RESPONSE, &[0]),
            Code::CHANGED,
        ),
    ];
    for (message, code) in &cases {
        assert_eq!(setup.coap.ask(message).code, *code, "{message:?}");
    }
    let expected = vec![ReportedData::over_coap("t", "21.5"); 4];
    assert_eq!(setup.caller.reported(ID), expected);
}

/// Queries and a payload, the response code, and what is stored.
fn bodies() -> Vec<(Vec<String>, &'static [u8], Code, Stored)> {
    static LARGEST: [u8; 2_048] = [b'x'; 2_048];
    static LARGER: [u8; 2_049] = [b'x'; 2_049];
    let taken = |queries: &[&str], payload: &'static [u8], topic: &'static str| {
        let queries = queries.iter().map(|it| (*it).to_owned()).collect();
        (queries, payload, Code::CHANGED, Some((topic, payload)))
    };
    let refused = |queries: &[&str], payload: &'static [u8], code: Code| {
        let queries = queries.iter().map(|it| (*it).to_owned()).collect();
        (queries, payload, code, None)
    };
    let bad = Code::BAD_REQUEST;
    static LONGEST: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "t".repeat(253));
    let longest = format!("t={}", *LONGEST);
    vec![
        taken(&["t=temperature"], b"21.5", "temperature"),
        taken(&["t=a/b/c"], br#"{"a":1}"#, "a/b/c"),
        taken(&["t=/"], &[0, 255, 0xC0], "/"),
        taken(&["t=$SYS"], b" ", "$SYS"),
        taken(&["t=\u{fc} \u{1f6a6}"], b"x", "\u{fc} \u{1f6a6}"),
        taken(&["t=a=b"], b"x", "a=b"),
        taken(&["x=1", "t=topic", "t", "T=x"], b"x", "topic"),
        taken(&[&longest], b"x", &LONGEST),
        taken(&["t=large"], &LARGEST, "large"),
        refused(&["t=large"], &LARGER, Code::REQUEST_ENTITY_TOO_LARGE),
        refused(&["t=topic"], b"", bad),
        refused(&[], b"x", bad),
        refused(&["t"], b"x", bad),
        refused(&["T=topic"], b"x", bad),
        refused(&["topic=t"], b"x", bad),
        refused(&["t="], b"x", bad),
        refused(&["t=a", "t=b"], b"x", bad),
        refused(&["t=a", "t=a"], b"x", bad),
        refused(&["t=+"], b"x", bad),
        refused(&["t=a/#"], b"x", bad),
        refused(&["t=a\u{0}"], b"x", bad),
        refused(&["t=a\nb"], b"x", bad),
        refused(&["t=a\u{7f}"], b"x", bad),
    ]
}
