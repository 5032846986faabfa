//! Laws about what devices post over plain CoAP and throw as bare bytes: told of the device that
//! said it, whole, and kept before anybody is thanked.

use std::collections::{BTreeMap, HashMap};

use engine::action::Protocol;
use engine::peer::Peer;
use engine::step_event::UplinkKind;
use protocol::coap::code::Code;
use protocol::coap::dedup::RECENT_MAX;
use protocol::coap::message::{Message, MessageKind};

use super::routing::DatagramRouting;
use super::{Decision, LawChecker, Saves, Verdict, hold};
use crate::disk::Durable;
use crate::wire::{AttemptKey, Head};

/// What devices posted and threw.
pub(crate) struct SentData {
    said: HashMap<Vec<u8>, DataOrigin>,
    posted: HashMap<AttemptKey, PostedData>,
    /// How often bare bytes came to a machine.
    came: HashMap<Vec<u8>, usize>,
    /// What is to be told once a step is durable.
    owed: BTreeMap<u64, Vec<Vec<u8>>>,
    lives: Vec<RememberedFor>,
}

/// Who said something that nobody else says.
struct DataOrigin {
    by: usize,
    /// Where, and how often the device was added and removed.
    from: Peer,
    turns: u32,
    /// Whether somebody else may come to where it was said.
    is_movable: bool,
    /// Who else had the address, and how often each of them was added and removed.
    shared_with: Vec<(usize, u32)>,
}

/// What is to be told of a message before it is answered; nothing of what says nothing.
struct PostedData {
    bytes: Option<Vec<u8>>,
    is_in_blocks: bool,
    lives: Vec<RememberedFor>,
}

/// What became of what a device is remembered to have said.
#[derive(Clone, Copy, Default)]
struct RememberedFor {
    heard: usize,
    /// How often it was heard from elsewhere than before, or was brought back.
    moved: usize,
    last_from: Option<Peer>,
}

impl SentData {
    pub(super) fn of(devices: usize) -> Self {
        Self {
            said: HashMap::new(),
            posted: HashMap::new(),
            came: HashMap::new(),
            owed: BTreeMap::new(),
            lives: vec![RememberedFor::default(); devices],
        }
    }

    /// A device is about to say something that nobody ever said.
    pub(crate) fn say(&mut self, (by, from): (usize, Peer), bytes: &[u8], durable: &Durable) {
        let own = durable.profile(by).ip;
        let others = (0..durable.devices()).filter(|who| *who != by);
        let others = others.filter(|who| own.is_some() && durable.profile(*who).ip == own);
        let said = DataOrigin {
            by,
            from,
            turns: durable.turns(by),
            is_movable: own.is_none(),
            shared_with: others.map(|who| (who, durable.turns(who))).collect(),
        };
        self.said.insert(bytes.to_vec(), said);
    }

    /// A device says something, which is this data if it is data.
    pub(crate) fn hear(&mut self, datagram: &[u8], bytes: Option<&[u8]>) {
        if !Head::of(datagram).is_some_and(|head| head.is_request()) {
            return;
        }
        let Ok(message) = Message::decode(datagram) else {
            return;
        };
        let is_data = message.code == Code::POST && message.uri_path().next().is_none();
        let is_last = message.block1().is_none_or(|block| !block.has_more());
        if !is_data || !is_last || message.kind != MessageKind::Confirmable {
            return;
        }
        let key = AttemptKey::new(message.message_id.0, message.token.as_bytes());
        self.posted.entry(key).or_insert_with(|| PostedData {
            bytes: bytes.map(<[u8]>::to_vec),
            is_in_blocks: message.block1().is_some(),
            lives: self.lives.clone(),
        });
    }

    /// Whether a message thanks a device for data that came in blocks.
    pub(crate) fn thanks_for_blocks(&self, datagram: &[u8]) -> bool {
        let head = Head::of(datagram).filter(Head::is_changed);
        let posted = head.and_then(|head| self.posted.get(&head.key()));
        posted.is_some_and(|posted| posted.is_in_blocks)
    }

    pub(super) fn restored(&mut self, who: usize) {
        self.lives[who].moved += 1;
    }

