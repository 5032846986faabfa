//! What must hold, whatever happens: a judge who sees every datagram, every receipt and every
//! promise, and knows the disk.
//!
//! Each law is a function of its own in a file by its subject; here is who is asked when.

mod attempts;
mod books;
pub(crate) mod delivering;
pub(crate) mod homes;
mod leaving;
mod observing;
mod outcomes;
mod passive;
mod presence;
mod promises;
pub(crate) mod rest;
mod sending;
mod speech;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use engine::action::Status;
use engine::change::{Batch, Change};
use engine::device::Rules;
use engine::device::record::Restored;
use engine::ids::ActionId;
use engine::peer::Peer;
use engine::setting::SettingState;
use harness::device::performed::Performed;

use crate::disk::{Done, Durable, Moved, Swept, plain};
use crate::service::{Occasion, Question, Reply, Saves};
use crate::wire::{AttemptKey, FormatFound, Met, Purpose};
use delivering::Ledgers;
use observing::Tellings;
use sending::Sendings;
use ways::Ways;

/// A law that was broken.
#[derive(Debug)]
pub(crate) struct Breach {
    pub(crate) law: &'static str,
    pub(crate) what: String,
}

pub(crate) type Verdict = Result<(), Breach>;

/// Everything the laws need to know that is not on the disk.
pub(crate) struct Judge {
    rules: Rules,
    /// What becomes of each datagram.
    pub(crate) ways: Ways,
    /// Steps that change something and are not durable.
    undurable: BTreeSet<u64>,
    /// What is known of every request that was ever on the disk.
    known: BTreeMap<ActionId, Known>,
    attempts: HashMap<AttemptKey, Begun>,
    /// What each device did for an attempt. One that took over another's address may be asked
    /// what the other was to be asked: without DTLS nobody can tell.
    deeds: HashMap<(usize, AttemptKey), Deeds>,
    /// The exchange with each device that has not ended as far as the wire shows.
    open: Vec<Option<OpenExchange>>,
    /// Whether there is a machine of each device.
    is_alive: Vec<bool>,
    /// What was heard of each device.
    ears: Vec<Ear>,
    /// How many requests of each status a device has, by counting them.
    recount: Vec<[i64; Status::ALL.len()]>,
    /// How many requests of a device ever failed, also those that are not kept any more.
    failed: Vec<i64>,
    /// What devices said of what is observed.
    pub(crate) tellings: Tellings,
    /// What was answered, and where.
    answered: HashSet<(Peer, AttemptKey)>,
    /// What devices sent unasked.
    pub(crate) sendings: Sendings,
    /// What destinations are owed.
    pub(crate) ledgers: Ledgers,
}

/// What is known of a request.
#[derive(Default)]
struct Known {
    who: usize,
    /// The attempts that left, by their names on the wire.
    sent: Vec<AttemptKey>,
    /// What left for the same attempts in other formats.
    otherwise: Vec<AttemptKey>,
    /// Whether a caller was told that it is accepted.
    is_promised: bool,
    /// How many uplinks of the device were heard when its last attempt began.
    uplinks_at_attempt: Option<u64>,
}

/// What was heard of a device.
#[derive(Default)]
struct Ear {
    /// When its machine came into being.
    machine_since_ms: i64,
    heard_at_ms: i64,
    /// When it last said that it is there and was taken at its word.
    accepted_at_ms: i64,
    uplinks: u64,
    /// The last answer that told it a location.
    told: Option<Told>,
    /// The last location it was told, however long ago.
    location: Vec<String>,
}

/// An answer to a registration.
struct Told {
    to: Peer,
    key: AttemptKey,
    location: Vec<String>,
    at_ms: i64,
    /// How many datagrams the device's machine took since.
    heard_since: usize,
}

/// An exchange as it was decided.
#[derive(Clone, Copy)]
struct Begun {
    purpose: Purpose,
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
}

/// What a device did when it was asked.
#[derive(Default)]
struct Deeds {
    /// In which of its lives it did so last.
    boot: u32,
    /// What was read or written each time.
    payloads: Vec<Vec<u8>>,
}

/// An exchange as the wire shows it.
struct OpenExchange {
    attempt: AttemptKey,
    begun_at_ms: i64,
    is_answered: bool,
}

/// A step that a machine took.
pub(crate) struct Decision {
    pub(crate) at_ms: i64,
    pub(crate) who: usize,
    pub(crate) on: Occasion,
    pub(crate) meets: Option<Met>,
    pub(crate) step: u64,
    pub(crate) saves: Saves,
    /// Whether devices are read unasked.
    pub(crate) reporting: SettingState,
    pub(crate) sends: Vec<(AttemptKey, Purpose)>,
}

