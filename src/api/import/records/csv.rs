//! How is a CSV line parsed (RFC 4180)? The only file that imports csv-core.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use engine::limits::TAGS_MAX;
use engine::tags::TagText;

use super::{COLUMNS, PSK_COLUMNS, Record, malformed, too_long};
use crate::api::error::{ApiError, ErrorDetail};
use crate::api::fields::Fields;
use crate::api::import::lines::{LINE_BYTES_MAX, Line, TooLong};

/// Parsed fields per record: one more than allowed, to detect a record with too many.
const FIELDS_MAX: usize = COLUMNS.len() + PSK_COLUMNS.len() + TAGS_MAX + 1;

/// What the name of a column for a tag begins with; its key follows.
const TAG_COLUMN: &str = "tag:";

/// A parser of CSV records.
pub(in crate::api::import) struct Csv {
    reader: Reader,
    text: Box<[u8; LINE_BYTES_MAX]>,
    text_bytes: usize,
    ends: [usize; FIELDS_MAX],
    fields: usize,
    /// The first line of the unfinished record.
    begun_on: Option<u64>,
    /// The column names in the header.
    columns: Vec<Box<str>>,
}

/// What a line adds to a record.
enum Progress {
    Whole,
    Unfinished,
    TooLong,
    TooManyFields,
}

impl Csv {
    /// A parser before the header.
    pub(in crate::api::import) fn new() -> Self {
        // Lines arrive without their ends; a carriage return inside one does not end it.
        let line_feed = Terminator::Any(b'\n');
        Self {
            reader: ReaderBuilder::new().terminator(line_feed).build(),
            text: Box::new([0; LINE_BYTES_MAX]),
            text_bytes: 0,
            ends: [0; FIELDS_MAX],
            fields: 0,
            begun_on: None,
            columns: Vec::new(),
        }
    }

    /// Whether the header was read.
    pub(super) fn has_header(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The record that the line completes. The header completes none; a faulty header stops the
    /// import.
    pub(super) fn read(&mut self, line: Line) -> Result<Option<Record>, ApiError> {
        let number = line.number;
        let progress = match &line.text {
            Ok(text) if text.is_empty() && self.begun_on.is_none() => return Ok(None),
            Ok(text) => self.take(number, text),
            Err(TooLong) => Progress::TooLong,
        };
        let begun_on = self.begun_on.unwrap_or(number);
        let fields = match progress {
            Progress::Unfinished => return Ok(None),
            Progress::Whole if !self.has_header() => {
                self.columns = self.header()?;
                self.begin_anew();
                return Ok(None);
            }
            Progress::Whole => self.named_fields(),
            Progress::TooLong => Err(too_long()),
            Progress::TooManyFields => Err(self.wrong_count("more")),
        };
        self.begin_anew();
        if !self.has_header() {
            return Err(no_header());
        }
        Ok(Some(Record {
            line: begun_on,
            fields,
        }))
    }

    /// The record that the end of the stream completes.
    pub(super) fn end(&mut self) -> Result<Option<Record>, ApiError> {
        if !self.has_header() {
            return Err(no_header());
        }
        let unclosed = |line| Record {
            line,
            fields: Err(malformed(
                "a quoted field starts on this line and has no closing quote",
            )),
        };
        Ok(self.begun_on.take().map(unclosed))
    }

    fn take(&mut self, number: u64, line: &[u8]) -> Progress {
        self.begun_on.get_or_insert(number);
        // To csv-core, an empty input is the end of the stream.
        for input in [line, b"\n"] {
            if input.is_empty() {
                continue;
            }
            let text = self.text.get_mut(self.text_bytes..).unwrap_or_default();
            let ends = self.ends.get_mut(self.fields..).unwrap_or_default();
            let (result, _, text_bytes, fields) = self.reader.read_record(input, text, ends);
            self.text_bytes += text_bytes;
            self.fields += fields;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => return Progress::Whole,
                ReadRecordResult::OutputFull => return Progress::TooLong,
                ReadRecordResult::OutputEndsFull => return Progress::TooManyFields,
            }
        }
        Progress::Unfinished
    }

