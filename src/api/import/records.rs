//! How is a line of an import parsed? NDJSON (one object per line) and CSV (RFC 4180) into fields.
//!
//! A CSV record with a line break inside quotes spans lines and is identified by its first one.
//! Blank lines are ignored in both formats.

mod csv;

use actix_web::web::Bytes;

use super::lines::{LINE_BYTES_MAX, Line, TooLong};
use crate::api::error::{ApiError, ErrorDetail};
use crate::api::fields::Fields;

use csv::Csv;

/// The names of the columns of a device, apart from those of its pre-shared key and its tags.
/// Properties have the same names.
pub(super) const COLUMNS: [&str; 10] = [
    "deviceId",
    "iccid",
    "imsi",
    "msisdn",
    "ip",
    "endpoint",
    "name",
    "security",
    "offlineAfter",
    "publicKey",
];

/// The names of the columns of a pre-shared key, with its properties.
pub(super) const PSK_COLUMNS: [(&str, &str); 3] = [
    ("pskIdentity", "identity"),
    ("pskSecretKey", "secretKey"),
    ("pskFormat", "format"),
];

/// The format of the lines of an import.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
}

/// The record of one device.
#[derive(Debug)]
pub(super) struct Record {
    /// The number of its first line.
    pub(super) line: u64,
    /// Its fields.
    pub(super) fields: Result<Fields, ApiError>,
}

/// Parses the lines of one format.
pub(super) enum Records {
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values.
    Csv(Box<Csv>),
}

impl Format {
    /// The format of a media type.
    pub(super) fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
                Some(Self::Ndjson)
            }
            "text/csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

impl Records {
    /// A parser at the start of a stream.
    pub(super) fn of(format: Format) -> Self {
        match format {
            Format::Ndjson => Self::Ndjson,
            Format::Csv => Self::Csv(Box::new(Csv::new())),
        }
    }

    /// Whether the next line can be a record: the header, if the format has one, has been read.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Ndjson => true,
            Self::Csv(csv) => csv.has_header(),
        }
    }

    /// The record that the line completes, if any. An error stops the whole import.
    pub(super) fn read(&mut self, line: Line) -> Result<Option<Record>, ApiError> {
        match self {
            Self::Ndjson => Ok(read_json(line)),
            Self::Csv(csv) => csv.read(line),
        }
    }

    /// The record that the end of the stream completes, if any.
    pub(super) fn end(&mut self) -> Result<Option<Record>, ApiError> {
        match self {
            Self::Ndjson => Ok(None),
            Self::Csv(csv) => csv.end(),
        }
    }
}

fn read_json(line: Line) -> Option<Record> {
    let fields = match line.text {
        Ok(text) if text.trim_ascii().is_empty() => return None,
        Ok(text) => object(&text),
        Err(TooLong) => Err(too_long()),
    };
    Some(Record {
        line: line.number,
        fields,
    })
}

fn object(text: &Bytes) -> Result<Fields, ApiError> {
    Fields::of_json(text).map_err(|_| malformed("the line is not a JSON object"))
}

fn too_long() -> ApiError {
    let message = format!("the line must not be longer than {LINE_BYTES_MAX} bytes");
    ApiError::invalid(vec![ErrorDetail::new("LINE_TOO_LONG", message)])
}

fn malformed(message: &str) -> ApiError {
    ApiError::invalid(vec![ErrorDetail::new("MALFORMED_LINE", message)])
}

#[cfg(test)]
mod tests;