/// A datagram that leaves the service.
pub(crate) struct Departure<'a> {
    pub(crate) at_ms: i64,
    pub(crate) to: Peer,
    pub(crate) step: Option<u64>,
    pub(crate) who: Option<usize>,
    pub(crate) datagram: &'a [u8],
}

impl Judge {
    pub(crate) fn new(rules: Rules, arbiters: usize, devices: usize) -> Self {
        Self {
            rules,
            ways: Ways::new(arbiters, devices),
            undurable: BTreeSet::new(),
            known: BTreeMap::new(),
            attempts: HashMap::new(),
            deeds: HashMap::new(),
            open: (0..devices).map(|_| None).collect(),
            is_alive: vec![false; devices],
            ears: (0..devices).map(|_| Ear::default()).collect(),
            recount: vec![[0; Status::ALL.len()]; devices],
            failed: vec![0; devices],
            tellings: Tellings::default(),
            answered: HashSet::new(),
            sendings: Sendings::of(devices),
            ledgers: Ledgers::default(),
        }
    }

    /// A machine took a step.
    pub(crate) fn decided(&mut self, decision: Decision, durable: &Durable) -> Verdict {
        let Decision { at_ms, who, .. } = decision;
        if decision.saves == Saves::Something {
            self.undurable.insert(decision.step);
        }
        let ear = &mut self.ears[who];
        match decision.on {
            Occasion::Uplink => (ear.heard_at_ms, ear.uplinks) = (at_ms, ear.uplinks + 1),
            Occasion::Heard => ear.heard_at_ms = at_ms,
            Occasion::Other => {}
        }
        if decision.on != Occasion::Other
            && let Some(told) = &mut ear.told
        {
            told.heard_since += 1;
        }
        if let (Some(open), Some(meets)) = (&mut self.open[who], &decision.meets) {
            open.is_answered |= open.attempt.is_met_by(meets);
        }
        if decision.on != Occasion::Other {
            self.sendings.heard(who);
        }
        for (attempt, purpose) in decision.sends {
            let before = self.refused_format(who, decision.meets.as_ref());
            let (purpose, again) = match (purpose, before) {
                (Purpose::Unsaved(_) | Purpose::Report, Some(before)) => {
                    (before, Again::InAnotherFormat)
                }
                (purpose, _) => (purpose, Again::No),
            };
            match purpose {
                _ if again == Again::InAnotherFormat => {}
                Purpose::Unsaved(_) | Purpose::Report if self.is_open(who, attempt) => continue,
                Purpose::Report => {
                    let reporting = decision.reporting;
                    passive::nothing_is_read_unasked_unless_it_is_wanted(who, reporting)?;
                }
                Purpose::Action(action) => {
                    presence::a_retry_waits_for_the_device(self, who, action)?;
                }
                Purpose::Unsaved(path) => {
                    observing::asking_again_waits_for_the_device(self, who, path)?;
                }
            }
            presence::a_sleeping_device_is_not_asked(self, at_ms, who, durable)?;
            let uplinks = self.ears[who].uplinks;
            let begun = Begun {
                purpose,
                again,
                at_ms,
                uplinks,
            };
            // What is renewed or ended has the token it had, and by chance the message id, too.
            if self.attempts.insert(attempt, begun).is_some() {
                self.deeds.retain(|(_, done), _| *done != attempt);
            }
        }
        Ok(())
    }

    /// What the open exchange with a device was for, if its format is what the device refuses.
    fn refused_format(&self, who: usize, meets: Option<&Met>) -> Option<Purpose> {
        let open = self.open[who].as_ref()?;
        let meets = meets.filter(|meets| meets.format == FormatFound::Unfit)?;
        let begun = self.attempts.get(&open.attempt)?;
        open.attempt.is_met_by(meets).then_some(begun.purpose)
    }

    fn is_open(&self, who: usize, attempt: AttemptKey) -> bool {
        let open = self.open[who].as_ref();
        open.is_some_and(|open| open.attempt == attempt)
    }

