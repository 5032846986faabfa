//! What must hold, whatever happens: a judge who sees every datagram, every receipt and every
//! promise, and knows the disk.
//!
//! Each law is a function of its own in a file by its subject; here is who is asked when.

mod attempts;
mod books;
mod deciding;
mod deeds;
pub(crate) mod delivering;
mod leaving;
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
mod sending;
mod speech;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use engine::action::{Protocol, Status};
use engine::arbiter::input::{DeviceCommand, DeviceReply};
use engine::change::{Batch, Change};
use engine::device::record::RestoredDevice;
use engine::ids::ActionId;
use engine::peer::Peer;
use engine::rules::Rules;
use engine::setting::SettingState;
use engine::supervision::Unserved;

use crate::disk::{ActionMove, BatchSummary, Durable, SweptAction, plain};
use crate::service::{Reply, Saves, StepInput};
use crate::wire::{AttemptKey, RequestPurpose, SentRequest};
use delivering::Ledgers;
use observing::SentNotifications;
use plain::SentData;
use routing::DatagramRouting;
use sending::SentSamples;

/// A law that was broken.
#[derive(Debug)]
pub(crate) struct Breach {
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

pub(crate) type Verdict = Result<(), Breach>;

/// Everything the laws need to know that is not on the disk.
pub(crate) struct LawChecker {
    rules: Rules,
    /// What becomes of each datagram.
    pub(crate) routing: DatagramRouting,
    /// Steps that change something and are not durable.
    undurable: BTreeSet<u64>,
    /// What is known of every request that was ever on the disk.
    known: BTreeMap<ActionId, KnownAction>,
    attempts: HashMap<AttemptKey, BegunExchange>,
    /// How many devices and sockets of theirs there are.
    members: usize,
    /// What each device did for an attempt. One that took over another's address may be asked
    /// what the other was to be asked: without DTLS nobody can tell.
    deeds: HashMap<(usize, AttemptKey), PerformedActions>,
    /// The exchange with each device that has not ended as far as the wire shows.
    open: Vec<Option<OpenExchange>>,
    /// Which request of each device is about to leave as a bare datagram, and how many uplinks were
    /// heard when that was decided.
    throwing: Vec<Option<(ActionId, u64)>>,
    /// Whether there is a machine of each device.
    is_alive: Vec<bool>,
    /// What was heard of each device.
    uplinks: Vec<UplinkRecord>,
    /// How many requests of each status a device has, by counting them.
    recount: Vec<[i64; Status::ALL.len()]>,
    /// How many requests of a device ever failed, also those that are not kept any more.
    failed: Vec<i64>,
    /// What devices said of what is observed.
    pub(crate) tellings: SentNotifications,
    /// What was answered, and where.
    answered: HashSet<(Peer, AttemptKey)>,
    /// What devices sent unasked.
    pub(crate) sendings: SentSamples,
    /// What devices posted and threw.
    pub(crate) datas: SentData,
    /// What destinations are owed.
    pub(crate) ledgers: Ledgers,
}

/// What is known of a request.
#[derive(Default)]
struct KnownAction {
    who: usize,
    /// The attempts that left, by their names on the wire.
    sent: Vec<AttemptKey>,
    /// What left for the same attempts in other formats, or in further blocks.
    otherwise: Vec<AttemptKey>,
    /// How often it left as a bare datagram, or was to.
    thrown: usize,
    /// Whether a socket took it.
    is_taken: bool,
    /// Whether the last attempt takes several messages.
    is_in_blocks: bool,
    /// Whether a caller was told that it is accepted.
    is_promised: bool,
    /// How many uplinks of the device were heard when its last attempt began.
    uplinks_at_attempt: Option<u64>,
}

/// What was heard of a device.
#[derive(Default)]
struct UplinkRecord {
    /// When its machine came into being.
    machine_since_ms: i64,
    heard_at_ms: i64,
    /// When it last said that it is there and was taken at its word.
    accepted_at_ms: i64,
    uplinks: u64,
    /// Whether it may have been silent since.
    may_be_silent: bool,
    /// The last answer that told it a location.
    told: Option<RegistrationReply>,
    /// The last location it was told, however long ago.
    location: Vec<String>,
}

/// An answer to a registration.
struct RegistrationReply {
    to: Peer,
    key: AttemptKey,
    location: Vec<String>,
    at_ms: i64,
    /// How many datagrams the device's machine took since.
    heard_since: usize,
}

/// An exchange as it was decided.
#[derive(Clone, Copy)]
struct BegunExchange {
    purpose: RequestPurpose,
    /// Whether it asks for the same as the exchange before in another format.
    again: Again,
    /// From when on its exchange waits.
    at_ms: i64,
    /// How many uplinks of the device were heard by then.
    uplinks: u64,
}

/// How an exchange follows the one before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Again {
    No,
    InAnotherFormat,
    InBlocks,
}

