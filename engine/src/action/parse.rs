//! Is this a valid request to a device? Parses the bodies of callers, one file for each protocol.
//!
//! One pass finds every fault; each fault names the field it is about.

pub mod coap;
pub mod lwm2m;
pub mod udp;

/// A field of a request as its caller wrote it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RawField<T> {
    /// The field is missing.
    Nothing,
    /// The field has this value.
    Value(T),
    /// The field has the wrong type; that fault is already reported.
    Unreadable,
}

impl<T> RawField<T> {
    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> RawField<U> {
        match self {
            Self::Nothing => RawField::Nothing,
            Self::Value(value) => RawField::Value(convert(value)),
            Self::Unreadable => RawField::Unreadable,
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> RawField<&T> {
        match self {
            Self::Nothing => RawField::Nothing,
            Self::Value(value) => RawField::Value(value),
            Self::Unreadable => RawField::Unreadable,
        }
    }
}

impl RawField<String> {
    /// Borrows the text.
    pub fn as_deref(&self) -> RawField<&str> {
        self.as_ref().map(String::as_str)
    }
}
