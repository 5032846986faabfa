//! What must always hold: a judge that sees every datagram, every receipt and every reply, and
//! knows the disk.
//!
//! Each law is a function in a file by its subject. This file says which laws are checked when.

mod attempts;
mod books;
pub(crate) mod bootstrapping;
pub(crate) mod campaigns;
mod deciding;
mod deeds;
pub(crate) mod delivering;
mod leaving;
pub(crate) mod memory;
mod observing;
mod outcomes;
pub(crate) mod ownership;
mod passive;
mod plain;
mod presence;
mod promises;
mod reaching;
pub(crate) mod rest;
mod routing;
pub(crate) mod secrecy;
mod sending;
mod speech;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use engine::action::{Protocol, Status};
use engine::arbiter::input::{DeviceCommand, DeviceReply};
use engine::change::{Batch, Change};
use engine::device::record::RestoredDevice;
use engine::ids::ActionId;
use engine::peer::{Peer, Transport};
use engine::rules::Rules;
use engine::setting::SettingState;
use engine::supervision::Unserved;

use crate::disk::{ActionMove, BatchSummary, Durable, SweptAction, plain};
use crate::service::{Reply, Saves, StepInput};
use crate::wire::{AttemptKey, RequestPurpose, SentRequest};
use bootstrapping::BootstrapRecords;
use campaigns::CampaignRecords;
use delivering::Ledgers;
use observing::SentNotifications;
use plain::SentData;
use reaching::HearingNodes;
use routing::DatagramRouting;
use secrecy::SealedMessages;
use sending::SentSamples;

/// A broken law.
#[derive(Debug)]
pub(crate) struct Breach {
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

pub(crate) type Verdict = Result<(), Breach>;

/// Everything the laws need to know that is not on the disk.
pub(crate) struct LawChecker {
    rules: Rules,
    /// Where each datagram is and where it must end.
    pub(crate) routing: DatagramRouting,
    /// Steps with changes that are not durable.
    undurable: BTreeSet<u64>,
    /// What is known of every request that was ever on the disk.
    known: BTreeMap<ActionId, KnownAction>,
    attempts: HashMap<AttemptKey, BegunExchange>,
    /// How many devices and second sockets there are.
    members: usize,
    /// What each device did for an attempt. A device that took over the address of another may
    /// receive the requests to the other: without DTLS they cannot be distinguished.
    deeds: HashMap<(usize, AttemptKey), PerformedActions>,
    /// The exchange with each device that has not ended, as far as the network shows.
    open: Vec<Option<OpenExchange>>,
    /// The request of each device that is about to be sent as a bare datagram, and the number of
    /// uplinks at that decision.
    throwing: Vec<Option<(ActionId, u64)>>,
    /// Whether each device has a machine.
    is_alive: Vec<bool>,
    /// Whether each device is still to be restored after a crash.
    is_crashed: Vec<bool>,
    /// Whether each device was last heard over DTLS, and had no uplink since it was restored: its
    /// machine knows no session.
    awaits_session: Vec<bool>,
    /// The uplinks of each device.
    uplinks: Vec<UplinkRecord>,
    /// The requests of a device per status, counted from the moves.
    recount: Vec<[i64; Status::ALL.len()]>,
    /// How many requests of a device ever failed, including those that were deleted.
    failed: Vec<i64>,
    /// The notifications that devices sent.
    pub(crate) sent_notifications: SentNotifications,
    /// The answered messages, by peer.
    answered: HashSet<(Peer, AttemptKey)>,
    /// The samples that devices sent in Sends.
    pub(crate) sent_samples: SentSamples,
    /// Through which nodes the messages of peers were heard.
    pub(crate) heard_through: HearingNodes,
    /// What was sealed for devices and by them.
    pub(crate) sealed: SealedMessages,
    /// The data that devices sent over plain CoAP and UDP.
    pub(crate) sent_data: SentData,
    /// The events that destinations are owed.
    pub(crate) ledgers: Ledgers,
    /// What is known of campaigns.
    pub(crate) campaigns: CampaignRecords,
    /// What is known of bootstraps.
    pub(crate) bootstraps: BootstrapRecords,
}

/// What is known of a request.
#[derive(Default)]
struct KnownAction {
    who: usize,
    /// The attempts that were sent, by their keys on the network.
    sent: Vec<AttemptKey>,
    /// The messages sent for the same attempts in other formats or further blocks.
    continued: Vec<AttemptKey>,
    /// How often it was sent, or was to be sent, as a bare datagram.
    thrown: usize,
    /// Whether a socket accepted it.
    is_taken: bool,
    /// Whether the last attempt takes several messages.
    is_in_blocks: bool,
    /// Whether a caller received its 202.
    is_promised: bool,
    /// Whether no session of the device was known when it was created: then it waits for an uplink.
    is_without_session: bool,
    /// The number of uplinks of the device when its last attempt began.
    uplinks_at_attempt: Option<u64>,
}

/// Why a device is restored.
#[derive(Clone, Copy, Debug)]
enum RestoreCause {
    /// The service crashed: the messages of the events that were stored shortly before are known.
    Crash,
    Other,
}

/// What was received from a device.
#[derive(Default)]
struct UplinkRecord {
    /// When its machine was created.
    machine_since_ms: i64,
    heard_at_ms: i64,
    /// When its last accepted registration, update or Send was received.
    accepted_at_ms: i64,
    uplinks: u64,
    /// Whether it may have been silent since.
    may_be_silent: bool,
    /// The last answer that contained a location.
    last_reply: Option<RegistrationReply>,
    /// The last location that was answered, however long ago.
    location: Vec<String>,
}

/// An answer to a registration.
struct RegistrationReply {
    to: Peer,
    key: AttemptKey,
    location: Vec<String>,
    at_ms: i64,
    /// How many datagrams the device's machine handled since.
    received_since: usize,
}

/// An exchange as it was decided.
#[derive(Clone, Copy)]
struct BegunExchange {
    purpose: RequestPurpose,
    /// Whether it repeats the request of the exchange before in another format.
    again: Again,
    /// When the exchange began to wait.
    at_ms: i64,
    /// The number of uplinks of the device at that time.
    uplinks: u64,
}

/// How an exchange follows the one before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Again {
    No,
    InAnotherFormat,
    InBlocks,
}

