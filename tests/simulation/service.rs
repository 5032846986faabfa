//! The shell as the actors are: it performs what machines decide and obeys the law of order.
//!
//! A step that saved waits for its receipt before anything else of it happens; the device's next
//! inputs wait with it, other devices do not. If the step was not saved, the device says nothing
//! and is brought back from the disk.

mod resident;
mod restoring;

use std::collections::HashMap;
use std::sync::Arc;

use engine::action::NewAction;
use engine::change::{Batch, Owner};
use engine::datagram::Datagram;
use engine::device::queue::{Accepted, CancelRefusal, Cancelled, SubmitRefusal};
use engine::device::{Device, Rules};
use engine::effect::{Effects, Speech};
use engine::ids::{ActionId, DeviceKey, Endpoint};
use engine::moment::{Moment, Timestamp};
use engine::peer::Peer;
use engine::profile::Profile;
use engine::registry::{self, Panics, Sorted};
use harness::chance::Chance;
use protocol::coap::code::Code;

use crate::wire::{self, AttemptKey};
use resident::{Open, Resident};

/// What a device is told or asked.
#[derive(Debug)]
pub(crate) enum Input {
    Heard(Box<Datagram>),
    Due,
    Asked(u64, Question),
}

/// What a caller may ask of a device.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Submit(NewAction),
    Cancel(ActionId),
    CancelAll,
}

/// What a caller is told.
#[derive(Debug)]
pub(crate) enum Reply {
    Submitted(Result<Accepted, SubmitRefusal>),
    Cancelled(Result<Cancelled, CancelRefusal>),
    CancelledAll(Vec<Cancelled>),
    /// The device could not be asked, or what it said could not be saved.
    Unserved,
}

/// What the service does to the world around it.
#[derive(Debug)]
pub(crate) enum Act {
    /// A machine took a step, which begins these attempts.
    Decided {
        who: usize,
        on: Occasion,
        step: u64,
        saves: Saves,
        begins: Vec<(AttemptKey, ActionId)>,
    },
    Commit {
        who: usize,
        step: u64,
        batch: Batch,
    },
    Send {
        step: Option<u64>,
        who: Option<usize>,
        to: Peer,
        datagram: Vec<u8>,
    },
    Reply {
        call: u64,
        step: Option<u64>,
        reply: Reply,
    },
    /// Ask the disk what it kept of a device.
    Fetch {
        who: usize,
        fetch: u64,
        after_ms: i64,
    },
    RestoreSoon {
        who: usize,
    },
    Wake {
        who: usize,
        at: Timestamp,
    },
    Restored {
        who: usize,
        pending: Vec<ActionId>,
    },
    Fell {
        who: usize,
        parked: bool,
    },
}

/// What a step is the answer to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Occasion {
    /// The device registered or updated.
    Uplink,
    /// It, or somebody in its name, said something else.
    Heard,
    /// Time or a caller.
    Other,
}

impl Occasion {
    fn of(input: &Input) -> Self {
        match input {
            Input::Heard(datagram) => {
                let message = &datagram.message;
                let is_about_registration = message.uri_path().next() == Some("rd");
                match message.code == Code::POST && is_about_registration {
                    true => Self::Uplink,
                    false => Self::Heard,
                }
            }
            Input::Due | Input::Asked(..) => Self::Other,
        }
    }
}

/// Whether a step changes something for good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Saves {
    Something,
    Nothing,
}

/// Where an actor falls over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Curse {
    /// While its machine decides: the buffer of effects dies with it.
    Deciding,
    /// Between the receipt and what is said after it.
    Speaking,
}

/// One turn of the service: when it is, what chance says, and what comes of it.
pub(crate) struct Turn<'a> {
    pub(crate) now: Timestamp,
    pub(crate) chance: &'a mut Chance,
    pub(crate) store: Pressure,
    pub(crate) acts: &'a mut Vec<Act>,
}

/// Whether the store welcomes new work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pressure {
    Open,
    Full,
}

/// The service, while it runs.
pub(crate) struct Service {
    rules: Arc<Rules>,
    keys: Vec<DeviceKey>,
    who_by_endpoint: HashMap<Endpoint, usize>,
    who_by_prefix: HashMap<[u8; 8], usize>,
    residents: Vec<Resident>,
    who_by_peer: HashMap<Peer, usize>,
    panics: Vec<Panics>,
    /// Which actor falls over at its next opportunity, and at how many after it.
    curse: Option<(usize, Curse, u32)>,
    run: u64,
    is_up: bool,
    steps: u64,
    fetches: u64,
}

