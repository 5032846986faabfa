//! Which topics of a broker do events and commands of a device have?
//!
//! ```text
//! {prefix}/{deviceId}/telemetry|lifecycle|error|action    events, and answers to commands
//! {prefix}/{deviceId}/actions/UDP|COAP|LWM2M              commands
//! {prefix}/test                                           test events
//! ```
//!
//! A device id may have a `+`, which no topic may have: it is written `%2B`. No device id has a
//! `%`, a `#` or a `/`.

pub mod link;

use std::fmt;

use crate::action::Protocol;
use crate::delivery::body::words;
use crate::event::EventType;
use crate::ids::DeviceId;
use crate::limits::TOPIC_PREFIX_BYTES_MAX;
use crate::topic::{InvalidTopic, Topic};

/// What a `+` of a device id is written as.
const PLUS: &str = "%2B";

/// The levels that the topics of a broker begin with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicPrefix(Box<str>);

/// Why a prefix of topics is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TopicPrefixFault {
    /// It is empty or too long.
    #[error("must have 1 to {TOPIC_PREFIX_BYTES_MAX} bytes")]
    Length,
    /// It has a wildcard or a control character.
    #[error("must not contain {0:?}")]
    Character(char),
    /// Such topics are those of the broker itself.
    #[error("must not begin with $")]
    Reserved,
    /// The level behind it would be empty.
    #[error("must not end with /")]
    EmptyLevel,
}

/// The topic of a command, parsed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommandTopic {
    /// The level of the device, as it is written in topics.
    pub level: Box<str>,
    /// The device; none if the level is no device id.
    pub device: Option<DeviceId>,
    /// The protocol; none if there is no such one.
    pub protocol: Option<Protocol>,
}

impl TopicPrefix {
    /// Parses a prefix.
    pub fn parse(text: &str) -> Result<Self, TopicPrefixFault> {
        if text.len() > TOPIC_PREFIX_BYTES_MAX {
            return Err(TopicPrefixFault::Length);
        }
        let topic = Topic::parse(text).map_err(|invalid| match invalid {
            InvalidTopic::Character(c) => TopicPrefixFault::Character(c),
            InvalidTopic::Missing
            | InvalidTopic::Empty
            | InvalidTopic::TooLong
            | InvalidTopic::Several => TopicPrefixFault::Length,
        })?;
        match topic.as_str() {
            text if text.starts_with('$') => Err(TopicPrefixFault::Reserved),
            text if text.ends_with('/') => Err(TopicPrefixFault::EmptyLevel),
            text => Ok(Self(text.into())),
        }
    }

    /// The topic of events of a type about a device.
    pub fn of_events(&self, device: &DeviceId, event_type: EventType) -> String {
        let level = device.as_str().replace('+', PLUS);
        self.below(&level, kind(event_type))
    }

    /// The topic of the answer to a command.
    pub fn of_answers(&self, level: &str) -> String {
        self.below(level, kind(EventType::ActionResult))
    }

    /// The topic of test events.
    pub fn of_tests(&self) -> String {
        format!("{self}/test")
    }

    /// The filter that selects commands.
    pub fn command_filter(&self) -> String {
        format!("{self}/+/actions/+")
    }

    /// The parts of the topic of a command.
    pub fn command(&self, topic: &str) -> Option<CommandTopic> {
        let behind = topic.strip_prefix(&*self.0)?.strip_prefix('/')?;
        let mut levels = behind.split('/');
        let parts = [levels.next()?, levels.next()?, levels.next()?];
        let ([level, "actions", word], None) = (parts, levels.next()) else {
            return None;
        };
        let device = level.replace(PLUS, "+").replace("%2b", "+");
        Some(CommandTopic {
            level: level.into(),
            device: DeviceId::parse(&device).ok(),
            protocol: Protocol::ALL
                .into_iter()
                .find(|protocol| words::protocol(*protocol) == word),
        })
    }

    fn below(&self, level: &str, kind: &str) -> String {
        format!("{self}/{level}/{kind}")
    }
}

impl fmt::Display for TopicPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The last level of the topic of events. SMS are not delivered to brokers.
fn kind(event_type: EventType) -> &'static str {
    match event_type {
        EventType::TelemetryData => "telemetry",
        EventType::Lifecycle => "lifecycle",
        EventType::Error => "error",
        EventType::ActionResult => "action",
        EventType::SmsReceived | EventType::SmsReport => "sms",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_has_no_wildcards() {
        for text in [
            "acme",
            "acme/site 1",
            "/acme",
            &"x".repeat(TOPIC_PREFIX_BYTES_MAX),
        ] {
            assert_eq!(TopicPrefix::parse(text).unwrap().to_string(), text);
        }
        for (text, fault) in [
            ("", TopicPrefixFault::Length),
            ("a/+", TopicPrefixFault::Character('+')),
            ("a/#", TopicPrefixFault::Character('#')),
            ("a\0", TopicPrefixFault::Character('\0')),
            ("$SYS", TopicPrefixFault::Reserved),
            ("a/", TopicPrefixFault::EmptyLevel),
            (
                &"x".repeat(TOPIC_PREFIX_BYTES_MAX + 1),
                TopicPrefixFault::Length,
            ),
        ] {
            assert_eq!(TopicPrefix::parse(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn the_plus_of_a_device_id_is_escaped_in_topics() {
        let prefix = TopicPrefix::parse("acme/site").unwrap();
        let device = DeviceId::parse("urn:dev+1").unwrap();
        let topic = prefix.of_events(&device, EventType::TelemetryData);
        assert_eq!(topic, "acme/site/urn:dev%2B1/telemetry");
        for (text, level) in [
            ("acme/site/urn:dev%2B1/actions/COAP", "urn:dev%2B1"),
            ("acme/site/urn:dev%2b1/actions/COAP", "urn:dev%2b1"),
        ] {
            let command = prefix.command(text).unwrap();
            assert_eq!(command.device.as_ref(), Some(&device));
            assert_eq!(command.protocol, Some(Protocol::Coap));
            let answer = prefix.of_answers(&command.level);
            assert_eq!(answer, format!("acme/site/{level}/action"));
        }
    }

    #[test]
    fn a_command_names_a_device_and_a_protocol() {
        let prefix = TopicPrefix::parse("acme").unwrap();
        assert_eq!(prefix.command_filter(), "acme/+/actions/+");
        let command = prefix.command("acme/meter/actions/SMTP").unwrap();
        assert_eq!((command.device.is_some(), command.protocol), (true, None));
        let command = prefix.command("acme/a%2F/actions/UDP").unwrap();
        assert_eq!(
            (command.device, command.protocol),
            (None, Some(Protocol::Udp))
        );
        for text in [
            "acme/meter/action/UDP",
            "acme/meter/actions",
            "acm/m/actions/UDP",
        ] {
            assert_eq!(prefix.command(text), None, "{text}");
        }
        assert_eq!(prefix.command("acme/m/actions/UDP/x"), None);
    }
}
