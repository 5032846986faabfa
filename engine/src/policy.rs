//! Which rules and settings apply to a device? Those of the service and those of its customer.

use std::num::NonZeroU32;
use std::sync::Arc;

use protocol::lwm2m::model::catalog::Catalog;

use crate::definition::{Definition, DefinitionId, catalog_of};
use crate::delivery::destination::Destination;
use crate::directory::setting::state_of;
use crate::event::{EventType, Lifecycle};
use crate::ids::CustomerId;
use crate::rules::Rules;
use crate::setting::{Setting, SettingName, SettingState};

/// The policy of the devices of a customer.
#[derive(Clone, Debug)]
pub struct CustomerPolicy {
    /// The rules of the service.
    pub rules: Arc<Rules>,
    /// Whether the objects of a device are read when it registers or updates its registration.
    pub passive_reporting: SettingState,
    /// Whether a destination receives the results of requests.
    pub results: Wanted,
    /// Whether a destination receives that devices in queue mode awake and fall asleep.
    pub sleep_events: Wanted,
    /// How long a device may be silent before it is offline, in seconds; if none is set, as long as
    /// its registration lasts.
    pub offline_after_s: Option<NonZeroU32>,
    /// The object definitions: the customer's own precede those of the registry.
    pub catalog: Arc<Catalog>,
    /// The definitions that are left out because today's parser rejects them.
    pub unreadable: Vec<DefinitionId>,
}

/// Whether something is wanted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wanted {
    /// It is not wanted.
    #[default]
    No,
    /// It is wanted.
    Yes,
}

/// The stored settings of a customer.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomerSettings {
    /// The customer.
    pub customer: CustomerId,
    /// Its settings.
    pub settings: Vec<Setting>,
    /// Its object definitions.
    pub definitions: Vec<Definition>,
    /// Its destinations.
    pub destinations: Vec<Destination>,
    /// How long its devices may be silent before they are offline, in seconds.
    pub offline_after_s: Option<NonZeroU32>,
}

impl CustomerSettings {
    /// The object model of the customer: its own definitions precede those of the registry.
    pub fn catalog(&self) -> Catalog {
        catalog_of(&self.definitions).0
    }
}

impl CustomerPolicy {
    /// The policy of a customer with default settings.
    pub fn of_rules(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            passive_reporting: SettingState::default(),
            results: Wanted::default(),
            sleep_events: Wanted::default(),
            offline_after_s: None,
            catalog: Arc::default(),
            unreadable: Vec::new(),
        }
    }

    /// The policy of a customer with these settings.
    pub fn of(rules: Arc<Rules>, settings: &CustomerSettings) -> Self {
        let wants_results = |to: &Destination| to.event_types.has(EventType::ActionResult);
        let names_sleep = |to: &Destination| {
            let kinds = [Lifecycle::Awake, Lifecycle::Asleep];
            kinds.iter().any(|kind| to.event_types.has_kind(*kind))
        };
        let wanted = |by: &dyn Fn(&Destination) -> bool| match settings.destinations.iter().any(by)
        {
            true => Wanted::Yes,
            false => Wanted::No,
        };
        let (catalog, unreadable) = catalog_of(&settings.definitions);
        Self {
            passive_reporting: state_of(SettingName::Lwm2mPassiveReporting, &settings.settings),
            results: wanted(&wants_results),
            sleep_events: wanted(&names_sleep),
            offline_after_s: settings.offline_after_s,
            catalog: Arc::new(catalog),
            unreadable,
            ..Self::of_rules(rules)
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::lwm2m::version::Version;

    use super::*;
    use crate::limits::Limits;
    use crate::moment::Timestamp;
    use crate::rules::{EndpointTrust, TransmissionRules};

    #[test]
    fn an_unreadable_definition_is_left_out_and_reported() {
        let read = "<LWM2M><Object><Name>It</Name><ObjectID>33000</ObjectID>\
                    <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
                    <Resources><Item ID=\"0\"><Name>It</Name><Operations>R</Operations>\
                    <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
                    <Type>Float</Type></Item></Resources></Object></LWM2M>";
        let definition = |object, xml: &str| Definition {
            id: DefinitionId::of(customer(), object, "1.0").unwrap(),
            xml: xml.into(),
            at: Timestamp::default(),
        };
        let broken = definition(33_001, "<LWM2M/>");
        let settings = CustomerSettings {
            customer: customer(),
            settings: Vec::new(),
            definitions: vec![broken.clone(), definition(33_000, read)],
            destinations: Vec::new(),
            offline_after_s: None,
        };
        let policy = CustomerPolicy::of(rules(), &settings);
        assert_eq!(policy.unreadable, [broken.id]);
        let has = |object| policy.catalog.object(object, Version::new(1, 0)).is_some();
        assert!(has(33_000) && !has(33_001) && has(3303));
    }

    fn customer() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn rules() -> Arc<Rules> {
        let transmission = TransmissionRules {
            ack_timeout_ms: 2_000,
            max_retransmit: 4,
            response_timeout_ms: 10_000,
        };
        let rules = Rules::new(
            Limits::default(),
            transmission,
            EndpointTrust::AddressRequired,
        );
        Arc::new(rules)
    }
}