    fn begin_anew(&mut self) {
        self.reader.reset();
        self.text_bytes = 0;
        self.fields = 0;
        self.begun_on = None;
    }

    /// The fields of the record as texts.
    fn texts(&self) -> Result<Vec<&str>, ApiError> {
        let mut from = 0;
        let ends = self.ends.iter().take(self.fields);
        let texts = ends.map(|end| {
            let text = self.text.get(from..*end).unwrap_or_default();
            from = *end;
            std::str::from_utf8(text).map_err(|_| malformed("the line is not UTF-8"))
        });
        texts.collect()
    }

    /// The column names; an error stops the whole import.
    fn header(&self) -> Result<Vec<Box<str>>, ApiError> {
        let mut columns: Vec<Box<str>> = Vec::new();
        let mut faults = Vec::new();
        for text in self.texts()? {
            let has = |name: &str| columns.iter().any(|column| **column == *name);
            match text.strip_prefix(TAG_COLUMN).map(TagText::parse) {
                None if !COLUMNS.contains(&text) && psk_property(text).is_none() => {
                    let message = "is not a known column";
                    faults.push(ErrorDetail::of("UNKNOWN_PROPERTY", text, message));
                }
                Some(Err(why)) => {
                    let message = format!("the key of the tag {why}");
                    faults.push(ErrorDetail::of("INVALID_VALUE", text, message));
                }
                None | Some(Ok(_)) if has(text) => {
                    faults.push(ErrorDetail::of("REPEATED", text, "must be given only once"));
                }
                None | Some(Ok(_)) => columns.push(text.into()),
            }
        }
        let has = |name: &str| columns.iter().any(|column| **column == *name);
        if !has("deviceId") && !has("iccid") {
            let message = "the header must have a column deviceId or iccid";
            faults.push(ErrorDetail::of("REQUIRED", "deviceId", message));
        }
        if faults.is_empty() {
            Ok(columns)
        } else {
            Err(ApiError::invalid(faults))
        }
    }

    fn named_fields(&self) -> Result<Fields, ApiError> {
        let texts = self.texts()?;
        match texts.len().cmp(&self.columns.len()) {
            std::cmp::Ordering::Less => Err(self.wrong_count("fewer")),
            std::cmp::Ordering::Greater => Err(self.wrong_count("more")),
            // An empty field counts as absent.
            std::cmp::Ordering::Equal => {
                let columns = self.columns.iter().map(|column| &**column).zip(texts);
                let given = columns.filter(|(_, text)| !text.is_empty());
                let (tags, others): (Vec<_>, Vec<_>) =
                    given.partition(|(column, _)| column.starts_with(TAG_COLUMN));
                let tags = tags.into_iter();
                let tags = tags.map(|(column, text)| (&column[TAG_COLUMN.len()..], text));
                let psk = others.iter();
                let psk = psk.filter_map(|(column, text)| Some((psk_property(column)?, *text)));
                let own = others.iter().copied();
                let own = own.filter(|(column, _)| psk_property(column).is_none());
                Ok(Fields::of_texts(own)
                    .with_texts("psk", psk)
                    .with_texts("tags", tags))
            }
        }
    }

    fn wrong_count(&self, than: &str) -> ApiError {
        let columns = self.columns.len();
        malformed(&format!(
            "the line has {than} fields than the {columns} columns of the header"
        ))
    }
}

/// The property of a pre-shared key in a column.
fn psk_property(column: &str) -> Option<&'static str> {
    let mut columns = PSK_COLUMNS.into_iter();
    columns.find_map(|(name, property)| (name == column).then_some(property))
}

fn no_header() -> ApiError {
    ApiError::malformed("the first line must be a header that names the columns")
}
