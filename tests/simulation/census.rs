//! Did everything that can happen happen? Counters by which a run proves what it tried.

use engine::action::{Action, Operation, Protocol, RequestKind, Status};
use engine::arbiter::input::DeviceReply;
use engine::bootstrap::BootstrapState;
use engine::change::{Batch, Change};
use engine::device::queue::CancelRefusal;
use engine::device::record::{Observation, ObservationState};
use engine::device::refusal::SubmitRefusal;
use engine::dispatch::DropReason;
use engine::event::{Cause, EventContent};
use engine::firmware::campaign::CampaignState;
use engine::firmware::update::UpdateState;
use engine::supervision::Unserved;
use harness::device::event::{DeviceEvent as News, Uplink};

use crate::disk::{ActionMove, RowMove};
use crate::endpoints::DeliveryReception;
use crate::service::{DatagramEnd, LossReason, Reply};

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Census {
    pub(crate) heals: u64,
    /// DTLS handshakes that ended in a session, in full and abbreviated.
    pub(crate) sessions_made: u64,
    pub(crate) sessions_resumed: u64,
    /// Sessions that followed a device to another address.
    pub(crate) sessions_moved: u64,
    /// Sessions that the next process had.
    pub(crate) sessions_kept: u64,
    /// Pre-shared keys that the first use of another one ended, and how often somebody tried one.
    pub(crate) keys_ended: u64,
    pub(crate) ended_keys_tried: u64,
    pub(crate) crashes: u64,
    pub(crate) durable_without_receipt: u64,
    pub(crate) forgotten: u64,
    pub(crate) unsaved: u64,
    pub(crate) panics: u64,
    pub(crate) parked: u64,
    pub(crate) restored: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) pages: u64,
    pub(crate) passed_over_here: u64,
    pub(crate) passed_over_left: u64,
    pub(crate) unread: u64,
    pub(crate) swept: u64,
    pub(crate) added: u64,
    pub(crate) forwarded: u64,
    pub(crate) searched: u64,
    pub(crate) crowded: u64,
    pub(crate) route_hints: u64,
    /// Answers that only one machine can be meant by.
    pub(crate) addressed: u64,
    handled: u64,
    turned: u64,
    overloaded: u64,
    no_place: u64,
    abandoned: u64,
    removed: u64,
    accepted: u64,
    not_registered: u64,
    queue_full: u64,
    unserved: u64,
    retired: u64,
    renamed: u64,
    unknown: u64,
    cancelled: u64,
    cancelled_all: u64,
    not_pending: u64,
    not_scheduled: u64,
    begun: u64,
    begun_again: u64,
    succeeded: u64,
    refused: u64,
    unanswered: u64,
    unsent: u64,
    expired: u64,
    interrupted: u64,
    unfit: u64,
    registered: u64,
    updated: u64,
    registrations_lost: u64,
    asleep: u64,
    notified: u64,
    observed: u64,
    unobserved: u64,
    forgotten_by_device: u64,
    observed_again: u64,
    pub(crate) observations_lost: u64,
    pub(crate) batches: u64,
    pub(crate) destinations_made: u64,
    pub(crate) destinations_removed: u64,
    pub(crate) forwarders_restored: u64,
    pub(crate) forwarders_dropped: u64,
    pub(crate) restarts: u64,
    pub(crate) replays: u64,
    pub(crate) reporting_switched: u64,
    delivered: u64,
    pub(crate) sent: u64,
    pub(crate) rubbish_sent: u64,
    not_taken: u64,
    pub(crate) gone: u64,
    acknowledged: u64,
    sends_refused: u64,
    published_by_send: u64,
    published_by_report: u64,
    composed: u64,
    results_published: u64,
    bytes_unread: u64,
    destinations_failed: u64,
    destinations_restarted: u64,
    set_aside: u64,
    held: u64,
    dead_lettered: u64,
    requeued: u64,
    answers_lost: u64,
    /// Messages that a broker received.
    pub(crate) broker_received: u64,
    /// Connections that a broker ended instead of reading a message.
    pub(crate) broken_before_a_message: u64,
    no_address: u64,
    /// Data from addresses that do not belong to exactly one device.
    strangers: u64,
    thrown: u64,
    answered_plain: u64,
    received_bare: u64,
    data_refused: u64,
    published_bare: u64,
    published_plain: u64,
    /// Data of more than one block that was published.
    pub(crate) published_in_blocks: u64,
    /// Blocks received from devices, and sent to devices.
    pub(crate) blocks_up: u64,
    pub(crate) blocks_down: u64,
    /// Requests that were sent because of an uplink over another protocol.
    pub(crate) released_across: u64,
    /// Requests for devices that count as asleep because they were silent while awake.
    pub(crate) silent_sleepers: u64,
    /// Messages from an address of several devices.
    pub(crate) ambiguous: u64,
    pub(crate) departures_refused: u64,
    /// Requests that were given up after a part of their blocks was transferred.
    pub(crate) transfers_given_up: u64,
    pub(crate) campaigns: u64,
    pub(crate) campaigns_commanded: u64,
    pub(crate) campaigns_refused: u64,
    pub(crate) updates_stopped: u64,
    /// Blocks of images for devices that take them by push.
    pub(crate) image_parts_sent: u64,
    updates_begun: u64,
    updates_succeeded: u64,
    updates_failed: u64,
    updates_skipped: u64,
    campaigns_halted: u64,
    pub(crate) bootstraps_asked: u64,
    pub(crate) bootstraps_prepared_again: u64,
    bootstrapped: u64,
    bootstraps_failed: u64,
    /// Partitions that a node gave up, and nodes that were killed, or superseded while silent.
    pub(crate) partitions_given: u64,
    pub(crate) nodes_killed: u64,
    pub(crate) nodes_superseded: u64,
    /// Nodes that went on after they were silent.
    pub(crate) nodes_renewed: u64,
    /// Batches of an owner after which another one came.
    pub(crate) superseded: u64,
    /// What was lost at a silent node or one without arbiters, and between nodes.
    pub(crate) lost_at_nodes: u64,
    pub(crate) lost_between_nodes: u64,
    /// Messages of devices that may not be restored yet.
    pub(crate) not_restored: u64,
}

