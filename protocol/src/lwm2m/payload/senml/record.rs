//! Which fields does a record of a SenML pack have? (RFC 8428 sections 4.1, 4.2, 4.4 and 6)

use crate::lwm2m::payload::samples::MalformedSamples;
use crate::lwm2m::payload::scalar::{Number, Scalar};

/// The only version of SenML.
const VERSION: i64 = 10;

/// Bounds the fields of a record: all that are known, and as many again.
const FIELDS_MAX: usize = 32;

/// The label of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SenmlLabel {
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
    /// A field that is not used here, such as a unit, or that is unknown.
    Other(String),
}

/// The fields of one record.
#[derive(Default)]
pub(super) struct SenmlRecord {
    /// Counts from 1.
    pub(super) number: usize,
    pub(super) base_name: Option<String>,
    pub(super) base_time: Option<Number>,
    pub(super) base_value: Option<Number>,
    pub(super) name: Option<String>,
    pub(super) time: Option<Number>,
    pub(super) value: Option<Scalar>,
    /// Why the record has no usable value, although others of the pack may have one.
    pub(super) fault: Option<MalformedSamples>,
    /// Whether the fault is in the name.
    pub(super) is_misnamed: bool,
    seen: Vec<SenmlLabel>,
}

impl SenmlLabel {
    /// Returns the label with a name, for JSON.
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

    /// Returns the label with a number, for CBOR.
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

impl SenmlLabel {
    /// Whether the field applies to later records, too. That holds for units and sums, by their
    /// name or number, although nothing here needs them.
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

impl SenmlRecord {
    /// Starts the record with this number, without fields.
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// Records that a field is there; returns whether its value is used. An error concerns the
    /// whole pack.
    pub(super) fn note(&mut self, label: &SenmlLabel) -> Result<bool, MalformedSamples> {
        if self.seen.len() >= FIELDS_MAX {
            return Err(MalformedSamples::Field(self.number));
        }
        if self.seen.contains(label) {
            self.reject(label, MalformedSamples::Repeated(self.number))?;
            return Ok(false);
        }
        self.seen.push(label.clone());
        match label {
            SenmlLabel::Other(name) if name.ends_with('_') => {
                Err(MalformedSamples::NotUnderstood(self.number))
            }
            SenmlLabel::Other(_) => Ok(false),
            SenmlLabel::BaseName
            | SenmlLabel::BaseTime
            | SenmlLabel::BaseValue
            | SenmlLabel::BaseVersion
            | SenmlLabel::Boolean
            | SenmlLabel::Data
            | SenmlLabel::Link
            | SenmlLabel::Name
            | SenmlLabel::Number
            | SenmlLabel::Text
            | SenmlLabel::Time => Ok(true),
        }
    }

    /// Sets the value of a field; none if it has no value that any field can have. An error
    /// concerns the whole pack.
    pub(super) fn put(
        &mut self,
        label: SenmlLabel,
        scalar: Option<Scalar>,
    ) -> Result<(), MalformedSamples> {
        let unfit = MalformedSamples::Field(self.number);
        let Some(scalar) = scalar else {
            return self.reject(&label, unfit);
        };
        match (label, scalar) {
            (SenmlLabel::BaseName, Scalar::Text(name)) => self.base_name = Some(name),
            (SenmlLabel::BaseTime, Scalar::Number(time) | Scalar::Time(time)) => {
                self.base_time = Some(time);
            }
            (SenmlLabel::BaseValue, Scalar::Number(value)) => self.base_value = Some(value),
            (SenmlLabel::BaseVersion, Scalar::Number(version)) => {
                let version = version.to_signed().ok_or(unfit)?;
                if version > VERSION {
                    return Err(MalformedSamples::Version(self.number));
                }
            }
            (SenmlLabel::Name, Scalar::Text(name)) => self.name = Some(name),
            (SenmlLabel::Time, Scalar::Number(time) | Scalar::Time(time)) => self.time = Some(time),
            (SenmlLabel::Boolean, value @ Scalar::Boolean(_))
            | (SenmlLabel::Data, value @ Scalar::Bytes(_))
            | (SenmlLabel::Text, value @ Scalar::Text(_)) => self.put_value(value),
            // A pack does not distinguish times from numbers, so a CBOR tag has no meaning here.
            (SenmlLabel::Number, Scalar::Number(value) | Scalar::Time(value)) => {
                self.put_value(Scalar::Number(value));
            }
            (SenmlLabel::Link, Scalar::Text(link)) => self.put_value(Scalar::Link(link)),
            (label, _) => self.reject(&label, unfit)?,
        }
        Ok(())
    }

    /// Whether the record has only base fields.
    pub(super) fn is_base_alone(&self) -> bool {
        !self.seen.is_empty() && self.seen.iter().all(SenmlLabel::is_base)
    }

    fn put_value(&mut self, value: Scalar) {
        if self.value.replace(value).is_some() {
            self.fault
                .get_or_insert(MalformedSamples::SeveralValues(self.number));
        }
    }

    /// Rejects a field: a base field applies to later records, too, and any other to its own alone.
    fn reject(
        &mut self,
        label: &SenmlLabel,
        reason: MalformedSamples,
    ) -> Result<(), MalformedSamples> {
        if label.is_base() {
            return Err(reason);
        }
        self.is_misnamed |= *label == SenmlLabel::Name;
        self.fault.get_or_insert(reason);
        Ok(())
    }
}
