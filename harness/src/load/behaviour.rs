//! How do the devices of a load behave? Their names, their transmission, their security, their
//! sleep, and the values that they send.

use std::fmt;

use protocol::coap::exchange::Transmission;

use super::addressing::EndpointPattern;
use super::sleep_cycle::SleepTimes;

/// How the devices of a load behave.
#[derive(Clone, Debug)]
pub struct DeviceBehaviour {
    /// Their endpoint names.
    pub pattern: EndpointPattern,
    /// The lifetime in their registrations.
    pub lifetime_s: u32,
    /// Their transmission parameters.
    pub transmission: Transmission,
    /// The percentage of datagrams that are dropped, in each direction.
    pub loss_percent: u8,
    /// How long they sleep; None if they are always awake.
    pub sleep: Option<SleepTimes>,
    /// The values of their Sends.
    pub sends: SendValues,
    /// How they speak to the server.
    pub security: LinkSecurity,
    /// How long a DTLS session lasts.
    pub sessions: SessionUse,
}

/// How devices speak to their server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkSecurity {
    /// Plain CoAP.
    None,
    /// CoAP over DTLS, each with this key and its endpoint name as the identity.
    Psk(PreSharedKey),
}

/// A pre-shared key that is not printed.
#[derive(Clone, Eq, PartialEq)]
pub struct PreSharedKey(pub Vec<u8>);

/// How long a DTLS session of a device lasts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SessionUse {
    /// As long as its requests are answered.
    UntilTimeout,
    /// For one request.
    OneRequest,
}

/// The values that devices send: each value once, and recognisable as one of this load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SendValues {
    /// The upper 20 bits of a value, which tell the Sends of one load from those of another.
    pub label: u32,
    /// Whether acknowledged Sends are recorded.
    pub recording: Recording,
}

/// Whether acknowledged Sends are recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recording {
    /// They are counted only.
    Off,
    /// Each is recorded, in eight bytes.
    On,
}

/// The number of labels.
pub const LABELS: u32 = 1 << 20;

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreSharedKey(..)")
    }
}

impl SendValues {
    /// The value of a Send: a whole number below 2^52, which any format keeps exactly.
    pub fn value(self, number: u32) -> f64 {
        let whole = u64::from(self.label % LABELS) << 32 | u64::from(number);
        whole as f64
    }

    /// The number of the Send with this value; None if it is not one of this load.
    pub fn number(self, value: f64) -> Option<u32> {
        let number = (value as u64 & u64::from(u32::MAX)) as u32;
        (self.value(number) == value).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_load_has_no_number() {
        let sends = |label| SendValues {
            label,
            recording: Recording::Off,
        };
        for number in [0, 1, u32::MAX] {
            assert_eq!(
                sends(LABELS - 1).number(sends(LABELS - 1).value(number)),
                Some(number)
            );
            assert_eq!(sends(1).number(sends(2).value(number)), None);
        }
        for stranger in [21.5, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(sends(3).number(stranger), None);
        }
    }
}