    /// A machine took a step.
    pub(super) fn taken(&mut self, who: usize, decision: &Decision) -> Verdict {
        let took = &decision.took;
        let life = &mut self.lives[who];
        if took.from.is_some() {
            life.heard += 1;
            life.moved += usize::from(life.last_from != took.from);
            life.last_from = took.from;
        }
        let bare = took.bare.iter().filter(|bytes| !bytes.is_empty());
        let bare: Vec<Vec<u8>> = bare.cloned().collect();
        if bare.is_empty() || took.heard != Some(UplinkKind::UdpData) {
            return Ok(());
        }
        for bytes in &bare {
            *self.came.entry(bytes.clone()).or_default() += 1;
        }
        let is_kept = decision.saves == Saves::Something;
        hold("what_is_acknowledged_is_told", is_kept, || {
            format!("device {who} threw {bare:?}, and nothing of it is kept")
        })?;
        self.owed.insert(decision.step, bare);
        Ok(())
    }

    /// A step is durable, which tells this data.
    pub(super) fn told(
        &mut self,
        step: u64,
        (who, ways): (usize, &DatagramRouting),
        data: &[(Protocol, Box<[u8]>)],
        durable: &Durable,
    ) -> Verdict {
        let owed = self.owed.remove(&step).unwrap_or_default();
        let is_told = |owed: &Vec<u8>| data.iter().any(|(_, bytes)| **bytes == **owed);
        let is_told = owed.iter().all(is_told);
        hold("what_is_acknowledged_is_told", is_told, || {
            format!("device {who} threw something, and it is not told")
        })?;
        for (protocol, bytes) in data {
            self.is_of_the_device((who, ways), bytes, durable)?;
            let told = durable.history(who).times_told(*protocol, bytes);
            let came = self.came.get(&**bytes).copied().unwrap_or(0);
            let fits = *protocol != Protocol::Udp || told <= came;
            hold("what_is_acknowledged_is_told", fits, || {
                let bytes = String::from_utf8_lossy(bytes);
                format!("{bytes:?} of device {who} came {came} times and is told {told} times")
            })?;
        }
        Ok(())
    }

    /// What is told of a device is all of what it said, and of none that has the address with
    /// others.
    fn is_of_the_device(
        &self,
        (who, ways): (usize, &DatagramRouting),
        bytes: &[u8],
        durable: &Durable,
    ) -> Verdict {
        let said = self.said.get(bytes);
        hold(
            "a_body_in_blocks_is_told_whole_or_not_at_all",
            said.is_some(),
            || format!("nobody said {:?}", String::from_utf8_lossy(bytes)),
        )?;
        let Some(said) = said else {
            return Ok(());
        };
        // Who is asked something there is taken for whoever speaks from there meanwhile.
        if ways.was_behind(who, said.from) {
            return Ok(());
        }
        let law = "what_several_may_have_said_is_told_of_none";
        // Its customer may have taken it, or its address, away since.
        let is_there = durable.turns(said.by) == said.turns
            && durable.exists(said.by)
            && durable.profile(said.by).ip == Some(said.from.ip());
        hold(law, said.by == who || said.is_movable || !is_there, || {
            format!("what device {} said is told of device {who}", said.by)
        })?;
        let still = |(other, turns): &&(usize, u32)| {
            is_there
                && durable.exists(*other)
                && durable.turns(*other) == *turns
                && durable.profile(*other).ip == durable.profile(said.by).ip
        };
        let other = said.shared_with.iter().find(still);
        hold(law, other.is_none(), || {
            format!("what device {who} or {other:?} said is told of device {who}")
        })
    }

    /// A step was not saved.
    pub(super) fn forgotten(&mut self, step: u64) {
        self.owed.remove(&step);
    }

    /// The service crashed.
    pub(super) fn crashed(&mut self) {
        self.owed.clear();
    }
}

/// Data is answered 2.04 once it is in the history of the device that is answered: once, unless the
/// machine that heard it first was lost, heard much since, or heard the device elsewhere.
pub(super) fn what_a_device_is_thanked_for_is_told(
    laws: &LawChecker,
    who: usize,
    key: AttemptKey,
    durable: &Durable,
) -> Verdict {
    let Some(posted) = laws.datas.posted.get(&key) else {
        return Ok(());
    };
    let law = "what_is_acknowledged_is_told";
    let Some(bytes) = &posted.bytes else {
        return hold(law, false, || {
            format!("device {who} is thanked for what says nothing")
        });
    };
    let (then, now) = (posted.lives[who], laws.datas.lives[who]);
    let forgotten = (now.moved - then.moved) + (now.heard - then.heard) / RECENT_MAX;
    let told = durable.history(who).times_told(Protocol::Coap, bytes);
    hold(law, told > 0, || {
        let bytes = String::from_utf8_lossy(bytes);
        format!("device {who} is thanked for {bytes:?}, which is not told")
    })?;
    hold(law, told <= 1 + forgotten, || {
        format!("{bytes:?} of device {who} is told {told} times, {forgotten} times forgotten")
    })
}