/// What a device did when it was asked.
#[derive(Default)]
struct PerformedActions {
    /// In which of its lives it did so last.
    boot: u32,
    /// What was read or written each time, and what came with a plain request.
    payloads: Vec<Vec<u8>>,
}

/// An exchange as the wire shows it.
struct OpenExchange {
    attempt: AttemptKey,
    begun_at_ms: i64,
    is_answered: bool,
    /// Whether the answer goes on in further blocks, which are not asked for yet.
    goes_on: bool,
    over: Protocol,
    /// Whether it goes on with what another began.
    is_part: bool,
}

/// A step that a machine took.
pub(crate) struct Decision {
    pub(crate) at_ms: i64,
    pub(crate) who: usize,
    pub(crate) took: StepInput,
    pub(crate) step: u64,
    pub(crate) saves: Saves,
    /// Whether devices are read unasked.
    pub(crate) reporting: SettingState,
    pub(crate) sends: Vec<SentRequest>,
    /// Which request of a caller leaves as a bare datagram.
    pub(crate) throws: Option<ActionId>,
}

/// A datagram that leaves the service.
pub(crate) struct SentDatagram<'a> {
    pub(crate) at_ms: i64,
    pub(crate) to: Peer,
    pub(crate) step: Option<u64>,
    pub(crate) who: Option<usize>,
    /// Whether it asks something, and the device was told where it is.
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
            uplinks: (0..devices).map(|_| UplinkRecord::default()).collect(),
            recount: vec![[0; Status::ALL.len()]; devices],
            failed: vec![0; devices],
            tellings: SentNotifications::default(),
            answered: HashSet::new(),
            sendings: SentSamples::of(devices),
            datas: SentData::of(devices),
            ledgers: Ledgers::default(),
        }
    }

    /// A caller is told something.
    pub(crate) fn replied(
        &mut self,
        who: usize,
        question: &DeviceCommand,
        step: Option<u64>,
        reply: &Reply,
        durable: &Durable,
    ) -> Verdict {
        speech::nothing_is_said_before_it_is_saved(self, step)?;
        match (reply, question) {
            (Ok(DeviceReply::Submitted(Ok(accepted))), _) => {
                promises::a_202_is_told_when_it_is_saved(who, accepted.id, durable)?;
                self.known.entry(accepted.id).or_default().is_promised = true;
                Ok(())
            }
            (Ok(DeviceReply::Cancelled(Ok(cancelled))), _) => {
                promises::a_cancel_is_told_when_it_is_saved(who, cancelled.id, durable)
            }
            (Ok(DeviceReply::CancelledAll(cancelled)), _) => {
                cancelled.iter().try_for_each(|cancelled| {
                    promises::a_cancel_is_told_when_it_is_saved(who, cancelled.id, durable)
                })
            }
            (Ok(DeviceReply::Retired) | Err(Unserved::Unknown), _) => {
                promises::a_removed_device_is_gone(who, durable)
            }
            (Ok(DeviceReply::Submitted(Err(_)) | DeviceReply::Cancelled(Err(_))), _)
            | (Ok(DeviceReply::ProfileRead | DeviceReply::Inspected(_)), _)
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
        if let Some(who) = done.removed {
            self.removed(who);
            return books::counters_equal_a_recount(self, who, durable);
        }
        for moved in &done.moved {
            self.action_moved(at_ms, moved, durable)?;
        }
        if durable.record(who).registration.is_none() {
            self.open[who].take_if(|open| open.over == Protocol::Lwm2m);
        }
        self.datas
            .told(step, (who, &self.routing), &done.data, durable)?;
        observing::nothing_is_forgotten_in_silence(who, done, durable)?;
        observing::who_comes_or_goes_owes_what_is_observed(who, done, durable)?;
        observing::a_history_says_whether_the_device_is_there(who, durable)?;
        if !done.moved.is_empty() {
            books::counters_equal_a_recount(self, who, durable)?;
            books::queues_keep_their_bounds(self, who, durable)?;
            books::a_failure_is_logged_once(self, who, durable)?;
        }
        presence::what_expired_fails_in_time(self, at_ms, who, durable)?;
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
        if let Some((before, _)) = from {
            self.recount[who][before as usize] -= 1;
        }
        self.recount[who][action.status as usize] += 1;
        self.failed[who] += i64::from(action.status == Status::Failed);
        promises::a_final_status_never_changes(moved, action)?;
        promises::a_status_follows_the_table(moved, action)?;
        promises::what_was_cancelled_had_not_left(self, action)?;
        attempts::an_attempt_begins_in_time(at_ms, moved, action)?;
        attempts::the_oldest_request_goes_first(self, moved, action, durable)?;
        attempts::a_timeline_tells_every_attempt(action)?;
        observing::what_is_observed_is_what_was_asked(who, action, durable)?;
        outcomes::a_success_is_what_the_device_did(self, action)?;
        outcomes::a_failure_says_why(action)
    }

    /// A device is gone with all that belonged to it.
    fn removed(&mut self, who: usize) {
        self.known.retain(|_, known| known.who != who);
        self.recount[who] = [0; Status::ALL.len()];
        self.failed[who] = 0;
        self.machine_is_gone(who);
    }

    /// Requests were removed for their age.
    pub(crate) fn swept(&mut self, swept: &[SweptAction], durable: &Durable) -> Verdict {
        for swept in swept {
            self.known.remove(&swept.action);
            self.recount[swept.who][swept.status as usize] -= 1;
        }
        swept
            .iter()
            .try_for_each(|swept| books::counters_equal_a_recount(self, swept.who, durable))
    }

    /// Whether what a request asks takes several messages.
    pub(crate) fn is_in_blocks(&self, id: ActionId) -> bool {
        self.known.get(&id).is_some_and(|known| known.is_in_blocks)
    }

    /// When a device was heard last.
    pub(crate) fn heard_at_ms(&self, who: usize) -> i64 {
        self.uplinks[who].heard_at_ms
    }

    /// In how many attempts a request has left.
    pub(crate) fn attempts_sent(&self, id: ActionId) -> usize {
        let known = self.known.get(&id);
        known.map_or(0, |known| known.sent.len() + known.thrown)
    }

    /// A step changes something, which is not durable yet.
    pub(crate) fn will_be_saved(&mut self, step: u64) {
        self.undurable.insert(step);
    }

    /// What a step of a destination wants is done.
    pub(crate) fn runs_errands(&self, step: Option<u64>) -> Verdict {
        speech::nothing_is_said_before_it_is_saved(self, step)
    }

    /// A batch is about to be done.
    pub(crate) fn will_write(&mut self, batch: &Batch, durable: &Durable) -> Verdict {
        for change in &batch.changes {
            if let Change::PutProgress(progress) = change {
                delivering::what_is_passed_is_settled(&self.ledgers, progress, durable)?;
                self.ledgers.revived(progress);
            }
            if let Change::RemoveDestination { destination, .. } = change {
                self.ledgers.removed(*destination);
            }
        }
        Ok(())
    }

    /// Nobody waits any more for a step to be durable.
    pub(crate) fn forgotten(&mut self, step: Option<u64>) {
        if let Some(step) = step {
            self.undurable.remove(&step);
            self.datas.forgotten(step);
        }
    }

    /// The machine of a device is gone, and its exchange with it.
    pub(crate) fn machine_is_gone(&mut self, who: usize) {
        self.open[who] = None;
        self.uplinks[who].told = None;
    }

    /// The machine of a device is no more, wherever it was, and with it what it remembered.
    pub(crate) fn moved_out(&mut self, who: usize, registered: Option<Peer>) {
        self.routing.abandoned(who, registered);
        self.is_alive[who] = false;
        self.uplinks[who].told = None;
    }

    /// A device is brought back from this.
    pub(crate) fn restored(
        &mut self,
        at_ms: i64,
        who: usize,
        restored: &RestoredDevice,
        durable: &Durable,
    ) -> Verdict {
        self.uplinks[who].machine_since_ms = at_ms;
        self.sendings.restored(who);
        self.datas.restored(who);
        let registration = restored.record.registration.as_ref();
        self.routing
            .restored(who, registration.and(restored.record.peer));
        ownership::a_device_has_one_machine(self, who)?;
        ownership::nobody_comes_back_as_he_was(who, restored, durable)?;
        let pending: Vec<ActionId> = restored.pending.iter().map(|action| action.id).collect();
        promises::a_restored_device_knows_what_it_owes(who, &pending, durable)
    }

    /// The service crashed.
    pub(crate) fn crashed(&mut self, durable: &Durable) -> Verdict {
        self.undurable.clear();
        self.datas.crashed();
        self.routing.crashed();
        self.is_alive.fill(false);
        self.open.iter_mut().for_each(|open| *open = None);
        self.uplinks.iter_mut().for_each(|ear| ear.told = None);
        promises::a_202_survives_a_crash(self, durable)?;
        books::everything_equals_a_recount(durable)
    }
}

/// Says that a law is broken, unless it holds.
fn hold(law: &'static str, holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds {
        return Ok(());
    }
    Err(Breach { law, what: what() })
}
