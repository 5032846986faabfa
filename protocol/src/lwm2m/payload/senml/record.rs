//! Which fields has a record of a SenML pack? (RFC 8428 sections 4.1, 4.2, 4.4 and 6)

use crate::lwm2m::payload::samples::Malformed;
use crate::lwm2m::payload::scalar::{Number, Scalar};

/// The only version of SenML there is.
const VERSION: i64 = 10;

/// Bounds the fields of a record: all that are known, and as many again.
const FIELDS_MAX: usize = 32;

/// Names a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Label {
    BaseName,
    BaseTime,
    BaseValue,
    BaseVersion,
    Boolean,
    Data,
    Link,
    Name,
    Number,
    Text,
    Time,
    /// A field that is of no use here, such as a unit, or that is not known.
    Other(String),
}

/// The fields of one record.
#[derive(Default)]
pub(super) struct Record {
    /// Counts from 1.
    pub(super) number: usize,
    pub(super) base_name: Option<String>,
    pub(super) base_time: Option<Number>,
    pub(super) base_value: Option<Number>,
    pub(super) name: Option<String>,
    pub(super) time: Option<Number>,
    pub(super) value: Option<Scalar>,
    seen: Vec<Label>,
}

impl Label {
    /// Returns the field of a name, as JSON has it.
    pub(super) fn of_text(text: String) -> Self {
        match text.as_str() {
            "bn" => Self::BaseName,
            "bt" => Self::BaseTime,
            "bv" => Self::BaseValue,
            "bver" => Self::BaseVersion,
            "n" => Self::Name,
            "t" => Self::Time,
            "v" => Self::Number,
            "vb" => Self::Boolean,
            "vd" => Self::Data,
            "vlo" => Self::Link,
            "vs" => Self::Text,
            _ => Self::Other(text),
        }
    }

    /// Returns the field of a number, as CBOR has it.
    pub(super) fn of_number(number: i64) -> Self {
        match number {
            -1 => Self::BaseVersion,
            -2 => Self::BaseName,
            -3 => Self::BaseTime,
            -5 => Self::BaseValue,
            0 => Self::Name,
            2 => Self::Number,
            3 => Self::Text,
            4 => Self::Boolean,
            6 => Self::Time,
            8 => Self::Data,
            _ => Self::Other(number.to_string()),
        }
    }
}

impl Label {
    /// Whether the field holds for the records that follow, too. Units and sums do, by their name
    /// or number, though nothing here needs them.
    fn is_base(&self) -> bool {
        match self {
            Self::BaseName | Self::BaseTime | Self::BaseValue | Self::BaseVersion => true,
            Self::Other(name) => matches!(name.as_str(), "bu" | "bs" | "-4" | "-6"),
            Self::Boolean
            | Self::Data
            | Self::Link
            | Self::Name
            | Self::Number
            | Self::Text
            | Self::Time => false,
        }
    }
}

impl Record {
    /// Starts the record of a number with no fields.
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Notes that a field is there; tells whether its value is of interest.
    pub(super) fn note(&mut self, label: &Label) -> Result<bool, Malformed> {
        if self.seen.len() >= FIELDS_MAX {
            return Err(Malformed::Field(self.number));
        }
        if self.seen.contains(label) {
            return Err(Malformed::Repeated(self.number));
        }
        self.seen.push(label.clone());
        match label {
            Label::Other(name) if name.ends_with('_') => Err(Malformed::NotUnderstood(self.number)),
            Label::Other(_) => Ok(false),
            Label::BaseName
            | Label::BaseTime
            | Label::BaseValue
            | Label::BaseVersion
            | Label::Boolean
            | Label::Data
            | Label::Link
            | Label::Name
            | Label::Number
            | Label::Text
            | Label::Time => Ok(true),
        }
    }

    /// Takes the value of a field.
    pub(super) fn put(&mut self, label: Label, scalar: Scalar) -> Result<(), Malformed> {
        let unfit = Malformed::Field(self.number);
        match (label, scalar) {
            (Label::BaseName, Scalar::Text(name)) => self.base_name = Some(name),
            (Label::BaseTime, Scalar::Number(time) | Scalar::Time(time)) => {
                self.base_time = Some(time);
            }
            (Label::BaseValue, Scalar::Number(value)) => self.base_value = Some(value),
            (Label::BaseVersion, Scalar::Number(version)) => {
                let version = version.to_signed().ok_or(unfit)?;
                if version > VERSION {
                    return Err(Malformed::Version(self.number));
                }
            }
            (Label::Name, Scalar::Text(name)) => self.name = Some(name),
            (Label::Time, Scalar::Number(time) | Scalar::Time(time)) => self.time = Some(time),
            (Label::Boolean, value @ Scalar::Boolean(_))
            | (Label::Data, value @ Scalar::Bytes(_))
            | (Label::Text, value @ Scalar::Text(_)) => self.put_value(value)?,
            // A pack does not tell times from numbers, so that a tag of CBOR says nothing here.
            (Label::Number, Scalar::Number(value) | Scalar::Time(value)) => {
                self.put_value(Scalar::Number(value))?;
            }
            (Label::Link, Scalar::Text(link)) => self.put_value(Scalar::Link(link))?,
            (_, _) => return Err(unfit),
        }
        Ok(())
    }

    /// Whether the record has fields of the base and no others.
    pub(super) fn is_base_alone(&self) -> bool {
        !self.seen.is_empty() && self.seen.iter().all(Label::is_base)
    }

    fn put_value(&mut self, value: Scalar) -> Result<(), Malformed> {
        match self.value.replace(value) {
            None => Ok(()),
            Some(_) => Err(Malformed::SeveralValues(self.number)),
        }
    }
}