impl Census {
    pub(crate) fn count_reply(&mut self, reply: &Reply) {
        *match reply {
            Ok(DeviceReply::Submitted(Ok(_))) => &mut self.accepted,
            Ok(DeviceReply::Submitted(Err(refusal))) => match refusal {
                SubmitRefusal::NotRegistered => &mut self.not_registered,
                SubmitRefusal::NoAddress => &mut self.no_address,
                SubmitRefusal::QueueFull { .. } => &mut self.queue_full,
                SubmitRefusal::DataFull { .. }
                | SubmitRefusal::AddressForbidden(_)
                | SubmitRefusal::WakeUp(_) => return,
            },
            Ok(DeviceReply::Cancelled(Ok(_))) => &mut self.cancelled,
            Ok(DeviceReply::CancelledAll(_)) => &mut self.cancelled_all,
            Ok(DeviceReply::Cancelled(Err(CancelRefusal::NotPending))) => &mut self.not_pending,
            Ok(DeviceReply::Cancelled(Err(CancelRefusal::NotScheduled))) => &mut self.not_scheduled,
            Ok(DeviceReply::Retired) => &mut self.retired,
            Ok(DeviceReply::ProfileRead) => &mut self.renamed,
            Ok(DeviceReply::Inspected(_) | DeviceReply::UpdateTaken) => return,
            Err(Unserved::Unknown) => &mut self.unknown,
            Err(Unserved::Busy | Unserved::Failed) => &mut self.unserved,
        } += 1;
    }

    pub(crate) fn count_end(&mut self, end: DatagramEnd) {
        *match end {
            DatagramEnd::Handled { .. } => &mut self.handled,
            DatagramEnd::Turned(DropReason::Overloaded) => &mut self.overloaded,
            DatagramEnd::Turned(DropReason::ArbiterBusy) => &mut self.crowded,
            DatagramEnd::Turned(DropReason::UnknownAddress) => &mut self.strangers,
            DatagramEnd::Turned(DropReason::MailboxFull) => &mut self.no_place,
            DatagramEnd::Turned(DropReason::UnknownLocation) => &mut self.removed,
            DatagramEnd::Turned(DropReason::NotRestored) => &mut self.not_restored,
            DatagramEnd::Turned(_) => &mut self.turned,
            DatagramEnd::Lost { how, .. } => match how {
                LossReason::Abandoned => &mut self.abandoned,
                LossReason::Unknown => &mut self.removed,
            },
        } += 1;
    }

