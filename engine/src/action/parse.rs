//! Is this something a device can be asked? From what a caller wrote to a request, one file for
//! each protocol.
//!
//! Every fault is found in one go, and each says which part of the request it is about.

pub mod coap;
pub mod lwm2m;
pub mod udp;

/// A part of a request as its caller gave it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RawField<T> {
    /// It is not there.
    Nothing,
    /// It is this.
    Value(T),
    /// It is there and cannot be read, which was told already.
    Unreadable,
}

impl RawField<String> {
    /// The same, without taking the text away.
    pub fn as_deref(&self) -> RawField<&str> {
        match self {
            Self::Nothing => RawField::Nothing,
            Self::Value(text) => RawField::Value(text),
            Self::Unreadable => RawField::Unreadable,
        }
    }
}
