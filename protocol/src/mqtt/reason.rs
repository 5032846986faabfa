//! Why did a broker refuse something? The reason codes of MQTT 5 (section 2.4) and the return codes
//! of MQTT 3.1.1 (sections 3.2.2.3 and 3.9.3), in words.

use std::fmt;

use mqtt_protocol_core::mqtt::result_code::{
    ConnectReasonCode, ConnectReturnCode, DisconnectReasonCode, MqttError, PubackReasonCode,
    SubackReasonCode, SubackReturnCode,
};

/// Why a broker refuses a client or a message, or why the connection to it ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MqttReason {
    /// The broker does not accept the client.
    ClientRefused(Box<str>, Overload),
    /// The broker does not accept the subscription.
    SubscriptionRefused(Box<str>),
    /// The broker does not accept the message.
    MessageRefused(Box<str>),
    /// The broker ended the connection with a reason.
    Disconnected(Box<str>),
    /// The message is longer than the broker accepts.
    TooLong,
    /// The broker does not follow the protocol, or the message cannot be encoded.
    Protocol(Box<str>),
    /// The broker does not respond to PINGREQ.
    Silent,
    /// The connection was closed.
    Closed,
}

/// Whether a refusal is one of the moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Overload {
    /// The broker is busy, shuts down, or limits the rate.
    Yes,
    /// It would refuse the same client again.
    No,
}

impl MqttReason {
    /// The reason for an error of the protocol.
    pub(super) fn of_error(error: MqttError) -> Self {
        match error == MqttError::PacketTooLarge {
            true => Self::TooLong,
            false => Self::Protocol(words(&error)),
        }
    }

    /// The refusal in a CONNACK of MQTT 5.
    pub(super) fn of_connack(code: ConnectReasonCode) -> Result<(), Self> {
        let passing = matches!(
            code,
            ConnectReasonCode::ServerUnavailable
                | ConnectReasonCode::ServerBusy
                | ConnectReasonCode::ConnectionRateExceeded
                | ConnectReasonCode::QuotaExceeded
        );
        match code == ConnectReasonCode::Success {
            true => Ok(()),
            false => Err(Self::ClientRefused(words(&code), overload(passing))),
        }
    }

    /// The refusal in a CONNACK of MQTT 3.1.1.
    pub(super) fn of_connack_3(code: ConnectReturnCode) -> Result<(), Self> {
        let passing = code == ConnectReturnCode::ServerUnavailable;
        match code == ConnectReturnCode::Accepted {
            true => Ok(()),
            false => Err(Self::ClientRefused(words(&code), overload(passing))),
        }
    }

    /// The refusal in a SUBACK of MQTT 5.
    pub(super) fn of_suback(codes: &[SubackReasonCode]) -> Result<(), Self> {
        match codes.iter().find(|code| code.is_failure()) {
            Some(code) => Err(Self::SubscriptionRefused(words(code))),
            None => Ok(()),
        }
    }

    /// The refusal in a SUBACK of MQTT 3.1.1.
    pub(super) fn of_suback_3(codes: &[SubackReturnCode]) -> Result<(), Self> {
        match codes.contains(&SubackReturnCode::Failure) {
            true => Err(Self::SubscriptionRefused("failure".into())),
            false => Ok(()),
        }
    }

    /// The refusal in a PUBACK of MQTT 5. That nobody has subscribed is no refusal.
    pub(super) fn of_puback(code: Option<PubackReasonCode>) -> Result<(), Self> {
        match code.filter(|code| code.is_failure()) {
            Some(code) => Err(Self::MessageRefused(words(&code))),
            None => Ok(()),
        }
    }

    /// The reason in a DISCONNECT of MQTT 5.
    pub(super) fn of_disconnect(code: Option<DisconnectReasonCode>) -> Self {
        match code {
            Some(code) => Self::Disconnected(words(&code)),
            None => Self::Closed,
        }
    }
}

impl fmt::Display for MqttReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientRefused(why, _) => write!(f, "the broker refused the connection: {why}"),
            Self::SubscriptionRefused(why) => {
                write!(f, "the broker refused the subscription to commands: {why}")
            }
            Self::MessageRefused(why) => write!(f, "the broker refused the event: {why}"),
            Self::Disconnected(why) => write!(f, "the broker ended the connection: {why}"),
            Self::TooLong => f.write_str("the event is longer than the broker accepts"),
            Self::Protocol(why) => write!(f, "the connection does not follow MQTT: {why}"),
            Self::Silent => f.write_str("the broker no longer responds"),
            Self::Closed => f.write_str("the broker closed the connection"),
        }
    }
}

fn overload(passing: bool) -> Overload {
    match passing {
        true => Overload::Yes,
        false => Overload::No,
    }
}

/// The name of a code as words: `NotAuthorized` is `not authorized`.
fn words(code: &impl fmt::Display) -> Box<str> {
    let mut words = String::new();
    for letter in code.to_string().chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_named_in_words() {
        let refused = MqttReason::of_connack(ConnectReasonCode::NotAuthorized).unwrap_err();
        let expected = "the broker refused the connection: not authorized";
        assert_eq!(refused.to_string(), expected);
        let refused = MqttReason::of_connack_3(ConnectReturnCode::BadUserNameOrPassword);
        let expected = "the broker refused the connection: bad user name or password";
        assert_eq!(refused.unwrap_err().to_string(), expected);
        let refused = MqttReason::of_puback(Some(PubackReasonCode::QuotaExceeded)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the broker refused the event: quota exceeded"
        );
    }

    #[test]
    fn a_broker_without_subscribers_accepts() {
        assert_eq!(MqttReason::of_puback(None), Ok(()));
        let nobody = Some(PubackReasonCode::NoMatchingSubscribers);
        assert_eq!(MqttReason::of_puback(nobody), Ok(()));
    }

    #[test]
    fn a_busy_broker_is_distinguished_from_one_that_refuses() {
        let busy = MqttReason::of_connack(ConnectReasonCode::ServerBusy);
        assert!(matches!(
            busy,
            Err(MqttReason::ClientRefused(_, Overload::Yes))
        ));
        let refused = MqttReason::of_connack(ConnectReasonCode::Banned);
        assert!(matches!(
            refused,
            Err(MqttReason::ClientRefused(_, Overload::No))
        ));
    }
}
