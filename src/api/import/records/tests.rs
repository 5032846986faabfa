//! Is each line of an import parsed, and each fault reported with its line?

use serde_json::{Value, json};

use engine::limits::TAGS_MAX;

use super::{COLUMNS, Format, PSK_COLUMNS, Record, Records};
use crate::api::error::ApiError;
use crate::api::import::lines::Lines;

#[test]
fn ndjson_has_an_object_per_line() {
    let text = "{\"deviceId\":\"a\"}\n\n  {\"iccid\":\"1\",\"name\":null} \r\n[]\n{\n\u{7f}";
    let expected = [
        (1, Ok(json!({ "deviceId": "a" }))),
        (3, Ok(json!({ "iccid": "1" }))),
        (4, Err("MALFORMED_LINE")),
        (5, Err("MALFORMED_LINE")),
        (6, Err("MALFORMED_LINE")),
    ];
    check(Format::Ndjson, text.as_bytes(), &expected);
}

#[test]
fn csv_columns_are_in_any_order() {
    let text = "name,deviceId\n\"Cellar, left\",a\n,b\n\"say \"\"hi\"\"\",c";
    let expected = [
        (2, Ok(json!({ "name": "Cellar, left", "deviceId": "a" }))),
        (3, Ok(json!({ "deviceId": "b" }))),
        (4, Ok(json!({ "name": "say \"hi\"", "deviceId": "c" }))),
    ];
    check(Format::Csv, text.as_bytes(), &expected);
    let windows = format!("\u{feff}{}\r\n", text.replace('\n', "\r\n"));
    check(Format::Csv, windows.as_bytes(), &expected);
}

#[test]
fn csv_has_a_column_for_each_tag() {
    let text = "tag:site,deviceId,tag:floor\nberlin,a,2\n,b,3\n,c,\n";
    let expected = [
        (
            2,
            Ok(json!({ "deviceId": "a", "tags": {"site": "berlin", "floor": "2"} })),
        ),
        (3, Ok(json!({ "deviceId": "b", "tags": {"floor": "3"} }))),
        (4, Ok(json!({ "deviceId": "c" }))),
    ];
    check(Format::Csv, text.as_bytes(), &expected);
}

#[test]
fn a_csv_record_that_spans_lines_has_the_number_of_its_first() {
    let text = "deviceId,name\n\na,\"one\ntwo\"\nb,\"open\nc,three\n";
    let expected = [
        (3, Ok(json!({ "deviceId": "a", "name": "one\ntwo" }))),
        (5, Err("MALFORMED_LINE")),
    ];
    check(Format::Csv, text.as_bytes(), &expected);
}

#[test]
fn an_unterminated_quote_costs_one_record_and_not_the_stream() {
    let mut text = String::from("deviceId\n\"a\n");
    (0..1_000).for_each(|number| text.push_str(&format!("device-{number}\n")));
    let read = records(Format::Csv, text.as_bytes()).unwrap();
    assert_eq!(shown(&read[0]), (2, Err("LINE_TOO_LONG".to_owned())));
    let last = json!({ "deviceId": "device-999" });
    assert_eq!(shown(read.last().unwrap()), (1_002, Ok(last)));
}

#[test]
fn a_csv_line_that_does_not_fit_its_header_is_refused() {
    let text = b"deviceId,iccid\na\na,1,2\na,1,2,3,4,5,6,7,8,9,10,11\n\xff,1\nb,2\n";
    let expected = [
        (2, Err("MALFORMED_LINE")),
        (3, Err("MALFORMED_LINE")),
        (4, Err("MALFORMED_LINE")),
        (5, Err("MALFORMED_LINE")),
        (6, Ok(json!({ "deviceId": "b", "iccid": "2" }))),
    ];
    check(Format::Csv, text, &expected);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_is_parsed() {
    let long = "x".repeat(9_000);
    let text = format!("deviceId\n{long}\nb\n");
    let expected = [
        (2, Err("LINE_TOO_LONG")),
        (3, Ok(json!({ "deviceId": "b" }))),
    ];
    check(Format::Csv, text.as_bytes(), &expected);
    let text = format!("{{\"deviceId\":\"{long}\"}}\n{{\"deviceId\":\"b\"}}\n");
    let expected = [
        (1, Err("LINE_TOO_LONG")),
        (2, Ok(json!({ "deviceId": "b" }))),
    ];
    check(Format::Ndjson, text.as_bytes(), &expected);
}

#[test]
fn every_fault_of_a_header_is_reported_at_once() {
    let many = "a,".repeat(COLUMNS.len() + PSK_COLUMNS.len() + TAGS_MAX + 1) + "\n";
    let cases: [(&str, &[&str]); 9] = [
        ("", &["MALFORMED_BODY"]),
        ("\n\n", &["MALFORMED_BODY"]),
        ("\"deviceId", &["MALFORMED_BODY"]),
        ("\u{7f}\n", &["UNKNOWN_PROPERTY", "REQUIRED"]),
        (
            "deviceId,colour,deviceId\na,b,c\n",
            &["UNKNOWN_PROPERTY", "REPEATED"],
        ),
        ("imsi,name\n1,2\n", &["REQUIRED"]),
        (
            "deviceId,tag:a,tag:b c,tag:,tag:a\n",
            &["INVALID_VALUE", "INVALID_VALUE", "REPEATED"],
        ),
        ("deviceId,tags\n", &["UNKNOWN_PROPERTY"]),
        (&many, &["MALFORMED_BODY"]),
    ];
    for (text, codes) in cases {
        let refused = records(Format::Csv, text.as_bytes()).unwrap_err();
        assert_eq!(codes_of(refused), codes, "{text:?}");
    }
}

#[test]
fn only_the_media_types_of_an_import_are_accepted() {
    for known in [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
    ] {
        assert_eq!(Format::of(known), Some(Format::Ndjson));
    }
    assert_eq!(Format::of("text/csv"), Some(Format::Csv));
    for other in ["", "application/json", "text/plain", "text/csv2"] {
        assert_eq!(Format::of(other), None, "{other}");
    }
}

fn check(format: Format, text: &[u8], expected: &[(u64, Result<Value, &str>)]) {
    let read = records(format, text).unwrap();
    let shown: Vec<_> = read.iter().map(shown).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(line, result)| (*line, result.clone().map_err(str::to_owned)))
        .collect();
    assert_eq!(shown, expected);
}

fn records(format: Format, text: &[u8]) -> Result<Vec<Record>, ApiError> {
    let mut lines = Lines::default();
    let mut records = Records::of(format);
    let mut read = Vec::new();
    lines.feed(text.to_vec().into());
    while let Some(line) = lines.next_whole() {
        read.extend(records.read(line)?);
    }
    if let Some(line) = lines.last() {
        read.extend(records.read(line)?);
    }
    read.extend(records.end()?);
    Ok(read)
}

/// The line of a record with its fields, or with the codes of its faults.
fn shown(record: &Record) -> (u64, Result<Value, String>) {
    let fields = match &record.fields {
        Ok(fields) => Ok(fields.given()),
        Err(failure) => Err(codes_of(failure.clone()).concat()),
    };
    (record.line, fields)
}

fn codes_of(failure: ApiError) -> Vec<&'static str> {
    let faults = failure.into_faults().into_iter();
    faults.map(|fault| fault.code).collect()
}