/// What a device did for a request.
#[derive(Default)]
struct PerformedActions {
    /// The boot in which it did so last.
    boot: u32,
    /// The payload read or written each time, or the payloads of a plain request and its response.
    payloads: Vec<Vec<u8>>,
}

/// An exchange as the network shows it.
struct OpenExchange {
    attempt: AttemptKey,
    begun_at_ms: i64,
    is_answered: bool,
    /// When a message without an answer acknowledged it.
    acknowledged_at_ms: Option<i64>,
    /// Whether the answer has further blocks that were not requested yet.
    continues: bool,
    over: Protocol,
    /// Whether it continues what another exchange began.
    is_part: bool,
}

/// A step of a machine.
pub(crate) struct Decision {
    pub(crate) at_ms: i64,
    pub(crate) who: usize,
    pub(crate) took: StepInput,
    pub(crate) step: u64,
    pub(crate) saves: Saves,
    /// Whether passive reporting is on.
    pub(crate) reporting: SettingState,
    pub(crate) sends: Vec<SentRequest>,
    /// The caller's request that is sent as a bare datagram.
    pub(crate) throws: Option<ActionId>,
}

/// A datagram that the service sends.
pub(crate) struct SentDatagram<'a> {
    pub(crate) at_ms: i64,
    pub(crate) to: Peer,
    pub(crate) step: Option<u64>,
    pub(crate) who: Option<usize>,
    /// Whether it is a request to a device that has read its current profile.
    pub(crate) is_asked: bool,
    pub(crate) datagram: &'a [u8],
}

impl LawChecker {
    pub(crate) fn new(rules: Rules, arbiters: usize, (devices, members): (usize, usize)) -> Self {
        Self {
            rules,
            members,
            routing: DatagramRouting::new(arbiters, devices),
            undurable: BTreeSet::new(),
            known: BTreeMap::new(),
            attempts: HashMap::new(),
            deeds: HashMap::new(),
            open: (0..devices).map(|_| None).collect(),
            throwing: vec![None; devices],
            is_alive: vec![false; devices],
            is_crashed: vec![false; devices],
            awaits_session: vec![false; devices],
            uplinks: (0..devices).map(|_| UplinkRecord::default()).collect(),
            recount: vec![[0; Status::ALL.len()]; devices],
            failed: vec![0; devices],
            sent_notifications: SentNotifications::default(),
            answered: HashSet::new(),
            sent_samples: SentSamples::of(devices),
            heard_through: HearingNodes::default(),
            sealed: SealedMessages::of(devices),
            sent_data: SentData::of(devices),
            ledgers: Ledgers::default(),
            campaigns: CampaignRecords::default(),
            bootstraps: BootstrapRecords::default(),
        }
    }

