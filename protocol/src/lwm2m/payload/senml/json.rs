//! How is a SenML pack encoded in JSON? (RFC 8428 section 5, application/senml+json)

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::record::{SenmlLabel, SenmlRecord};
use super::{Entry, Take};
use crate::base64_text;
use crate::lwm2m::payload::json::{self, JsonToken};
use crate::lwm2m::payload::samples::MalformedSamples;
use crate::lwm2m::payload::scalar::Scalar;
use crate::lwm2m::value::Value;

/// Passes on the records of a pack in order.
pub(super) fn decode(payload: &[u8], taker: &mut impl Take) -> Result<(), MalformedSamples> {
    let JsonToken::List(records) = json::parse(payload)? else {
        return Err(MalformedSamples::Json);
    };
    for (number, record) in (1..).zip(records) {
        let JsonToken::Object(fields) = record else {
            return Err(MalformedSamples::Json);
        };
        taker.take(record_of(fields, number)?)?;
    }
    Ok(())
}

fn record_of(
    fields: Vec<(String, JsonToken)>,
    number: usize,
) -> Result<SenmlRecord, MalformedSamples> {
    let mut record = SenmlRecord::new(number);
    for (name, token) in fields {
        let label = SenmlLabel::of_text(name);
        if record.note(&label)? {
            let value = value_of(&label, token);
            record.put(label, value)?;
        }
    }
    Ok(record)
}

fn value_of(label: &SenmlLabel, token: JsonToken) -> Option<Scalar> {
    match token {
        JsonToken::Scalar(Scalar::Text(text)) if *label == SenmlLabel::Data => {
            bytes_of(&text).map(Scalar::Bytes)
        }
        JsonToken::Scalar(scalar) => Some(scalar),
        JsonToken::Null | JsonToken::List(_) | JsonToken::Object(_) => None,
    }
}

/// Reads base64 in the URL-safe alphabet without padding, as specified, or in the standard alphabet
/// with padding, as some devices write it.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let usual = text.replace('-', "+").replace('_', "/");
    base64_text::decode(&usual).ok()
}

/// Writes the records as a pack.
pub(super) fn encode(entries: &[Entry<'_>]) -> Vec<u8> {
    let records: Vec<String> = entries.iter().map(record_text).collect();
    format!("[{}]", records.join(",")).into_bytes()
}

fn record_text(Entry { base, name, value }: &Entry<'_>) -> String {
    let mut fields = Vec::new();
    fields.extend(base.as_ref().map(|base| text_field("bn", base)));
    fields.extend(name.as_ref().map(|name| text_field("n", name)));
    fields.extend(value.map(value_text));
    json::object_text(&fields)
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Boolean(value) => json::field_text("vb", &value.to_string()),
        Value::CoreLink(text) | Value::String(text) => text_field("vs", text),
        Value::Float(number) => json::field_text("v", &json::number_text(*number)),
        Value::Integer(number) | Value::Time(number) => json::field_text("v", &number.to_string()),
        Value::ObjectLink(_) => text_field("vlo", &value.to_text()),
        Value::Opaque(bytes) => text_field("vd", &URL_SAFE_NO_PAD.encode(bytes)),
        Value::UnsignedInteger(number) => json::field_text("v", &number.to_string()),
    }
}

fn text_field(name: &str, text: &str) -> String {
    json::field_text(name, &json::string_text(text))
}
