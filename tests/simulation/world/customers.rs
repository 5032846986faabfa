//! The choices of the customer: destinations, and passive reporting.

use std::sync::Arc;

use engine::change::{Batch, Change};
use engine::delivery::command::DestinationCommand;
use engine::delivery::destination::{
    Destination, DestinationState, EventBatching, EventTypes, JsonPayload, Replay, Target, Webhook,
};
use engine::delivery::forwarder::ForwarderInput;
use engine::event::{EventType, Lifecycle};
use engine::ids::{CustomerId, DestinationId};
use engine::moment::Timestamp;
use engine::policy::CustomerPolicy;
use engine::setting::{Setting, SettingName, SettingState};

use super::{Activity, World};
use crate::disk::{Author, CustomerChange};
use crate::endpoints::EndpointBehaviour;
use crate::event::Event;
use crate::service::CommitResult;
use crate::trace::TraceEvent;

/// How many destinations there are at a time, at most.
const DESTINATIONS_MAX: usize = 3;

impl World {
    /// The customer changes something, and schedules the next change.
    pub(super) fn choose(&mut self) {
        let at_ms = self.later_ms() + 5 * self.settings.pace_ms;
        self.queue.push(at_ms, Event::CustomerAction);
        if self.activity != Activity::Lively || !self.service.is_up() {
            return;
        }
        if self.settings.firmware_percent > 0 && self.rng.below(4) == 0 {
            return self.act_on_campaigns();
        }
        let all = self.disk.durable.outbox().destinations();
        let ids: Vec<DestinationId> = all.map(|record| record.destination.id).collect();
        let one = match ids.len() {
            0 => None,
            count => ids.get(self.rng.below(count as u32) as usize).copied(),
        };
        match (self.rng.below(13), one) {
            (0, _) | (_, None) if ids.len() < DESTINATIONS_MAX => self.create_any(),
            (0 | 12, Some(id)) => self.remove_destination(id),
            (1..3, _) => self.switch_reporting(),
            (3..6, Some(id)) => self.ask_destination(id, DestinationCommand::Restart),
            (6..8, Some(id)) => {
                self.ask_destination(id, DestinationCommand::Restart);
                self.ask_destination(id, DestinationCommand::Replay);
            }
            (_, Some(id)) => {
                let waiting = self.disk.durable.outbox().backlog(id);
                self.tell_forwarder(id, ForwarderInput::Backlog(waiting));
            }
            (_, None) => {}
        }
    }

    /// The choices of the customer before the world begins.
    pub(super) fn choose_at_first(&mut self) {
        for _ in 0..self.rng.below(3) {
            self.create_any();
        }
        if self.rng.below(2) == 0 {
            self.switch_reporting();
        }
    }

    fn create_any(&mut self) {
        let (devices, pace_ms) = (self.settings.devices, self.settings.pace_ms);
        let behaviour = EndpointBehaviour::draw(devices, pace_ms, &mut self.rng);
        let wants = match self.rng.below(3) {
            0 => {
                let every: EventTypes = EventType::ALL.into_iter().collect();
                every.with_kinds(Some(Lifecycle::ALL.into_iter().collect()))
            }
            1 => EventTypes::usual(),
            _ => [EventType::TelemetryData].into_iter().collect(),
        };
        let id = self.create_destination(behaviour, wants);
        // A broker has no batches.
        if self.rng.below(3) == 0 && !self.destinations_made.is_multiple_of(3) {
            self.endpoints.put_broker(id);
        }
    }

    /// Adds a destination, which receives events once it is durable.
    pub(crate) fn create_destination(
        &mut self,
        behaviour: EndpointBehaviour,
        wants: EventTypes,
    ) -> DestinationId {
        self.destinations_made += 1;
        let id = DestinationId::from_bytes(u128::from(self.destinations_made).to_be_bytes());
        self.note(TraceEvent::Post {
            id,
            does: "is to be made",
        });
        self.endpoints.put(id, behaviour);
        let now = Timestamp::from_ms(self.now_ms);
        // An endpoint that refuses one device refuses the others of its batch, too.
        let takes_batches = match behaviour {
            EndpointBehaviour::Picky { .. } => false,
            EndpointBehaviour::Healthy
            | EndpointBehaviour::Slow
            | EndpointBehaviour::Dead
            | EndpointBehaviour::Flapping { .. }
            | EndpointBehaviour::Erratic
            | EndpointBehaviour::Forgetful => self.destinations_made.is_multiple_of(3),
        };
        let batching = takes_batches.then_some(EventBatching {
            events_max: 5,
            wait_ms_max: 500,
        });
        let destination = Destination {
            id,
            customer: customer(),
            name: "ours".into(),
            target: Target::Webhook(Webhook {
                url: "https://example.com/".into(),
                headers: Box::default(),
                secret: None,
                json: JsonPayload::AsText,
                batching,
            }),
            event_types: wants,
            state: DestinationState::RolledOut,
            failure: None,
            replay: Replay::None,
            created_at: now,
            updated_at: now,
        };
        let put = Change::PutDestination(Box::new(destination));
        self.commit_as(
            Author::Customer(CustomerChange::Create(id, behaviour)),
            alone(put),
        );
        id
    }

    /// Removes a destination, which receives nothing once the removal is durable.
    pub(crate) fn remove_destination(&mut self, id: DestinationId) {
        self.note(TraceEvent::Post {
            id,
            does: "is to be removed",
        });
        self.ask_destination(id, DestinationCommand::Remove);
    }

    fn switch_reporting(&mut self) {
        let state = match self.disk.durable.reporting() {
            SettingState::Enabled => SettingState::Disabled,
            SettingState::Disabled => SettingState::Enabled,
        };
        self.set_reporting(state);
    }

    /// Switches passive reporting on or off, once that is durable.
    pub(crate) fn set_reporting(&mut self, state: SettingState) {
        self.note(TraceEvent::World("passive reporting is switched"));
        let put = Change::PutSetting(Setting {
            customer: customer(),
            name: SettingName::Lwm2mPassiveReporting,
            state,
        });
        self.commit_as(Author::Customer(CustomerChange::Switch), alone(put));
    }

    /// A change by the customer is committed or failed.
    pub(super) fn customer_change_done(
        &mut self,
        customer_change: CustomerChange,
        receipt: CommitResult,
    ) {
        if receipt == CommitResult::Unsaved {
            return;
        }
        match customer_change {
            CustomerChange::AddCampaign(campaign) => return self.begin_campaign(*campaign),
            CustomerChange::Create(id, _) => {
                self.census.destinations_made += 1;
                self.restore_forwarder(id);
            }
            CustomerChange::Switch => self.census.reporting_switched += 1,
        }
        self.apply_policy();
    }

    /// The service applies the settings of its customer.
    pub(super) fn apply_policy(&mut self) {
        let rules = Arc::new(self.settings.rules.clone());
        let policy = CustomerPolicy::of(rules, &self.disk.durable.chosen());
        self.service.apply_policy(Arc::new(policy));
    }
}

pub(crate) fn customer() -> CustomerId {
    CustomerId::parse("acme").unwrap()
}

fn alone(change: Change) -> Batch {
    Batch {
        changes: vec![change],
        ..Batch::default()
    }
}