    /// A caller is told something.
    pub(crate) fn replied(
        &mut self,
        who: usize,
        question: &Question,
        step: Option<u64>,
        reply: &Reply,
        durable: &Durable,
    ) -> Verdict {
        speech::nothing_is_said_before_it_is_saved(self, step)?;
        match (reply, question) {
            (Reply::Submitted(Ok(accepted)), _) => {
                promises::a_202_is_told_when_it_is_saved(who, accepted.id, durable)?;
                self.known.entry(accepted.id).or_default().is_promised = true;
                Ok(())
            }
            (Reply::Cancelled(Ok(cancelled)), _) => {
                promises::a_cancel_is_told_when_it_is_saved(who, cancelled.id, durable)
            }
            (Reply::CancelledAll(cancelled), _) => cancelled.iter().try_for_each(|cancelled| {
                promises::a_cancel_is_told_when_it_is_saved(who, cancelled.id, durable)
            }),
            (Reply::Retired | Reply::Unknown, _) => {
                promises::a_removed_device_is_gone(who, durable)
            }
            (Reply::Submitted(Err(_)) | Reply::Cancelled(Err(_)), _)
            | (Reply::Renamed | Reply::Unserved, _) => Ok(()),
        }
    }

    /// A step is durable.
    pub(crate) fn became_durable(
        &mut self,
        at_ms: i64,
        step: u64,
        who: usize,
        done: &Done,
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
            self.open[who] = None;
        }
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

    fn action_moved(&mut self, at_ms: i64, moved: &Moved, durable: &Durable) -> Verdict {
        let Moved {
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
        attempts::the_oldest_request_goes_first(moved, action, durable)?;
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
    pub(crate) fn swept(&mut self, swept: &[Swept], durable: &Durable) -> Verdict {
        for swept in swept {
            self.known.remove(&swept.action);
            self.recount[swept.who][swept.status as usize] -= 1;
        }
        swept
            .iter()
            .try_for_each(|swept| books::counters_equal_a_recount(self, swept.who, durable))
    }

    /// In how many attempts a request has left.
    pub(crate) fn attempts_sent(&self, id: ActionId) -> usize {
        self.known.get(&id).map_or(0, |known| known.sent.len())
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
        }
        Ok(())
    }

    /// Nobody waits any more for a step to be durable.
    pub(crate) fn forgotten(&mut self, step: Option<u64>) {
        step.map(|step| self.undurable.remove(&step));
    }

    /// The machine of a device is gone, and its exchange with it.
    pub(crate) fn machine_is_gone(&mut self, who: usize) {
        self.open[who] = None;
        self.ears[who].told = None;
    }

    /// The machine of a device is no more, wherever it was, and with it what it remembered.
    pub(crate) fn moved_out(&mut self, who: usize) {
        self.is_alive[who] = false;
        self.ears[who].told = None;
    }

    /// A device is brought back from this.
    pub(crate) fn restored(
        &mut self,
        at_ms: i64,
        who: usize,
        restored: &Restored,
        durable: &Durable,
    ) -> Verdict {
        self.ears[who].machine_since_ms = at_ms;
        self.sendings.restored(who);
        let registration = restored.record.registration.as_ref();
        self.ways
            .restored(who, registration.and(restored.record.peer));
        homes::a_device_has_one_machine(self, who)?;
        homes::nobody_comes_back_as_he_was(who, restored, durable)?;
        let pending: Vec<ActionId> = restored.pending.iter().map(|action| action.id).collect();
        promises::a_restored_device_knows_what_it_owes(who, &pending, durable)
    }

    /// The service crashed.
    pub(crate) fn crashed(&mut self, durable: &Durable) -> Verdict {
        self.undurable.clear();
        self.ways.crashed();
        self.is_alive.fill(false);
        self.open.iter_mut().for_each(|open| *open = None);
        self.ears.iter_mut().for_each(|ear| ear.told = None);
        promises::a_202_survives_a_crash(self, durable)?;
        books::everything_equals_a_recount(durable)
    }

    /// A device did something that it was asked for.
    pub(crate) fn performed(&mut self, who: usize, boot: u32, performed: &Performed) -> Verdict {
        let attempt = AttemptKey::new(performed.message_id.0, performed.token.as_bytes());
        attempts::a_device_obeys_an_attempt_once(self, who, boot, attempt)?;
        let deeds = self.deeds.entry((who, attempt)).or_default();
        deeds.boot = boot;
        deeds.payloads.push(payload_performed(performed));
        Ok(())
    }
}

/// What a device read or wrote, in the bytes in which plain devices say it.
fn payload_performed(performed: &Performed) -> Vec<u8> {
    plain(performed.format, performed.path, &performed.payload)
}

/// Says that a law is broken, unless it holds.
fn hold(law: &'static str, holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds {
        return Ok(());
    }
    Err(Breach { law, what: what() })
}