    pub(crate) fn count_outcome(&mut self, moved: &ActionMove, action: &Action) {
        let error = action
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.error.as_deref());
        let error = error.unwrap_or_default();
        *match (action.status, moved.from) {
            (Status::Scheduled, _) => return,
            (Status::InProgress, Some((Status::InProgress, 1..))) => &mut self.begun_again,
            (Status::InProgress, _) => &mut self.begun,
            (Status::Succeeded, _) => match action.request.task() {
                RequestKind::Operation(Operation::ObserveStart) => &mut self.observed,
                RequestKind::Operation(Operation::ObserveEnd) => &mut self.unobserved,
                RequestKind::Operation(
                    Operation::Read
                    | Operation::Write
                    | Operation::Execute
                    | Operation::Discover
                    | Operation::Create
                    | Operation::Delete
                    | Operation::WriteAttributes
                    | Operation::WriteInstance
                    | Operation::ReadComposite
                    | Operation::WriteComposite
                    | Operation::ObserveCompositeStart
                    | Operation::ObserveCompositeEnd,
                ) => &mut self.succeeded,
                RequestKind::Datagram => &mut self.thrown,
                RequestKind::Request(_) => &mut self.answered_plain,
            },
            (Status::Cancelled, _) => return,
            (Status::Failed, None) => &mut self.unfit,
            (Status::Failed, _) if error.starts_with("the request expired") => &mut self.expired,
            (Status::Failed, _) if error.contains("the service stopped") => &mut self.interrupted,
            (Status::Failed, _) if error.starts_with("the device answered") => &mut self.refused,
            (Status::Failed, _) if error.ends_with("before the request was sent") => {
                &mut self.unsent
            }
            (Status::Failed, _) => &mut self.unanswered,
        } += 1;
    }

    pub(crate) fn count_news(&mut self, event: &News) {
        *match event {
            News::Bootstrapped => &mut self.bootstrapped,
            News::Registered { .. } => &mut self.registered,
            News::Updated => &mut self.updated,
            News::RegistrationLost => &mut self.registrations_lost,
            News::Asleep { .. } => &mut self.asleep,
            News::Notified { .. } => &mut self.notified,
            News::AnsweredSeveral { .. } => &mut self.composed,
            News::Sent => &mut self.acknowledged,
            News::Refused {
                uplink: Uplink::Send,
                ..
            } => &mut self.sends_refused,
            News::HeardBare { .. } => &mut self.received_bare,
            News::Refused {
                uplink: Uplink::Data,
                ..
            } => &mut self.data_refused,
            News::Answered { .. }
            | News::AnsweredPlain { .. }
            | News::Awake
            | News::Deregistered
            | News::GaveUp(_)
            | News::LeftUnanswered { .. }
            | News::ObservationEnded { .. }
            | News::Rebooted
            | News::Refused { .. } => return,
        } += 1;
    }

    /// Counts which observations a device lost and which were established again.
    pub(crate) fn count_observations(&mut self, before: &[Observation], now: &[Observation]) {
        for before in before {
            let kept = now.iter().find(|kept| kept.target == before.target);
            match (before.state, kept.map(|kept| kept.state)) {
                (ObservationState::Held, Some(ObservationState::Owed)) => {
                    self.forgotten_by_device += 1;
                }
                (ObservationState::Owed, Some(ObservationState::Held)) => self.observed_again += 1,
                (_, _) => {}
            }
        }
    }

    /// Counts what became of a device of a campaign.
    pub(crate) fn count_row(&mut self, moved: &RowMove) {
        *match (moved.from, moved.to) {
            (Some(UpdateState::Pending), UpdateState::Transferring) => &mut self.updates_begun,
            (_, UpdateState::Succeeded) => &mut self.updates_succeeded,
            (_, UpdateState::Failed) => &mut self.updates_failed,
            (_, UpdateState::Skipped) => &mut self.updates_skipped,
            (_, _) => return,
        } += 1;
    }

    /// Counts what a batch publishes and logs.
    pub(crate) fn count_batch(&mut self, batch: &Batch) {
        for change in &batch.changes {
            if let Change::PutBootstrap { bootstrap, .. } = change {
                let has_failed = bootstrap.state == BootstrapState::Failed;
                self.bootstraps_failed += u64::from(has_failed);
            } else if let Change::AppendEvent(event) = change {
                self.count_event(&event.content);
            } else if let Change::AppendEntry(entry) = change {
                self.count_entry(&entry.message);
            } else if let Change::PutCampaign(campaign) = change {
                self.campaigns_halted += u64::from(campaign.state == CampaignState::Halted);
            } else if let Change::PutProgress(progress) = change {
                self.held += progress.retrying.len() as u64;
                self.dead_lettered += progress.dead_lettered.len() as u64;
                self.requeued += progress.requeued.len() as u64;
            }
        }
    }

    fn count_event(&mut self, happening: &EventContent) {
        *match happening {
            EventContent::Telemetry(telemetry) => match telemetry.cause {
                Cause::Send => &mut self.published_by_send,
                Cause::PassiveReport => &mut self.published_by_report,
                Cause::Observation(_) | Cause::CompositeObservation(_) | Cause::Action(_) => return,
            },
            EventContent::Data(data) => match data.source {
                Protocol::Udp => &mut self.published_bare,
                Protocol::Coap | Protocol::Lwm2m => &mut self.published_plain,
            },
            EventContent::ActionResult(_) => &mut self.results_published,
            EventContent::Lifecycle(_)
            | EventContent::Error(_)
            | EventContent::SmsReceived(_)
            | EventContent::SmsReport(_) => return,
        } += 1;
    }

    fn count_entry(&mut self, message: &str) {
        *match message {
            "Translator[UserPayloadError]" => &mut self.bytes_unread,
            "CloudIntegrator[IntegrationDisabled]" => &mut self.destinations_failed,
            "CloudIntegrator[IntegrationRestarted]" => &mut self.destinations_restarted,
            "CloudIntegrator[EventsDeadLettered]" => &mut self.set_aside,
            _ => return,
        } += 1;
    }

    pub(crate) fn count_reception(&mut self, reception: &DeliveryReception) {
        *match (reception.is_taken, reception.answer) {
            (true, Some(_)) => &mut self.delivered,
            (true, None) => &mut self.answers_lost,
            (false, _) => &mut self.not_taken,
        } += 1;
    }

    /// How many deliveries were accepted without the answer reaching the service.
    pub(crate) fn answers_lost(&self) -> u64 {
        self.answers_lost
    }

    /// Adds the counts of another world.
    pub(crate) fn add(&mut self, other: &Self) {
        let theirs = other.rows();
        for (own, (_, theirs)) in self.places().into_iter().zip(theirs) {
            *own += theirs;
        }
    }

    /// The names of the counters that are zero.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let rows = self.rows().into_iter();
        rows.filter(|(_, count)| *count == 0)
            .map(|(name, _)| name)
            .collect()
    }
}

