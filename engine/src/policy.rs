//! On what terms is a device served? What holds for every device, and what its customer chose.

use std::sync::Arc;

use protocol::lwm2m::model::catalog::Catalog;

use crate::definition::{Definition, DefinitionId, catalog_of};
use crate::delivery::destination::Destination;
use crate::directory::setting::state_of;
use crate::event::EventType;
use crate::ids::CustomerId;
use crate::rules::Rules;
use crate::setting::{Setting, SettingName, SettingState};

/// What holds for the devices of a customer.
#[derive(Clone, Debug)]
pub struct CustomerPolicy {
    /// What holds for every device alike.
    pub rules: Arc<Rules>,
    /// Whether the objects of a device are read when it registers or updates its registration.
    pub passive_reporting: SettingState,
    /// Whether anybody wants to be told how requests end.
    pub results: Wanted,
    /// What the objects of a device are: its customer's definitions before those of the registry.
    pub catalog: Arc<Catalog>,
    /// The definitions that are left out, because they cannot be read any more.
    pub unreadable: Vec<DefinitionId>,
}

/// Whether something is wanted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wanted {
    /// Nobody wants it.
    #[default]
    No,
    /// Somebody does.
    Yes,
}

/// What a customer chose, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomerSettings {
    /// Whose choice it is.
    pub customer: CustomerId,
    /// Its settings.
    pub settings: Vec<Setting>,
    /// Its definitions of objects.
    pub definitions: Vec<Definition>,
    /// Its destinations.
    pub destinations: Vec<Destination>,
}

impl CustomerPolicy {
    /// The terms of a customer that chose nothing.
    pub fn of_rules(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            passive_reporting: SettingState::default(),
            results: Wanted::default(),
            catalog: Arc::default(),
            unreadable: Vec::new(),
        }
    }

    /// The terms of a customer that chose so.
    pub fn of(rules: Arc<Rules>, chosen: &CustomerSettings) -> Self {
        let wants_results = |to: &Destination| to.event_types.has(EventType::ActionResult);
        let is_wanted = chosen.destinations.iter().any(wants_results);
        let (catalog, unreadable) = catalog_of(&chosen.definitions);
        Self {
            passive_reporting: state_of(SettingName::Lwm2mPassiveReporting, &chosen.settings),
            results: if is_wanted { Wanted::Yes } else { Wanted::No },
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
    fn a_definition_that_cannot_be_read_any_more_is_left_out_and_named() {
        let read = "<LWM2M><Object><Name>It</Name><ObjectID>33000</ObjectID>\
                    <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
                    <Resources><Item ID=\"0\"><Name>It</Name><Operations>R</Operations>\
                    <MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>\
                    <Type>Float</Type></Item></Resources></Object></LWM2M>";
        let kept = |object, xml: &str| Definition {
            id: DefinitionId::of(customer(), object, "1.0").unwrap(),
            xml: xml.into(),
            at: Timestamp::default(),
        };
        let broken = kept(33_001, "<LWM2M/>");
        let chosen = CustomerSettings {
            customer: customer(),
            settings: Vec::new(),
            definitions: vec![broken.clone(), kept(33_000, read)],
            destinations: Vec::new(),
        };
        let policy = CustomerPolicy::of(rules(), &chosen);
        assert_eq!(policy.unreadable, [broken.id]);
        let has = |object| policy.catalog.object(object, Version::new(1, 0)).is_some();
        assert!(has(33_000) && !has(33_001) && has(3303));
    }

    fn customer() -> CustomerId {
        CustomerId::parse("acme").unwrap()
    }

    fn rules() -> Arc<Rules> {
        let patience = TransmissionRules {
            ack_timeout_ms: 2_000,
            max_retransmit: 4,
            response_timeout_ms: 10_000,
        };
        let rules = Rules::new(Limits::default(), patience, EndpointTrust::AddressRequired);
        Arc::new(rules)
    }
}
