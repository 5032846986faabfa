//! How does the API spell things? Every word of it, and nowhere else, but for those that events
//! are told with too.

use engine::action::{ContentForm, Method, Mode, Operation, PayloadType, Protocol, Status};
use engine::admin_log::entry::{Category, Subject};
use engine::customer::{Scope, Scopes};
use engine::delivery::body::words as spelled;
use engine::delivery::body::words::event_type;
use engine::delivery::destination::DestinationState;
use engine::device::record::ObservationState;
use engine::device::snapshot::Presence;
use engine::directory::psk::KeyFormat;
use engine::event::{EventType, Lifecycle};
use engine::query::ActionOrder;
use engine::setting::{SettingName, SettingState};

/// Something the API has a word for.
pub(super) trait Word: Copy + PartialEq + Sized + 'static {
    /// Every word with what it stands for.
    const WORDS: &'static [(&'static str, Self)];

    /// What the text stands for; the error lists the words there are.
    fn read(text: &str) -> Result<Self, String> {
        Self::known(text).ok_or_else(|| {
            let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| *word).collect();
            format!("must be one of {}", words.join(", "))
        })
    }

    /// What the text stands for, if it stands for anything.
    fn known(text: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, meaning)| *meaning)
    }

    /// The word for it.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, meaning)| *meaning == self);
        found
            .map(|(word, _)| *word)
            .expect("every case has its word")
    }
}

impl Word for Protocol {
    const WORDS: &'static [(&'static str, Self)] = &[
        (spelled::protocol(Self::Udp), Self::Udp),
        (spelled::protocol(Self::Coap), Self::Coap),
        (spelled::protocol(Self::Lwm2m), Self::Lwm2m),
    ];
}

impl Word for Status {
    const WORDS: &'static [(&'static str, Self)] = &[
        (spelled::status(Self::Scheduled), Self::Scheduled),
        (spelled::status(Self::InProgress), Self::InProgress),
        (spelled::status(Self::Succeeded), Self::Succeeded),
        (spelled::status(Self::Failed), Self::Failed),
        (spelled::status(Self::Cancelled), Self::Cancelled),
    ];
}

impl Word for Mode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("SEND_NOW", Self::SendNow),
        ("SEND_WHEN_ACTIVE", Self::SendWhenActive),
    ];
}

impl Word for Operation {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("read", Self::Read),
        ("write", Self::Write),
        ("execute", Self::Execute),
        ("observe-start", Self::ObserveStart),
        ("observe-end", Self::ObserveEnd),
    ];
}

impl Word for Method {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("GET", Self::Get),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("DELETE", Self::Delete),
        ("PATCH", Self::Patch),
    ];
}

impl Word for ContentForm {
    const WORDS: &'static [(&'static str, Self)] =
        &[("STRING", Self::String), ("BASE64", Self::Base64)];
}

impl Word for ObservationState {
    const WORDS: &'static [(&'static str, Self)] = &[("HELD", Self::Held), ("OWED", Self::Owed)];
}

impl Word for Lifecycle {
    const WORDS: &'static [(&'static str, Self)] = &[
        (spelled::lifecycle(Self::Registered), Self::Registered),
        (spelled::lifecycle(Self::Deregistered), Self::Deregistered),
        (
            spelled::lifecycle(Self::RegistrationExpired),
            Self::RegistrationExpired,
        ),
    ];
}

impl Word for EventType {
    const WORDS: &'static [(&'static str, Self)] = &[
        (event_type(Self::TelemetryData), Self::TelemetryData),
        (event_type(Self::Lifecycle), Self::Lifecycle),
        (event_type(Self::Error), Self::Error),
        (event_type(Self::ActionResult), Self::ActionResult),
    ];
}

impl Word for DestinationState {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ROLLOUT_DONE", Self::RolledOut),
        ("INTEGRATION_ACTIVE", Self::Active),
        ("INTEGRATION_FAILED", Self::Failed),
    ];
}

impl Word for ActionOrder {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("created", Self::Created),
        ("-created", Self::CreatedDescending),
        ("updated", Self::Updated),
        ("-updated", Self::UpdatedDescending),
    ];
}

impl Word for PayloadType {
    const WORDS: &'static [(&'static str, Self)] = &[
        (spelled::payload_type(Self::Text), Self::Text),
        (spelled::payload_type(Self::Base64), Self::Base64),
    ];
}

impl Word for Category {
    const WORDS: &'static [(&'static str, Self)] = &[("error", Self::Error), ("info", Self::Info)];
}

impl Word for Subject {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("DEVICE", Self::Device),
        ("LIFECYCLE", Self::Lifecycle),
        ("INTEGRATION", Self::Integration),
        ("GENERAL", Self::General),
    ];
}

