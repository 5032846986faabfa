//! What does a line of an import say? NDJSON (one object a line) and CSV (RFC 4180) to fields.
//!
//! A CSV record that has a line break inside quotes spans lines and is known by its first; blank
//! lines say nothing in either format.

mod csv;

use actix_web::web::Bytes;

use super::lines::{LINE_BYTES_MAX, Line, TooLong};
use crate::api::error::{ApiError, ErrorDetail};
use crate::api::fields::Fields;

use csv::Csv;

/// What the columns and properties of a device are called.
pub(super) const PROPERTIES: [&str; 7] = [
    "deviceId", "iccid", "imsi", "msisdn", "ip", "endpoint", "name",
];

/// How the lines of an import are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    /// A JSON object a line.
    Ndjson,
    /// Comma-separated values under a header.
    Csv,
}

/// One device as an import says it is.
#[derive(Debug)]
pub(super) struct Record {
    /// The line it begins on.
    pub(super) line: u64,
    /// What it says.
    pub(super) fields: Result<Fields, ApiError>,
}

/// Reads lines of one format.
pub(super) enum Records {
    /// A JSON object a line.
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
    /// A reader at the beginning of a stream.
    pub(super) fn of(format: Format) -> Self {
        match format {
            Format::Ndjson => Self::Ndjson,
            Format::Csv => Self::Csv(Box::new(Csv::new())),
        }
    }

    /// Whether what comes next may be a record: a header came before it, where one has to.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Ndjson => true,
            Self::Csv(csv) => csv.has_header(),
        }
    }

    /// What the line completes, if anything; a failure is one of the whole import.
    pub(super) fn read(&mut self, line: Line) -> Result<Option<Record>, ApiError> {
        match self {
            Self::Ndjson => Ok(read_json(line)),
            Self::Csv(csv) => csv.read(line),
        }
    }

    /// What the end of the stream leaves unfinished, if anything.
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
