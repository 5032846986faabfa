//! Is JSON read unchanged, with all numbers, and everything else refused?

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::{JsonToken, VALUES_MAX, number_text, parse};
use crate::lwm2m::payload::samples::MalformedSamples;
use crate::lwm2m::payload::scalar::{Number, Scalar};

#[test]
fn a_text_is_read_as_it_stands() {
    let cases = [
        ("null", JsonToken::Null),
        ("true", JsonToken::Scalar(Scalar::Boolean(true))),
        (" -1 ", integer(-1)),
        ("18446744073709551615", integer(u64::MAX.into())),
        ("-9223372036854775808", integer(i64::MIN.into())),
        ("18446744073709551616", float(18_446_744_073_709_551_616.0)),
        ("1.0", float(1.0)),
        ("1e3", float(1000.0)),
        (r#""\u00e9\"""#, text("é\"")),
        ("[]", JsonToken::List(vec![])),
        (
            "[[1],\"a\"]",
            JsonToken::List(vec![JsonToken::List(vec![integer(1)]), text("a")]),
        ),
        ("{}", JsonToken::Object(vec![])),
        (
            r#"{"a":1,"b":{"a":null},"a":2}"#,
            JsonToken::Object(vec![
                ("a".into(), integer(1)),
                (
                    "b".into(),
                    JsonToken::Object(vec![("a".into(), JsonToken::Null)]),
                ),
                ("a".into(), integer(2)),
            ]),
        ),
    ];
    for (json, token) in cases {
        assert_eq!(parse(json.as_bytes()), Ok(token), "{json}");
    }
}

#[test]
fn anything_but_one_json_text_is_refused() {
    let deep = "[".repeat(10_000);
    let cases: [&[u8]; 16] = [
        b"",
        b"[",
        b"[1,]",
        b"{\"a\"}",
        b"{a:1}",
        b"{1:1}",
        b"[] []",
        b"01",
        b"+1",
        b".5",
        b"1e999",
        b"NaN",
        b"'a'",
        b"\"\xff\"",
        b"\xef\xbb\xbf[]",
        deep.as_bytes(),
    ];
    for json in cases {
        assert_eq!(parse(json), Err(MalformedSamples::Json), "{json:?}");
    }
}

#[test]
fn values_are_counted() {
    let list = |length: usize| format!("[{}0]", "0,".repeat(length - 1));
    assert!(parse(list(VALUES_MAX - 2).as_bytes()).is_ok());
    assert_eq!(
        parse(list(VALUES_MAX).as_bytes()),
        Err(MalformedSamples::TooMany)
    );
}

proptest! {
    #[test]
    fn finite_numbers_are_read_exactly(number in any::<f64>().prop_filter("f", |n| n.is_finite())) {
        let written = number_text(number);
        prop_assert!(written.contains('.'), "{}", written);
        let read = parse(written.as_bytes());
        prop_assert_eq!(read, Ok(float(number)));
    }
}

#[test]
fn a_number_with_an_exponent_has_a_decimal_point() {
    for (number, text) in [
        (1e-5, "1.0e-5"),
        (-1e-7, "-1.0e-7"),
        (1.25e-7, "1.25e-7"),
        (1e16, "1.0e16"),
        (1e300, "1.0e300"),
        (f64::MAX, "1.7976931348623157e308"),
        (21.5, "21.5"),
        (21.0, "21.0"),
        (-0.0, "-0.0"),
    ] {
        assert_eq!(number_text(number), text);
    }
}

fn integer(number: i128) -> JsonToken {
    JsonToken::Scalar(Scalar::Number(Number::Integer(number)))
}

fn float(number: f64) -> JsonToken {
    JsonToken::Scalar(Scalar::Number(Number::Float(number)))
}

fn text(text: &str) -> JsonToken {
    JsonToken::Scalar(Scalar::Text(text.to_owned()))
}
