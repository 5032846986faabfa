//! Is every fault of a call reported, each with its field?

use serde_json::{Number, Value, json};

use super::{FieldFault, Fields, label, whole};
use crate::api::error::ApiError;

#[test]
fn valid_fields_are_parsed() {
    let mut fields = body(json!({"name": "meter", "port": 7, "scopes": ["a", "b"], "ip": null}));
    assert_eq!(fields.required("name", label).as_deref(), Some("meter"));
    assert_eq!(fields.number("port", 1..=10), Some(7));
    assert_eq!(
        fields.texts("scopes", |texts| Ok::<_, String>(texts.len())),
        Some(2)
    );
    assert_eq!(fields.optional("ip", label), None);
    assert!(fields.finish(Some(())).is_ok());
}

#[test]
fn an_unknown_property_is_a_fault_even_if_it_is_null() {
    let mut fields = body(json!({"name": "meter", "ip": null, "tint": null, "": null}));
    fields.required("name", label);
    fields.optional("ip", label);
    let failure = fields.finish(Some(())).unwrap_err();
    let unknown = ["", "tint"].map(|name| ("UNKNOWN_PROPERTY", name));
    assert_eq!(codes_and_fields(&failure), unknown);
}

#[test]
fn every_fault_is_reported_at_once() {
    let mut fields = body(json!({"port": 11, "path": 3, "tint": "red", "kind": "x"}));
    fields.required("name", label);
    fields.number("port", 1..=10);
    fields.optional("path", label);
    fields.optional("kind", |_| {
        Err::<(), _>(FieldFault::out_of_range("not that much"))
    });
    let faults = faults_of(fields.finish(Some(())).unwrap_err());
    let expected = json!([
        {"code": "REQUIRED", "message": "is required", "field": "name"},
        {"code": "OUT_OF_RANGE", "message": "must be from 1 to 10", "field": "port"},
        {"code": "WRONG_TYPE", "message": "must be a string", "field": "path"},
        {"code": "OUT_OF_RANGE", "message": "not that much", "field": "kind"},
        {"code": "UNKNOWN_PROPERTY", "message": "is not a known property", "field": "tint"},
    ]);
    assert_eq!(faults, expected);
}

#[test]
fn a_number_is_an_integer_and_in_a_body_not_a_string() {
    let cases = [
        (json!(1.5), "WRONG_TYPE"),
        (json!(1e300), "OUT_OF_RANGE"),
        (json!(-7.0), "OUT_OF_RANGE"),
        (json!("7"), "WRONG_TYPE"),
        (json!(true), "WRONG_TYPE"),
        (json!(-1), "OUT_OF_RANGE"),
        (json!(0), "OUT_OF_RANGE"),
        (json!(u64::MAX), "OUT_OF_RANGE"),
        (json!(4_294_967_297_u64), "OUT_OF_RANGE"),
    ];
    for (value, code) in cases {
        let mut fields = body(json!({ "port": value }));
        assert_eq!(fields.number("port", 1..=10), None);
        assert_eq!(
            faults_of(fields.finish(Some(())).unwrap_err())[0]["code"],
            code
        );
    }
}

#[test]
fn an_integer_may_be_written_as_a_float_as_far_as_floats_are_exact() {
    let whole = |number| whole(&Number::from_f64(number).unwrap());
    assert_eq!(whole(9_999_999_999_999.0), Ok(9_999_999_999_999));
    assert_eq!(whole(-9_007_199_254_740_991.0), Ok(-9_007_199_254_740_991));
    assert_eq!(whole(9_007_199_254_740_994.0), Err(false));
    assert_eq!(whole(0.5), Err(true));
}

#[test]
fn a_list_with_anything_but_strings_has_the_wrong_type() {
    for value in [json!("a"), json!(["a", 1]), json!({})] {
        let mut fields = body(json!({ "scopes": value }));
        fields.texts("scopes", |_| Ok::<_, String>(()));
        assert_eq!(
            faults_of(fields.finish(Some(())).unwrap_err())[0]["code"],
            "WRONG_TYPE"
        );
    }
}

