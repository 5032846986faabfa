//! How does the device send measured values? (LwM2M Core 1.1 section 6.4.4, RFC 8428)
//!
//! SenML is written by hand, independent of the server's codec, so that each checks the other.
//! Times are whole seconds, or thousandths as a decimal fraction, as real devices write them.

use std::fmt::Write as _;

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::payload::{self, Measured, Reading, Sample};
use protocol::lwm2m::value::Value;

use super::SimulatedDevice;
use super::event::DeviceOutput;
use super::session::RequestPurpose;
use super::uplink::next_ids;

/// The path of a Send.
const DATA_PATH: &str = "dp";

/// Major types of CBOR (RFC 8949 section 3.1), at their position in the first byte.
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1 << 5;
const BYTES: u8 = 2 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;
const MAP: u8 = 5 << 5;
const TAG: u8 = 6 << 5;

/// Labels of SenML (RFC 8428 section 6).
const NAME: u64 = 0;
const NUMBER: u64 = 2;
const STRING: u64 = 3;
const BOOLEAN: u64 = 4;
const TIME: u64 = 6;
const DATA: u64 = 8;

const DECIMAL_FRACTION: u64 = 4;

/// Why a device does not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It is switched off.
    Off,
    /// It waits for the answer to another request.
    Busy,
    /// The format cannot express the samples.
    Unencodable,
}

impl SimulatedDevice {
    /// Sends samples in a format; a sleeping device wakes for it. The result is reported later.
    pub fn send(
        &mut self,
        now_ms: i64,
        format: ContentFormat,
        samples: &[Sample],
        out: &mut Vec<DeviceOutput>,
    ) -> Result<(), Unsent> {
        let payload = payload_of(format, samples).ok_or(Unsent::Unencodable)?;
        self.rouse(now_ms, out)?;
        if self.session.request.is_some() {
            return Err(Unsent::Busy);
        }
        let (message_id, token) = next_ids(&mut self.session.message_ids, &mut self.rng);
        let request = Message::request(MessageKind::Confirmable, Code::POST, message_id, token)
            .with_uri_path([DATA_PATH])
            .with_content_format(format)
            .with_payload(payload);
        self.ask(now_ms, RequestPurpose::Send, request, out);
        Ok(())
    }
}

/// Encodes samples in a format; None if the format cannot express one of them.
fn payload_of(format: ContentFormat, samples: &[Sample]) -> Option<Vec<u8>> {
    match format {
        ContentFormat::SENML_JSON => senml_json(samples),
        ContentFormat::SENML_CBOR => senml_cbor(samples),
        other => {
            let values = samples.iter().map(|sample| match sample.measured {
                Some(_) => None,
                None => Some((sample.path, sample.value.clone())),
            });
            let values: Reading = values.collect::<Option<_>>()?;
            payload::encode_all(other, &values).ok()
        }
    }
}

fn senml_json(samples: &[Sample]) -> Option<Vec<u8>> {
    let records: Option<Vec<String>> = samples.iter().map(json_record).collect();
    Some(format!("[{}]", records?.join(",")).into_bytes())
}

fn json_record(sample: &Sample) -> Option<String> {
    let value = match &sample.value {
        Value::Boolean(value) => format!("\"vb\":{value}"),
        Value::CoreLink(text) | Value::String(text) => format!("\"vs\":{}", quoted(text)),
        Value::Float(number) => {
            let finite = number.is_finite().then_some(number)?;
            format!("\"v\":{finite:?}")
        }
        Value::Integer(number) | Value::Time(number) => format!("\"v\":{number}"),
        Value::ObjectLink(link) => format!("\"vlo\":\"{link}\""),
        Value::Opaque(_) => {
            let text = sample.value.to_text().replace('+', "-").replace('/', "_");
            format!("\"vd\":\"{}\"", text.trim_end_matches('='))
        }
        Value::UnsignedInteger(number) => format!("\"v\":{number}"),
    };
    let time = sample.measured.map_or(String::new(), |measured| {
        let ms = ms_of(measured);
        let sign = if ms < 0 { "-" } else { "" };
        let (seconds, thousandths) = (ms.unsigned_abs() / 1_000, ms.unsigned_abs() % 1_000);
        format!("\"t\":{sign}{seconds}.{thousandths:03},")
    });
    Some(format!("{{\"n\":\"{}\",{time}{value}}}", sample.path))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let code = u32::from(control);
                write!(quoted, "\\u{code:04x}").expect("a String takes all text");
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

fn senml_cbor(samples: &[Sample]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    put_head(ARRAY, u64::try_from(samples.len()).ok()?, &mut out);
    for sample in samples {
        let fields = if sample.measured.is_some() { 3 } else { 2 };
        put_head(MAP, fields, &mut out);
        put_value(&sample.value, &mut out);
        put_head(UNSIGNED, NAME, &mut out);
        put_text(&sample.path.to_string(), &mut out);
        if let Some(measured) = sample.measured {
            put_head(UNSIGNED, TIME, &mut out);
            put_time(ms_of(measured), &mut out);
        }
    }
    Some(out)
}

/// Writes a value with its label.
fn put_value(value: &Value, out: &mut Vec<u8>) {
    let label = match value {
        Value::Boolean(_) => BOOLEAN,
        Value::CoreLink(_) | Value::String(_) => STRING,
        Value::Float(_) | Value::Integer(_) | Value::Time(_) | Value::UnsignedInteger(_) => NUMBER,
        Value::Opaque(_) => DATA,
        Value::ObjectLink(link) => {
            put_text("vlo", out);
            return put_text(&link.to_string(), out);
        }
    };
    put_head(UNSIGNED, label, out);
    match value {
        Value::Boolean(value) => out.push(if *value { 0xF5 } else { 0xF4 }),
        Value::CoreLink(text) | Value::String(text) => put_text(text, out),
        Value::Float(number) => {
            out.push(0xFB);
            out.extend(number.to_be_bytes());
        }
        Value::Integer(number) | Value::Time(number) => put_integer(*number, out),
        Value::Opaque(bytes) => {
            put_head(BYTES, bytes.len() as u64, out);
            out.extend(bytes);
        }
        Value::ObjectLink(link) => put_text(&link.to_string(), out),
        Value::UnsignedInteger(number) => put_head(UNSIGNED, *number, out),
    }
}

fn put_time(ms: i64, out: &mut Vec<u8>) {
    if ms % 1_000 == 0 {
        return put_integer(ms / 1_000, out);
    }
    put_head(TAG, DECIMAL_FRACTION, out);
    put_head(ARRAY, 2, out);
    put_integer(-3, out);
    put_integer(ms, out);
}

fn put_integer(number: i64, out: &mut Vec<u8>) {
    match u64::try_from(number) {
        Ok(number) => put_head(UNSIGNED, number, out),
        Err(_) => put_head(NEGATIVE, number.unsigned_abs() - 1, out),
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put_head(TEXT, text.len() as u64, out);
    out.extend(text.bytes());
}

/// Writes a major type and its argument in as few bytes as possible.
fn put_head(major: u8, number: u64, out: &mut Vec<u8>) {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    match number {
        0..24 => out.push(major | h),
        24..0x100 => out.extend([major | 24, h]),
        0x100..0x1_0000 => out.extend([major | 25, g, h]),
        0x1_0000..0x1_0000_0000 => out.extend([major | 26, e, f, g, h]),
        0x1_0000_0000.. => out.extend([major | 27, a, b, c, d, e, f, g, h]),
    }
}

fn ms_of(measured: Measured) -> i64 {
    match measured {
        Measured::Absolute(ms) | Measured::Relative(ms) => ms,
    }
}