impl Service {
    pub(crate) fn new(rules: Rules, profiles: &[Profile]) -> Self {
        let keys: Vec<DeviceKey> = profiles.iter().map(Profile::key).collect();
        let endpoints = profiles.iter().map(|profile| profile.endpoint.clone());
        let prefixes = keys.iter().map(DeviceKey::prefix);
        Self {
            rules: Arc::new(rules),
            who_by_endpoint: endpoints.zip(0..).collect(),
            who_by_prefix: prefixes.zip(0..).collect(),
            residents: keys.iter().map(|_| Resident::Away).collect(),
            who_by_peer: HashMap::new(),
            panics: vec![Panics::default(); keys.len()],
            curse: None,
            run: 0,
            is_up: false,
            steps: 0,
            fetches: 0,
            keys,
        }
    }

    /// Takes a datagram from the network.
    pub(crate) fn hear(&mut self, from: Peer, bytes: &[u8], turn: &mut Turn<'_>) {
        self.dispatch(from, registry::sort(from, bytes), turn);
    }

    fn dispatch(&mut self, from: Peer, sorted: Sorted, turn: &mut Turn<'_>) {
        match sorted {
            Sorted::ToEndpoint(_, datagram) | Sorted::ToLocation(_, datagram)
                if turn.store == Pressure::Full =>
            {
                self.dispatch(from, registry::overloaded(&datagram), turn);
            }
            Sorted::ToEndpoint(endpoint, datagram) => match self.who_by_endpoint.get(&endpoint) {
                Some(who) => self.hand(*who, Input::Heard(Box::new(datagram)), turn),
                None => self.dispatch(from, registry::unknown_endpoint(&datagram), turn),
            },
            Sorted::ToLocation(location, datagram) => {
                match self.who_by_prefix.get(&location.device) {
                    Some(who) => self.hand(*who, Input::Heard(Box::new(datagram)), turn),
                    None => self.dispatch(from, registry::unknown_location(&datagram), turn),
                }
            }
            Sorted::ToPeer(datagram) => match self.who_by_peer.get(&from) {
                Some(who) => self.hand(*who, Input::Heard(Box::new(datagram)), turn),
                None => self.dispatch(from, registry::unknown_peer(&datagram), turn),
            },
            Sorted::Answered { datagram, .. } => {
                turn.acts.push(Act::Send {
                    step: None,
                    who: None,
                    to: from,
                    datagram,
                });
            }
            Sorted::Ignored(_) => {}
        }
    }

    /// Hands an input to a device, bringing it back first if need be.
    pub(crate) fn hand(&mut self, who: usize, input: Input, turn: &mut Turn<'_>) {
        if matches!(self.residents[who], Resident::Away) {
            if matches!(input, Input::Due) {
                return;
            }
            self.restore(who, 0, turn);
        }
        match &mut self.residents[who] {
            Resident::Live(live) if live.open.is_none() => self.handle(who, input, turn),
            Resident::Live(live) => live.wait(input, turn),
            Resident::Restoring { waiting, .. } => resident::wait(waiting, input, turn),
            Resident::Parked => resident::turn_away(input, turn),
            Resident::Away => panic!("a device that is brought back is not away"),
        }
    }