#[test]
fn a_query_has_strings_and_numbers_as_strings() {
    let mut fields = query(&[("page", "2"), ("iccid", "8988")]);
    assert_eq!(fields.number("page", 1..=10), Some(2));
    assert_eq!(fields.optional("iccid", label).as_deref(), Some("8988"));
    assert!(fields.finish(Some(())).is_ok());
}

#[test]
fn an_unknown_or_repeated_parameter_is_a_fault() {
    let mut fields = query(&[("page", "2"), ("page", "3"), ("pagesize", "5")]);
    fields.number("page", 1..=10);
    let faults = faults_of(fields.finish(Some(())).unwrap_err());
    assert_eq!(
        (&faults[0]["code"], &faults[0]["field"]),
        (&json!("REPEATED"), &json!("page"))
    );
    let unknown = (&json!("UNKNOWN_PARAMETER"), &json!("pagesize"));
    assert_eq!((&faults[1]["code"], &faults[1]["field"]), unknown);
}

#[test]
fn only_a_json_object_is_a_body() {
    for bytes in ["", "[]", "3", "{", "{\"a\":1}}", "\u{feff}{}"] {
        let refused = faults_of(Fields::of_json(bytes.as_bytes()).unwrap_err());
        assert_eq!(refused[0]["code"], "MALFORMED_BODY", "{bytes:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(Fields::of_json(format!("{{\"a\":{deep}").as_bytes()).is_err());
}

#[test]
fn a_repeated_property_is_a_fault() {
    let twice = [
        r#"{"name": "a", "name": "b"}"#,
        r#"{"name": "a", "name": "a"}"#,
        r#"{"name": null, "name": "a"}"#,
        r#"{"name": "a", "n\u0061me": null}"#,
    ];
    for text in twice {
        let mut fields = Fields::of_json(text.as_bytes()).unwrap();
        fields.optional("name", label);
        let faults = faults_of(fields.finish(Some(())).unwrap_err());
        let repeated = json!([
            {"code": "REPEATED", "message": "must be given only once", "field": "name"},
        ]);
        assert_eq!(faults, repeated, "{text}");
    }
}

#[test]
fn beyond_the_maximum_faults_are_only_counted() {
    let many = |count: usize| {
        let unknown = (0..count).map(|number| (format!("p{number:05}"), json!(1)));
        let fields = body(Value::Object(unknown.collect()));
        faults_of(fields.finish(Some(())).unwrap_err())
    };
    assert_eq!(many(100).as_array().unwrap().len(), 100);
    let faults = many(50_000);
    assert_eq!(faults.as_array().unwrap().len(), 101);
    assert_eq!(faults[99]["field"], "p00099");
    let more = json!({"code": "MORE_FAULTS", "message": "49900 more faults are not listed"});
    assert_eq!(faults[100], more);
}

#[test]
fn a_display_name_fits_a_line() {
    assert!(label("Meter 7, cellar").is_ok());
    for text in ["", "  ", "a\nb", &"x".repeat(129)] {
        assert!(label(text).is_err(), "{text:?}");
    }
}

pub(in crate::api) fn body(value: Value) -> Fields {
    Fields::of_json(value.to_string().as_bytes()).unwrap()
}

pub(in crate::api) fn query(pairs: &[(&str, &str)]) -> Fields {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Fields::of_query(pairs.collect())
}

/// What is wrong with which field, without the words for it.
pub(in crate::api) fn codes_and_fields(failure: &ApiError) -> Vec<(&str, &str)> {
    let faults = failure.faults().iter();
    faults
        .map(|fault| (fault.code, fault.field.as_deref().unwrap_or_default()))
        .collect()
}

fn faults_of(failure: ApiError) -> Value {
    serde_json::to_value(failure.faults()).unwrap()
}
