//! How are the properties of a body or the parameters of a query read? Field by field, with every
//! fault reported at once.
//!
//! Each field is taken by name, with the parser of its value. A field that nothing took is unknown,
//! which is a fault. `null` is the same as absent, except in updates.

mod amending;
mod nested;
pub(super) mod properties;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Number, Value};

use engine::moment::Timestamp;

use super::error::{ApiError, ErrorDetail};
use properties::{Properties, unread};

/// The longest display name, in characters: it fits on a line.
pub(super) const LABEL_CHARACTERS_MAX: usize = 128;

/// The fields of one call.
#[derive(Debug)]
pub(super) struct Fields {
    given: BTreeMap<String, Value>,
    /// The names of fields with the value `null`.
    nulls: BTreeSet<String>,
    origin: Origin,
    faults: Vec<ErrorDetail>,
}

/// Where fields come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Origin {
    /// The properties of a JSON object.
    Body,
    /// The parameters of a query; all of them are strings.
    Query,
    /// The columns of a row; all of them are strings.
    Row,
}

/// Why a value is refused.
#[derive(Debug)]
pub(super) struct FieldFault {
    code: &'static str,
    message: String,
}

impl FieldFault {
    /// The value is out of range.
    pub(super) fn out_of_range(message: impl fmt::Display) -> Self {
        Self {
            code: "OUT_OF_RANGE",
            message: message.to_string(),
        }
    }

    /// The field is missing, and another field requires it.
    pub(super) fn required(message: impl fmt::Display) -> Self {
        Self {
            code: "REQUIRED",
            message: message.to_string(),
        }
    }

    /// The value has the wrong type.
    pub(super) fn wrong_type(wanted: &str) -> Self {
        Self {
            code: "WRONG_TYPE",
            message: format!("must be {wanted}"),
        }
    }

    /// The field is given more than once.
    pub(super) fn repeated() -> Self {
        Self::repeated_item("must be given only once")
    }

    /// An item of the field is a duplicate.
    pub(super) fn repeated_item(message: impl fmt::Display) -> Self {
        Self {
            code: "REPEATED",
            message: message.to_string(),
        }
    }
}

impl<E: fmt::Display> From<E> for FieldFault {
    fn from(error: E) -> Self {
        Self {
            code: "INVALID_VALUE",
            message: error.to_string(),
        }
    }
}

impl Fields {
    /// The properties of a JSON object.
    pub(super) fn of_json(bytes: &[u8]) -> Result<Self, ApiError> {
        let Properties(properties) = serde_json::from_slice(bytes).map_err(unread)?;
        let mut fields = Self::of(Origin::Body);
        for (name, value) in properties {
            if fields.given.contains_key(&name) || fields.nulls.contains(&name) {
                fields.repeated(&name);
            } else if value.is_null() {
                fields.nulls.insert(name);
            } else {
                fields.given.insert(name, value);
            }
        }
        Ok(fields)
    }

    /// The parameters of a query. Of one that is given several times, the values are an array.
    pub(super) fn of_query(pairs: Vec<(String, String)>) -> Self {
        let mut fields = Self::of(Origin::Query);
        for (name, value) in pairs {
            let value = Value::String(value);
            match fields.given.entry(name) {
                Entry::Vacant(vacant) => drop(vacant.insert(value)),
                Entry::Occupied(mut given) => {
                    let mut values = match given.get_mut().take() {
                        Value::Array(values) => values,
                        first @ (Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::String(_)
                        | Value::Object(_)) => vec![first],
                    };
                    values.push(value);
                    given.insert(Value::Array(values));
                }
            }
        }
        fields
    }

