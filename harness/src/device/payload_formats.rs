//! Which formats does the device have, and how does it encode and decode payloads in them? (LwM2M
//! Core 1.2 section 7.4)

use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Reading, Scope, Unencodable};
use protocol::lwm2m::value::{DataType, Value};

use super::outcome::ResponseContent;

/// Formats for several values, in the order of preference if the server asks for none.
const FOR_SEVERAL: [ContentFormat; 5] = [
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
    ContentFormat::LWM2M_JSON,
];

/// The formats of a device. Every device has text and opaque.
#[derive(Clone, Debug)]
pub(super) struct PayloadFormats {
    formats: Box<[ContentFormat]>,
}

impl PayloadFormats {
    pub(super) fn new(formats: &[ContentFormat]) -> Self {
        Self {
            formats: formats.into(),
        }
    }

    /// Whether the device has the format.
    pub(super) fn has(&self, format: ContentFormat) -> bool {
        self.formats.contains(&format)
    }

    /// Encodes the value of one resource in the requested format.
    pub(super) fn encode_one(
        &self,
        accept: Option<ContentFormat>,
        path: Path,
        value: Value,
    ) -> Result<ResponseContent, Code> {
        let data_type = value.data_type();
        let format = accept.unwrap_or(payload::format_of(data_type));
        let fits = format != ContentFormat::OCTET_STREAM || data_type == DataType::Opaque;
        if accept.is_some() && !(fits && self.has(format)) {
            return Err(Code::NOT_ACCEPTABLE);
        }
        let values = Reading::from([(path, value)]);
        content(format, payload::encode(format, path, &values))
    }

    /// Encodes the values below a path in the requested format.
    pub(super) fn encode_below(
        &self,
        accept: Option<ContentFormat>,
        path: Path,
        values: &Reading,
    ) -> Result<ResponseContent, Code> {
        let own = FOR_SEVERAL.into_iter().find(|format| self.has(*format));
        let wanted = accept.filter(|format| self.has(*format));
        let format = match accept {
            Some(_) => wanted,
            None => own,
        };
        let format = format.ok_or(Code::NOT_ACCEPTABLE)?;
        content(format, payload::encode(format, path, values))
    }

    /// Encodes values of any paths.
    pub(super) fn encode_all(
        &self,
        accept: ContentFormat,
        values: &Reading,
    ) -> Result<ResponseContent, Code> {
        if !self.has(accept) {
            return Err(Code::NOT_ACCEPTABLE);
        }
        content(accept, payload::encode_all(accept, values))
    }

    /// Decodes the value for a resource from a message.
    pub(super) fn decode_one(
        &self,
        path: Path,
        by: &Message,
        data_type: DataType,
    ) -> Result<Value, Code> {
        let format = by.content_format();
        let fits = format != Some(ContentFormat::OCTET_STREAM) || data_type == DataType::Opaque;
        if !fits || format.is_some_and(|format| !self.has(format)) {
            return Err(Code::UNSUPPORTED_CONTENT_FORMAT);
        }
        let mut values = decode(path, by, |_| Some(data_type))?;
        values.remove(&path).ok_or(Code::BAD_REQUEST)
    }

    /// Decodes values of any paths from a message.
    pub(super) fn decode_all(
        &self,
        by: &Message,
        type_of: impl Fn(Path) -> Option<DataType>,
    ) -> Result<Reading, Code> {
        let format = by.content_format().filter(|format| self.has(*format));
        let format = format.filter(|format| NAMED.contains(format));
        let format = format.ok_or(Code::UNSUPPORTED_CONTENT_FORMAT)?;
        let samples = payload::decode_samples(Some(format), Scope::All, &by.payload, &type_of);
        let samples = samples.map_err(|_| Code::BAD_REQUEST)?.into_iter();
        Ok(samples.map(|sample| (sample.path, sample.value)).collect())
    }

    /// Decodes the values at and below a path from a message.
    pub(super) fn decode_several(
        &self,
        path: Path,
        by: &Message,
        type_of: impl Fn(Path) -> Option<DataType>,
    ) -> Result<Reading, Code> {
        let format = by.content_format();
        let holds_several = |format: &ContentFormat| FOR_SEVERAL.contains(format);
        if !format.is_some_and(|format| holds_several(&format) && self.has(format)) {
            return Err(Code::UNSUPPORTED_CONTENT_FORMAT);
        }
        decode(path, by, type_of)
    }
}

/// The formats that name their values wholly.
const NAMED: [ContentFormat; 3] = [
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
];

fn decode(
    path: Path,
    by: &Message,
    type_of: impl Fn(Path) -> Option<DataType>,
) -> Result<Reading, Code> {
    let values = payload::decode(by.content_format(), path, &by.payload, type_of);
    values.map_err(|_| Code::BAD_REQUEST)
}

fn content(
    format: ContentFormat,
    payload: Result<Vec<u8>, Unencodable>,
) -> Result<ResponseContent, Code> {
    let payload = payload.map_err(|_| Code::NOT_ACCEPTABLE)?;
    Ok(ResponseContent::content(format, payload))
}