    /// Lets the machine take one step.
    fn handle(&mut self, who: usize, input: Input, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there takes a step");
        };
        let mut m = moment(turn);
        let mut out = Effects::new();
        let on = Occasion::of(&input);
        let answer = live.take(input, &mut m, &mut out);
        if self.is_struck(who, Curse::Deciding) {
            return self.fall(who, answer.map(|(call, _)| call), turn);
        }
        self.settle(who, on, out, answer, turn);
    }

    /// Performs a step: what is saved first, then the rest.
    fn settle(
        &mut self,
        who: usize,
        on: Occasion,
        effects: Effects,
        answer: Option<(u64, Reply)>,
        turn: &mut Turn<'_>,
    ) {
        self.steps += 1;
        let step = self.steps;
        let begins = wire::attempts_begun(&effects);
        let (batch, speeches) = effects.settle(self.owner(who));
        if batch.is_empty() {
            turn.acts.push(Act::Decided {
                who,
                on,
                step,
                saves: Saves::Nothing,
                begins,
            });
            return self.perform(
                who,
                Open {
                    step,
                    speeches,
                    answer,
                },
                turn,
            );
        }
        turn.acts.push(Act::Decided {
            who,
            on,
            step,
            saves: Saves::Something,
            begins,
        });
        turn.acts.push(Act::Commit { who, step, batch });
        if let Resident::Live(live) = &mut self.residents[who] {
            live.open = Some(Open {
                step,
                speeches,
                answer,
            });
        }
    }

    /// Does in order what a step wants done besides saving, then answers who asked.
    fn perform(&mut self, who: usize, open: Open, turn: &mut Turn<'_>) {
        let step = Some(open.step);
        for speech in open.speeches {
            match speech {
                Speech::Rebind { from, to } => self.rebind(who, from, to),
                Speech::Send { to, datagram } => {
                    turn.acts.push(Act::Send {
                        step,
                        who: Some(who),
                        to,
                        datagram,
                    });
                }
            }
        }
        if let Some((call, reply)) = open.answer {
            turn.acts.push(Act::Reply { call, step, reply });
        }
        self.rest(who, turn);
    }

    fn rebind(&mut self, who: usize, from: Option<Peer>, to: Option<Peer>) {
        if let Some(from) = from
            && self.who_by_peer.get(&from) == Some(&who)
        {
            self.who_by_peer.remove(&from);
        }
        if let Some(to) = to {
            self.who_by_peer.insert(to, who);
        }
    }

    /// The step is done: the device is woken when it is due, and may move out if it is idle.
    fn rest(&mut self, who: usize, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("only a device that is there comes to rest");
        };
        live.arm(who, turn);
        if live.device.is_idle() && live.mailbox.is_empty() {
            self.residents[who] = Resident::Away;
        }
    }

    /// Takes the receipt of a device's open step.
    pub(crate) fn receive(&mut self, who: usize, step: u64, receipt: Receipt, turn: &mut Turn<'_>) {
        let Resident::Live(live) = &mut self.residents[who] else {
            panic!("a device waits for its receipt");
        };
        let open = live.open.take().expect("a device waits for its receipt");
        assert_eq!(open.step, step, "receipts come in the order of their steps");
        match receipt {
            Receipt::Unsaved => return self.give_up(who, open, turn),
            Receipt::Durable if self.is_struck(who, Curse::Speaking) => {
                return self.fall(who, open.answer.map(|(call, _)| call), turn);
            }
            Receipt::Durable => self.perform(who, open, turn),
        }
        self.take_next(who, turn);
    }

    /// Lets a device take the inputs that waited, up to the next step that has to be saved.
    fn take_next(&mut self, who: usize, turn: &mut Turn<'_>) {
        while let Resident::Live(live) = &mut self.residents[who]
            && live.open.is_none()
            && let Some(input) = live.mailbox.pop_front()
        {
            self.handle(who, input, turn);
        }
    }

    fn owner(&self, who: usize) -> Owner {
        Owner::Shard {
            shard: self.keys[who].shard(),
            epoch: self.run,
        }
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Has the actor of a device fall over at its next opportunity, and at so many after it.
    pub(crate) fn curse(&mut self, who: usize, curse: Curse, again: u32) {
        self.curse = Some((who, curse, again));
    }

    /// No actor falls over any more.
    pub(crate) fn lift_curse(&mut self) {
        self.curse = None;
    }

    fn is_struck(&mut self, who: usize, at: Curse) -> bool {
        let Some((cursed, curse, again)) = &mut self.curse else {
            return false;
        };
        if (*cursed, *curse) != (who, at) {
            return false;
        }
        match again {
            0 => self.curse = None,
            1.. => *again -= 1,
        }
        true
    }

    /// The machine of a device that is there.
    pub(crate) fn machine(&self, who: usize) -> Option<&Device> {
        match &self.residents[who] {
            Resident::Live(live) => Some(&live.device),
            Resident::Away | Resident::Restoring { .. } | Resident::Parked => None,
        }
    }

    /// Whether nothing is under way for a device.
    pub(crate) fn is_at_rest(&self, who: usize) -> bool {
        match &self.residents[who] {
            Resident::Live(live) => live.open.is_none() && live.mailbox.is_empty(),
            Resident::Away => true,
            Resident::Restoring { .. } | Resident::Parked => false,
        }
    }
}

/// What came of a commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Receipt {
    Durable,
    Unsaved,
}

fn moment(turn: &mut Turn<'_>) -> Moment {
    let entropy = u128::from(turn.chance.number()) << 64 | u128::from(turn.chance.number());
    Moment::new(turn.now, entropy)
}