    /// A caller receives a reply.
    pub(crate) fn replied(
        &mut self,
        who: usize,
        question: &DeviceCommand,
        step: Option<u64>,
        reply: &Reply,
        durable: &Durable,
    ) -> Verdict {
        speech::nothing_is_sent_before_it_is_saved(self, step)?;
        match (reply, question) {
            (Ok(DeviceReply::Submitted(Ok(accepted))), _) => {
                promises::a_202_is_sent_after_the_commit(who, accepted.id, durable)?;
                self.known.entry(accepted.id).or_default().is_promised = true;
                Ok(())
            }
            (Ok(DeviceReply::Cancelled(Ok(cancelled))), _) => {
                promises::a_cancellation_is_answered_after_the_commit(who, cancelled.id, durable)
            }
            (Ok(DeviceReply::CancelledAll(cancelled)), _) => {
                cancelled.iter().try_for_each(|cancelled| {
                    promises::a_cancellation_is_answered_after_the_commit(
                        who,
                        cancelled.id,
                        durable,
                    )
                })
            }
            (Ok(DeviceReply::Retired) | Err(Unserved::Unknown), _) => {
                promises::a_removed_device_is_gone(who, durable)
            }
            (Ok(DeviceReply::Submitted(Err(_)) | DeviceReply::Cancelled(Err(_))), _)
            | (
                Ok(DeviceReply::ProfileRead | DeviceReply::Inspected(_) | DeviceReply::UpdateTaken),
                _,
            )
            | (Err(Unserved::Busy | Unserved::Failed), _) => Ok(()),
        }
    }

    /// A step is durable.
    pub(crate) fn became_durable(
        &mut self,
        at_ms: i64,
        step: u64,
        who: usize,
        done: &BatchSummary,
        durable: &Durable,
    ) -> Verdict {
        self.undurable.remove(&step);
        for moved in &done.moved {
            self.action_moved(at_ms, moved, durable)?;
        }
        if let Some(who) = done.removed {
            self.machine_is_gone(who);
            promises::a_removed_device_is_gone(who, durable)?;
            promises::a_202_survives_a_crash(self, durable)?;
            books::a_failure_is_logged_once(self, who, durable)?;
            return books::counters_equal_a_recount(self, who, durable);
        }
        if durable.record(who).registration.is_none() {
            let attempts = &self.attempts;
            let purpose = |open: &OpenExchange| attempts.get(&open.attempt).map(|it| it.purpose);
            self.open[who].take_if(|open| {
                open.over == Protocol::Lwm2m && purpose(open) != Some(RequestPurpose::Bootstrap)
            });
        }
        self.sent_data
            .became_durable(step, (who, &self.routing), &done.data, durable)?;
        observing::no_observation_ends_silently(who, done, durable)?;
        observing::a_registration_or_deregistration_loses_observations(who, done, durable)?;
        observing::a_history_ends_with_the_state_of_the_registration(who, durable)?;
        presence::each_lifecycle_event_is_published_once(who, durable)?;
        if let Some(state) = done.bootstrap {
            self.bootstraps.became_durable(who, state);
        }
        bootstrapping::a_finished_bootstrap_is_published_once(
            &self.bootstraps,
            who,
            done,
            durable,
        )?;
        if !done.moved.is_empty() {
            books::counters_equal_a_recount(self, who, durable)?;
            books::queues_keep_their_bounds(self, who, durable)?;
            books::a_failure_is_logged_once(self, who, durable)?;
        }
        presence::an_expired_request_fails_in_time(self, at_ms, who, durable)?;
        books::first_contact_is_logged_exactly_once(who, durable)
    }

    fn action_moved(&mut self, at_ms: i64, moved: &ActionMove, durable: &Durable) -> Verdict {
        let ActionMove {
            who,
            action: id,
            from,
        } = *moved;
        let action = durable.action(who, id).expect("what moved is there");
        let known = self.known.entry(id).or_default();
        known.who = who;
        known.is_without_session |= from.is_none() && self.awaits_session[who];
        if let Some((before, _)) = from {
            self.recount[who][before as usize] -= 1;
        }
        self.recount[who][action.status as usize] += 1;
        self.failed[who] += i64::from(action.status == Status::Failed);
        promises::a_final_status_never_changes(moved, action)?;
        promises::a_status_follows_the_table(moved, action)?;
        promises::a_cancelled_request_was_never_sent(self, action)?;
        attempts::an_attempt_begins_in_time(at_ms, moved, action)?;
        attempts::the_oldest_request_goes_first(self, moved, action, durable)?;
        attempts::a_timeline_has_every_attempt(action)?;
        observing::observations_are_those_that_were_requested(who, action, durable)?;
        outcomes::a_success_is_what_the_device_did(self, action)?;
        outcomes::a_failure_says_why(action)
    }

    /// Requests were removed because of their age.
    pub(crate) fn swept(&mut self, swept: &[SweptAction], durable: &Durable) -> Verdict {
        for swept in swept {
            self.known.remove(&swept.action);
            self.recount[swept.who][swept.status as usize] -= 1;
        }
        swept
            .iter()
            .try_for_each(|swept| books::counters_equal_a_recount(self, swept.who, durable))
    }