macro_rules! rows {
    ($($name:ident),* $(,)?) => {
        impl Census {
            fn rows(&self) -> Vec<(&'static str, u64)> {
                // A counter that is missing here does not compile.
                let Self { $($name),* } = *self;
                vec![$((stringify!($name), $name)),*]
            }

            fn places(&mut self) -> Vec<&mut u64> {
                vec![$(&mut self.$name),*]
            }
        }
    };
}

rows! {
    broker_received, broken_before_a_message,
    heals, sessions_made, sessions_resumed, sessions_moved, sessions_kept, keys_ended,
    ended_keys_tried, crashes,
    durable_without_receipt, forgotten, unsaved, panics, parked, restored, lost,
    repeated, pages, passed_over_here, passed_over_left, unread, swept, added, forwarded, searched,
    crowded, route_hints, addressed, handled, turned, overloaded, no_place, abandoned, removed,
    retired, renamed, unknown, accepted, not_registered, queue_full, unserved, cancelled,
    cancelled_all, not_pending, not_scheduled, begun, begun_again, succeeded, refused, unanswered,
    unsent, expired, interrupted, unfit, registered, updated, registrations_lost, asleep, notified,
    observed, unobserved, forgotten_by_device, observed_again, observations_lost, batches,
    destinations_made,
    destinations_removed, forwarders_restored, forwarders_dropped, restarts, replays,
    reporting_switched, sent, rubbish_sent, delivered, not_taken, answers_lost, gone, acknowledged,
    sends_refused, published_by_send, published_by_report, composed, results_published,
    bytes_unread, destinations_failed, destinations_restarted, set_aside, held, dead_lettered,
    requeued, no_address, strangers, thrown, answered_plain, received_bare, data_refused,
    published_bare, published_plain, published_in_blocks, blocks_up, blocks_down, released_across,
    silent_sleepers, ambiguous, departures_refused, transfers_given_up, campaigns,
    campaigns_commanded, campaigns_refused, campaigns_halted, updates_stopped, updates_begun,
    updates_succeeded, updates_failed, updates_skipped, image_parts_sent, bootstraps_asked,
    bootstraps_prepared_again, bootstrapped, bootstraps_failed, partitions_given, nodes_killed,
    nodes_superseded, nodes_renewed, superseded, lost_at_nodes, lost_between_nodes, not_restored,
}
