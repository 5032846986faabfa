//! Which devices does a call select? The filters of the device list, as parameters of a query or as
//! properties of a JSON object.

use serde::Serialize;

use engine::EnablerVersion;
use engine::action::Protocol;
use engine::ids::{CustomerId, Endpoint};
use engine::limits::FILTER_TAGS_MAX;
use engine::moment::Timestamp;
use engine::query::devices::DeviceFilter;
use engine::tags::Tag;

use crate::api::fields::{Fields, instant};
use crate::api::words::{Word, online_word, read_online};

/// The longest prefix for a search: no identifier is longer.
pub(super) const PREFIX_CHARACTERS_MAX: usize = Endpoint::LENGTH_MAX;

/// The longest firmware version: longer than those that devices have.
pub(super) const FIRMWARE_CHARACTERS_MAX: usize = 255;

/// The filter in the fields of a call.
pub(in crate::api) fn device_filter(customer: CustomerId, fields: &mut Fields) -> DeviceFilter {
    DeviceFilter {
        customer,
        name_prefix: fields.optional("q", |text| line(text, PREFIX_CHARACTERS_MAX)),
        registered: fields.truth("registered"),
        protocols_seen: fields.optional("protocol", Protocol::read),
        tags: fields.several("tag", FILTER_TAGS_MAX, Tag::parse).into(),
        version: fields.optional("version", EnablerVersion::read),
        object: fields
            .number("object", 0..=u16::MAX.into())
            .and_then(|id| u16::try_from(id).ok()),
        last_seen_before: fields.optional("lastSeenBefore", instant),
        last_seen_after: fields.optional("lastSeenAfter", instant),
        firmware: fields.optional("firmware", |text| line(text, FIRMWARE_CHARACTERS_MAX)),
        online: fields.optional("connectivity", read_online),
    }
}

/// The JSON of a filter, as it is given.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct DeviceFilterBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    q: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    registered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tag: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    firmware: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connectivity: Option<&'static str>,
}

impl DeviceFilterBody {
    /// The filter.
    pub(in crate::api) fn of(filter: &DeviceFilter) -> Self {
        let iso = |at: Timestamp| at.iso().to_string();
        Self {
            q: filter.name_prefix.as_deref().map(str::to_owned),
            registered: filter.registered,
            protocol: filter.protocols_seen.map(Word::word),
            tag: filter
                .tags
                .iter()
                .map(|tag| format!("{}:{}", tag.key, tag.value))
                .collect(),
            version: filter.version.map(Word::word),
            object: filter.object,
            last_seen_before: filter.last_seen_before.map(iso),
            last_seen_after: filter.last_seen_after.map(iso),
            firmware: filter.firmware.as_deref().map(str::to_owned),
            connectivity: filter.online.map(online_word),
        }
    }
}

/// A text without control characters.
fn line(text: &str, characters_max: usize) -> Result<Box<str>, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.chars().count() > characters_max {
        return Err(format!(
            "must not be longer than {characters_max} characters"
        ));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("must not contain {c:?}")),
        None => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::fields::tests::{body, codes_and_fields, query};

    #[test]
    fn a_query_and_an_object_with_the_same_filters_are_one_filter() {
        let mut given = query(&[
            ("q", "urn:"),
            ("registered", "true"),
            ("protocol", "LWM2M"),
            ("tag", "site:berlin"),
            ("tag", "floor:2"),
            ("version", "1.1"),
            ("object", "3303"),
            ("lastSeenBefore", "2026-11-21T12:43:51.000"),
            ("lastSeenAfter", "2026-11-20T12:43:51.000"),
            ("firmware", "1.4.2"),
            ("connectivity", "OFFLINE"),
        ]);
        let of_query = filter(&mut given);
        assert!(given.finish(Some(())).is_ok());
        let mut given = body(json!({
            "q": "urn:", "registered": true, "protocol": "LWM2M",
            "tag": ["site:berlin", "floor:2"], "version": "1.1", "object": 3303,
            "lastSeenBefore": "2026-11-21T12:43:51.000",
            "lastSeenAfter": "2026-11-20T12:43:51.000", "firmware": "1.4.2",
            "connectivity": "OFFLINE",
        }));
        let of_body = filter(&mut given);
        assert!(given.finish(Some(())).is_ok());
        assert_eq!(of_query, of_body);
        let shown = serde_json::to_value(DeviceFilterBody::of(&of_body)).unwrap();
        assert_eq!(filter(&mut body(shown)), of_body);
        assert_eq!(of_body.tags.len(), 2);
        assert_eq!(of_body.version, Some(EnablerVersion::V1_1));
        assert_eq!(of_body.online, Some(false));
    }

    #[test]
    fn one_tag_may_be_a_string_and_no_filter_selects_everything() {
        let mut given = body(json!({ "tag": "site:berlin" }));
        assert_eq!(
            *filter(&mut given).tags,
            [Tag::parse("site:berlin").unwrap()]
        );
        assert_eq!(filter(&mut query(&[])), DeviceFilter::all_of(acme()));
    }

    #[test]
    fn every_wrong_filter_is_a_fault() {
        let many: Vec<String> = (0..=FILTER_TAGS_MAX).map(|it| format!("a:{it}")).collect();
        let cases = [
            (json!({ "tag": "berlin" }), "INVALID_VALUE"),
            (json!({ "tag": ["a:b", "b"] }), "INVALID_VALUE"),
            (json!({ "tag": many }), "OUT_OF_RANGE"),
            (json!({ "tag": [] }), "OUT_OF_RANGE"),
            (json!({ "tag": {"a": "b"} }), "WRONG_TYPE"),
            (json!({ "tag": ["a:b", 1] }), "WRONG_TYPE"),
            (json!({ "version": "1.3" }), "INVALID_VALUE"),
            (json!({ "object": 65_536 }), "OUT_OF_RANGE"),
            (json!({ "lastSeenBefore": "yesterday" }), "INVALID_VALUE"),
            (json!({ "firmware": "" }), "INVALID_VALUE"),
            (json!({ "connectivity": "online" }), "INVALID_VALUE"),
            (json!({ "q": "\n" }), "INVALID_VALUE"),
            (json!({ "registered": "true" }), "WRONG_TYPE"),
        ];
        for (given, code) in cases {
            check(given, code);
        }
    }

    fn check(given: Value, code: &'static str) {
        let names: Vec<String> = given.as_object().unwrap().keys().cloned().collect();
        let mut fields = body(given);
        filter(&mut fields);
        let failure = fields.finish(Some(())).unwrap_err();
        assert_eq!(codes_and_fields(&failure), [(code, names[0].as_str())]);
    }

    fn filter(fields: &mut Fields) -> DeviceFilter {
        device_filter(acme(), fields)
    }

    fn acme() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }
}