    /// Whether a request takes several messages.
    pub(crate) fn is_in_blocks(&self, id: ActionId) -> bool {
        self.known.get(&id).is_some_and(|known| known.is_in_blocks)
    }

    /// When a device was last heard.
    pub(crate) fn heard_at_ms(&self, who: usize) -> i64 {
        self.uplinks[who].heard_at_ms
    }

    /// In how many attempts a request was sent.
    pub(crate) fn attempts_sent(&self, id: ActionId) -> usize {
        let known = self.known.get(&id);
        known.map_or(0, |known| known.sent.len() + known.thrown)
    }

    /// A step has changes that are not durable yet.
    pub(crate) fn will_be_saved(&mut self, step: u64) {
        self.undurable.insert(step);
    }

    /// The effects of a destination's step are performed.
    pub(crate) fn performs_effects(&self, step: Option<u64>) -> Verdict {
        speech::nothing_is_sent_before_it_is_saved(self, step)
    }

    /// A batch is about to be applied.
    pub(crate) fn will_write(&mut self, batch: &Batch, durable: &Durable) -> Verdict {
        for change in &batch.changes {
            if let Change::PutProgress(progress) = change {
                delivering::passed_events_are_settled(&self.ledgers, progress, durable)?;
                self.ledgers.requeued(progress);
            }
            if let Change::PutCampaign(campaign) = change {
                CampaignRecords::will_write(campaign, durable)?;
            }
            if let Change::RemoveDestination { destination, .. } = change {
                self.ledgers.removed(*destination);
            }
        }
        Ok(())
    }

    /// A step will not become durable any more.
    pub(crate) fn forgotten(&mut self, step: Option<u64>) {
        if let Some(step) = step {
            self.undurable.remove(&step);
            self.sent_data.forgotten(step);
        }
    }

    /// The machine of a device is gone, and its exchange with it.
    pub(crate) fn machine_is_gone(&mut self, who: usize) {
        self.open[who] = None;
        self.uplinks[who].last_reply = None;
    }

    /// A machine is gone from its arbiter, and with it everything it remembered.
    pub(crate) fn moved_out(&mut self, who: usize, registered: Option<Peer>) {
        self.routing.abandoned(who, registered);
        self.is_alive[who] = false;
        self.uplinks[who].last_reply = None;
    }

    /// A device is restored from this data.
    pub(crate) fn restored(
        &mut self,
        at_ms: i64,
        who: usize,
        restored: &RestoredDevice,
        durable: &Durable,
    ) -> Verdict {
        self.uplinks[who].machine_since_ms = at_ms;
        let cause = match std::mem::take(&mut self.is_crashed[who]) {
            true => RestoreCause::Crash,
            false => RestoreCause::Other,
        };
        self.sent_samples.restored(who, cause);
        self.sent_data.restored(who, cause);
        let registration = restored.record.registration.as_ref();
        self.awaits_session[who] = restored
            .record
            .peer
            .is_some_and(|peer| peer.transport == Transport::Coaps);
        // A device with DTLS is reached over its next session.
        let peer = restored.record.peer.map(|peer| match peer.transport {
            Transport::Coaps => peer.of_device(durable.key(who)),
            Transport::Coap | Transport::Udp => peer,
        });
        self.routing.restored(who, registration.and(peer));
        ownership::a_device_has_one_machine(self, who)?;
        ownership::devices_are_restored_from_current_data(who, restored, durable)?;
        let pending: Vec<ActionId> = restored.pending.iter().map(|action| action.id).collect();
        promises::a_restored_device_knows_what_it_owes(who, &pending, durable)
    }

    /// The arbiter of a device has ended, and another one will restore the device.
    pub(crate) fn arbiter_ended(&mut self, who: usize) {
        self.machine_is_gone(who);
        self.routing.left(who);
        self.bootstraps.ended(who);
        self.is_alive[who] = false;
        self.is_crashed[who] = true;
    }

    /// What was promised is durable, whichever arbiter has ended.
    pub(crate) fn nothing_is_forgotten(&self, durable: &Durable) -> Verdict {
        promises::a_202_survives_a_crash(self, durable)?;
        books::everything_equals_a_recount(durable)
    }

    /// The service crashed.
    pub(crate) fn crashed(&mut self, durable: &Durable) -> Verdict {
        self.undurable.clear();
        self.sent_data.crashed();
        self.routing.crashed();
        (0..self.is_alive.len()).for_each(|who| self.arbiter_ended(who));
        self.nothing_is_forgotten(durable)
    }
}

/// Returns a breach of the law unless it holds.
fn hold(law: &'static str, holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds {
        return Ok(());
    }
    Err(Breach { law, what: what() })
}