impl Word for Presence {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("UNREGISTERED", Self::Unregistered),
        ("AWAKE", Self::Awake),
        ("ASLEEP", Self::Asleep),
    ];
}

impl Word for KeyFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("STRING", Self::Text), ("HEX", Self::Hex)];
}

impl Word for SettingName {
    const WORDS: &'static [(&'static str, Self)] =
        &[("LWM2M_PASSIVE_REPORTING", Self::Lwm2mPassiveReporting)];
}

impl Word for SettingState {
    const WORDS: &'static [(&'static str, Self)] =
        &[("ENABLED", Self::Enabled), ("DISABLED", Self::Disabled)];
}

impl Word for Scope {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("actions:read", Self::ActionsRead),
        ("actions:write", Self::ActionsWrite),
        ("logs:read", Self::LogsRead),
        ("settings:read", Self::SettingsRead),
        ("settings:write", Self::SettingsWrite),
        ("integrations:read", Self::IntegrationsRead),
        ("integrations:write", Self::IntegrationsWrite),
        ("plugins:read", Self::PluginsRead),
        ("plugins:write", Self::PluginsWrite),
        ("sms:read", Self::SmsRead),
        ("sms:write", Self::SmsWrite),
        ("devices:read", Self::DevicesRead),
        ("devices:write", Self::DevicesWrite),
    ];
}

/// The word for every scope there is and will be.
const EVERY_SCOPE: &str = "all";

/// The scopes a list of words stands for.
pub(super) fn read_scopes(words: &[String]) -> Result<Scopes, String> {
    if words.is_empty() {
        return Err("must have at least one item".to_owned());
    }
    words
        .iter()
        .try_fold(Scopes::NONE, |scopes, word| match word.as_str() {
            EVERY_SCOPE => Ok(Scopes::ALL),
            word => Scope::read(word)
                .map(|scope| scopes.with(scope))
                .map_err(|why| format!("{word:?} {why}, {EVERY_SCOPE}")),
        })
}

/// Every word for a scope.
pub(super) fn every_scope_word() -> Vec<&'static str> {
    let words = Scope::WORDS.iter().map(|(word, _)| *word);
    words.chain([EVERY_SCOPE]).collect()
}

/// The words for a set of scopes.
pub(super) fn scope_words(scopes: Scopes) -> Vec<&'static str> {
    if scopes == Scopes::ALL {
        return vec![EVERY_SCOPE];
    }
    Scope::ALL
        .into_iter()
        .filter(|scope| scopes.has(*scope))
        .map(Scope::word)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_word_that_reads_as_itself() {
        check(&Protocol::ALL);
        check(&Status::ALL);
        check(&ActionOrder::ALL);
        check(&Scope::ALL);
        check(&SettingName::ALL);
        check(&[Mode::SendNow, Mode::SendWhenActive]);
        check(&[
            Operation::Read,
            Operation::Write,
            Operation::Execute,
            Operation::ObserveStart,
            Operation::ObserveEnd,
        ]);
        check(&Method::ALL);
        check(&[ContentForm::String, ContentForm::Base64]);
        check(&[ObservationState::Held, ObservationState::Owed]);
        check(&[
            Lifecycle::Registered,
            Lifecycle::Deregistered,
            Lifecycle::RegistrationExpired,
        ]);
        check(&EventType::ALL);
        check(&[
            DestinationState::RolledOut,
            DestinationState::Active,
            DestinationState::Failed,
        ]);
        check(&[Presence::Unregistered, Presence::Awake, Presence::Asleep]);
        check(&[
            Subject::Device,
            Subject::Lifecycle,
            Subject::Integration,
            Subject::General,
        ]);
        check(&[Category::Error, Category::Info]);
    }

    #[test]
    fn a_word_that_stands_for_nothing_is_told_the_words_there_are() {
        assert_eq!(
            Protocol::read("udp"),
            Err("must be one of UDP, COAP, LWM2M".to_owned())
        );
    }

    #[test]
    fn a_list_of_scopes_reads_as_the_set_it_prints_as() {
        let some = ["actions:read".to_owned(), "devices:write".to_owned()];
        assert_eq!(scope_words(read_scopes(&some).unwrap()), some);
        let with_all = ["logs:read".to_owned(), "all".to_owned()];
        assert_eq!(read_scopes(&with_all), Ok(Scopes::ALL));
        assert_eq!(scope_words(Scopes::ALL), ["all"]);
        assert!(read_scopes(&["logs:write".to_owned()]).is_err());
        assert!(
            read_scopes(&[]).is_err(),
            "who may do nothing needs no secret"
        );
    }

    fn check<T: Word + std::fmt::Debug>(cases: &[T]) {
        assert_eq!(cases.len(), T::WORDS.len());
        for case in cases {
            assert_eq!(T::read(case.word()), Ok(*case));
        }
    }
}