    /// The named columns of a row; each name occurs once.
    pub(super) fn of_texts<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let texts = texts.map(|(name, text)| (name.to_owned(), Value::String(text.to_owned())));
        Self {
            given: texts.collect(),
            ..Self::of(Origin::Row)
        }
    }

    /// With an object of strings, unless it is empty.
    pub(super) fn with_texts<'a>(
        mut self,
        name: &str,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let texts = texts.map(|(key, text)| (key.to_owned(), Value::String(text.to_owned())));
        let texts: serde_json::Map<_, _> = texts.collect();
        if !texts.is_empty() {
            self.given.insert(name.to_owned(), Value::Object(texts));
        }
        self
    }

    /// The fields that were not taken yet.
    #[cfg(test)]
    pub(super) fn given(&self) -> Value {
        Value::Object(self.given.clone().into_iter().collect())
    }

    /// The given fields in a canonical form: calls with the same fields have the same bytes.
    pub(super) fn canonical(&self) -> Vec<u8> {
        serde_json::to_vec(&self.given).expect("what was read as JSON can be written as it")
    }

    /// Whether a field was given and not taken yet. One that is `null` counts as absent, and as
    /// known.
    pub(super) fn has(&mut self, name: &str) -> bool {
        self.nulls.remove(name);
        self.given.contains_key(name)
    }

    /// Whether a field was given as an object and not taken yet.
    pub(super) fn has_object(&self, name: &str) -> bool {
        self.given.get(name).is_some_and(Value::is_object)
    }

    /// A required list of strings.
    pub(super) fn required_texts<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&[String]) -> Result<T, W>,
    ) -> Option<T> {
        if self.has(name) {
            return self.texts(name, read);
        }
        self.faults
            .push(ErrorDetail::of("REQUIRED", name, "is required"));
        None
    }

    /// A required string.
    pub(super) fn required<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, W>,
    ) -> Option<T> {
        if self.has(name) {
            return self.optional(name, read);
        }
        self.faults
            .push(ErrorDetail::of("REQUIRED", name, "is required"));
        None
    }

    /// An optional string.
    pub(super) fn optional<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, W>,
    ) -> Option<T> {
        match self.take(name)? {
            Value::String(text) => match read(&text) {
                Ok(value) => Some(value),
                Err(wrong) => {
                    let FieldFault { code, message } = wrong.into();
                    self.faults.push(ErrorDetail::of(code, name, message));
                    None
                }
            },
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => {
                self.wrong_type(name, "a string");
                None
            }
        }
    }

    /// An optional list of strings.
    pub(super) fn texts<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        read: impl FnOnce(&[String]) -> Result<T, W>,
    ) -> Option<T> {
        let texts: Option<Vec<String>> = match self.take(name)? {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => None,
        };
        match texts.map(|texts| read(&texts).map_err(Into::into)) {
            None => {
                self.wrong_type(name, "an array of strings");
                None
            }
            Some(Ok(value)) => Some(value),
            Some(Err(FieldFault { code, message })) => {
                self.faults.push(ErrorDetail::of(code, name, message));
                None
            }
        }
    }

    /// An optional string, or several of them: an array, or a parameter that is given several
    /// times.
    pub(super) fn several<T, W: Into<FieldFault>>(
        &mut self,
        name: &str,
        max: usize,
        read: impl Fn(&str) -> Result<T, W>,
    ) -> Vec<T> {
        self.nulls.remove(name);
        let texts: Option<Vec<String>> = match self.given.remove(name) {
            None => return Vec::new(),
            Some(Value::String(text)) => Some(vec![text]),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
        };
        let Some(texts) = texts else {
            self.wrong_type(name, "a string or an array of strings");
            return Vec::new();
        };
        if texts.is_empty() {
            let message = "must not be an empty array";
            self.fault(name, FieldFault::out_of_range(message));
            return Vec::new();
        }
        if texts.len() > max {
            let message = format!("must not have more than {max} values");
            self.fault(name, FieldFault::out_of_range(message));
            return Vec::new();
        }
        match texts.iter().map(|text| read(text)).collect() {
            Ok(read) => read,
            Err(wrong) => {
                self.fault(name, wrong);
                Vec::new()
            }
        }
    }

    /// An optional integer of a range.
    pub(super) fn number(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let (start, end) = range.into_inner();
        let number = self.integer(name, start.into()..=end.into())?;
        u32::try_from(number).ok()
    }

    /// An optional integer of a range that may be larger.
    fn integer(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(name)?;
        let number = match (&value, self.origin) {
            (Value::Number(number), _) => whole(number),
            (Value::String(text), Origin::Query | Origin::Row) => text.parse().map_err(|_| true),
            (Value::String(_), Origin::Body)
            | (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_), _) => Err(true),
        };
        let found = match number {
            Err(true) => {
                self.wrong_type(name, "an integer");
                return None;
            }
            // An integer beyond 64 bits is out of every range.
            Err(false) => None,
            Ok(number) => u64::try_from(number)
                .ok()
                .filter(|number| range.contains(number)),
        };
        if found.is_none() {
            let message = format!("must be from {} to {}", range.start(), range.end());
            self.faults
                .push(ErrorDetail::of("OUT_OF_RANGE", name, message));
        }
        found
    }

    /// A required integer of a range.
    pub(super) fn required_number(
        &mut self,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        if self.has(name) {
            return self.number(name, range);
        }
        self.faults
            .push(ErrorDetail::of("REQUIRED", name, "is required"));
        None
    }

    /// A required integer of a range that may be larger.
    pub(super) fn required_integer(
        &mut self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if self.has(name) {
            return self.integer(name, range);
        }
        self.faults
            .push(ErrorDetail::of("REQUIRED", name, "is required"));
        None
    }

    /// Refuses a property that only other operations have.
    pub(super) fn refuse(&mut self, name: &str, why: &str) {
        if self.take(name).is_some() {
            self.faults
                .push(ErrorDetail::of("UNKNOWN_PROPERTY", name, why));
        }
    }

    /// Takes all fields that are left, because what they mean depends on one with a fault.
    pub(super) fn skip_others(&mut self) {
        self.given.clear();
        self.nulls.clear();
    }

    /// Whether there is any fault so far.
    pub(super) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Adds a fault.
    pub(super) fn fault(&mut self, name: &str, wrong: impl Into<FieldFault>) {
        let FieldFault { code, message } = wrong.into();
        self.faults.push(ErrorDetail::of(code, name, message));
    }

    /// Returns what was read, or all faults. `read` is `Some` if there is no fault.
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<T, ApiError> {
        self.refuse_unknown();
        match read {
            Some(read) if self.faults.is_empty() => Ok(read),
            _ => Err(ApiError::invalid(self.faults)),
        }
    }

    /// Adds a fault for each field that nothing took.
    fn refuse_unknown(&mut self) {
        let unknown: BTreeSet<_> = self.given.keys().chain(&self.nulls).collect();
        for name in unknown {
            let (code, message) = match self.origin {
                Origin::Body | Origin::Row => ("UNKNOWN_PROPERTY", "is not a known property"),
                Origin::Query => ("UNKNOWN_PARAMETER", "is not a known parameter"),
            };
            self.faults.push(ErrorDetail::of(code, name, message));
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.nulls.remove(name);
        match (self.given.remove(name)?, self.origin) {
            (Value::Array(mut values), Origin::Query) => {
                self.repeated(name);
                values.pop()
            }
            (value, Origin::Query | Origin::Body | Origin::Row) => Some(value),
        }
    }

    fn of(origin: Origin) -> Self {
        Self {
            given: BTreeMap::new(),
            nulls: BTreeSet::new(),
            origin,
            faults: Vec::new(),
        }
    }

    fn repeated(&mut self, name: &str) {
        let FieldFault { code, message } = FieldFault::repeated();
        self.faults.push(ErrorDetail::of(code, name, message));
    }

    fn wrong_type(&mut self, name: &str, wanted: &str) {
        self.faults.push(ErrorDetail::of(
            "WRONG_TYPE",
            name,
            format!("must be {wanted}"),
        ));
    }
}

/// Up to here each integer is a number of its own in JSON readers that have floats alone.
const FLOAT_EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The integer; otherwise whether it has a fraction. JSON does not tell 5 from 5.0.
fn whole(number: &Number) -> Result<i64, bool> {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => Ok(whole),
        (None, Some(float)) if float.fract() != 0.0 => Err(true),
        (None, Some(float)) if float.abs() <= FLOAT_EXACT_MAX => Ok(float as i64),
        (None, _) => Err(false),
    }
}

/// A time in UTC, as queries and bodies have it.
pub(super) fn instant(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::parse_iso(text).ok_or("must be a UTC time such as 2026-11-21T12:43:51.000")
}

/// A display name.
pub(super) fn label(text: &str) -> Result<Box<str>, String> {
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.chars().count() > LABEL_CHARACTERS_MAX {
        return Err(format!(
            "must not be longer than {LABEL_CHARACTERS_MAX} characters"
        ));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("must not contain {c:?}")),
        None => Ok(text.into()),
    }
}

#[cfg(test)]
pub(super) mod tests;
