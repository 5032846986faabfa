//! Laws about data over plain CoAP and UDP: published for its sender, completely, and stored before
//! it is acknowledged.

use std::collections::{BTreeMap, HashMap};

use engine::action::Protocol;
use engine::limits::RESTORED_EVENTS_MS;
use engine::peer::Peer;
use engine::step_event::UplinkKind;
use protocol::coap::code::Code;
use protocol::coap::dedup::RECENT_MAX;
use protocol::coap::message::{Message, MessageKind};

use super::routing::DatagramRouting;
use super::{Decision, LawChecker, RestoreCause, Saves, Verdict, hold};
use crate::disk::Durable;
use crate::wire::{AttemptKey, Head};

/// The data that devices sent.
pub(crate) struct SentData {
    origins: HashMap<Vec<u8>, DataOrigin>,
    posted: HashMap<AttemptKey, PostedData>,
    /// How often a bare datagram reached a machine.
    arrived: HashMap<Vec<u8>, usize>,
    /// The data to be published once a step is durable.
    owed: BTreeMap<u64, Vec<Vec<u8>>>,
    lives: Vec<RememberedFor>,
}

/// The origin of unique data.
struct DataOrigin {
    by: usize,
    /// The peer, and how often the device had been added or removed.
    from: Peer,
    turns: u32,
    /// Whether another device may come to that peer.
    is_movable: bool,
    /// The other devices with this address, and how often each had been added or removed.
    shared_with: Vec<(usize, u32)>,
}

/// The data to be published before a message is answered; None for a message without data.
struct PostedData {
    bytes: Option<Vec<u8>>,
    is_in_blocks: bool,
    /// When it was first sent, and what had become of the devices by then.
    first_at_ms: i64,
    lives: Vec<RememberedFor>,
}

/// What became of the messages a device's machine remembers.
#[derive(Clone, Copy, Default)]
struct RememberedFor {
    received: usize,
    /// How often the device was heard at another peer than before, or was restored.
    moved: usize,
    /// How often it was restored after a crash.
    crashed: usize,
    last_from: Option<Peer>,
}

impl SentData {
    pub(super) fn of(devices: usize) -> Self {
        Self {
            origins: HashMap::new(),
            posted: HashMap::new(),
            arrived: HashMap::new(),
            owed: BTreeMap::new(),
            lives: vec![RememberedFor::default(); devices],
        }
    }

    /// A device is about to send data that was never sent before.
    pub(crate) fn will_send(&mut self, (by, from): (usize, Peer), bytes: &[u8], durable: &Durable) {
        let own = durable.profile(by).ip;
        let others = (0..durable.devices()).filter(|who| *who != by);
        let others = others.filter(|who| own.is_some() && durable.profile(*who).ip == own);
        let origin = DataOrigin {
            by,
            from,
            turns: durable.turns(by),
            is_movable: own.is_none(),
            shared_with: others.map(|who| (who, durable.turns(who))).collect(),
        };
        self.origins.insert(bytes.to_vec(), origin);
    }

    /// A device sends a message with this data, if it is data.
    pub(crate) fn receive(&mut self, at_ms: i64, datagram: &[u8], bytes: Option<&[u8]>) {
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
            first_at_ms: at_ms,
            lives: self.lives.clone(),
        });
    }

    /// Whether a message acknowledges data that came in blocks.
    pub(crate) fn acknowledges_blocks(&self, datagram: &[u8]) -> bool {
        let head = Head::of(datagram).filter(Head::is_changed);
        let posted = head.and_then(|head| self.posted.get(&head.key()));
        posted.is_some_and(|posted| posted.is_in_blocks)
    }

    pub(super) fn restored(&mut self, who: usize, cause: RestoreCause) {
        let life = &mut self.lives[who];
        match cause {
            RestoreCause::Crash => life.crashed += 1,
            RestoreCause::Other => life.moved += 1,
        }
    }

    /// A machine took a step.
    pub(super) fn taken(&mut self, who: usize, decision: &Decision) -> Verdict {
        let took = &decision.took;
        let life = &mut self.lives[who];
        if took.from.is_some() {
            life.received += 1;
            life.moved += usize::from(life.last_from != took.from);
            life.last_from = took.from;
        }
        let bare = took.bare.iter().filter(|bytes| !bytes.is_empty());
        let bare: Vec<Vec<u8>> = bare.cloned().collect();
        if bare.is_empty() || took.meaning != Some(UplinkKind::UdpData) {
            return Ok(());
        }
        for bytes in &bare {
            *self.arrived.entry(bytes.clone()).or_default() += 1;
        }
        let is_kept = decision.saves == Saves::Something;
        hold("what_is_acknowledged_is_stored", is_kept, || {
            format!("device {who} sent {bare:?}, and nothing is stored")
        })?;
        self.owed.insert(decision.step, bare);
        Ok(())
    }

    /// A step is durable that publishes this data.
    pub(super) fn became_durable(
        &mut self,
        step: u64,
        (who, ways): (usize, &DatagramRouting),
        data: &[(Protocol, Box<[u8]>)],
        durable: &Durable,
    ) -> Verdict {
        let owed = self.owed.remove(&step).unwrap_or_default();
        let is_published = |owed: &Vec<u8>| data.iter().any(|(_, bytes)| **bytes == **owed);
        let is_published = owed.iter().all(is_published);
        hold("what_is_acknowledged_is_stored", is_published, || {
            format!("device {who} sent a bare datagram that is not published")
        })?;
        for (protocol, bytes) in data {
            self.is_of_the_device((who, ways), bytes, durable)?;
            let published = durable.history(who).times_published(*protocol, bytes);
            let arrived = self.arrived.get(&**bytes).copied().unwrap_or(0);
            let fits = *protocol != Protocol::Udp || published <= arrived;
            hold("what_is_acknowledged_is_stored", fits, || {
                let bytes = String::from_utf8_lossy(bytes);
                format!("{bytes:?} of device {who}: arrived {arrived}, published {published} times")
            })?;
        }
        Ok(())
    }

    /// Published data is complete, was sent by the device, and its address belongs to no other
    /// device.
    fn is_of_the_device(
        &self,
        (who, ways): (usize, &DatagramRouting),
        bytes: &[u8],
        durable: &Durable,
    ) -> Verdict {
        let origin = self.origins.get(bytes);
        hold(
            "a_body_in_blocks_is_published_whole_or_not_at_all",
            origin.is_some(),
            || format!("no device sent {:?}", String::from_utf8_lossy(bytes)),
        )?;
        let Some(origin) = origin else {
            return Ok(());
        };
        // A device that receives a request at a peer is taken for the sender of what comes from
        // there meanwhile.
        if ways.was_behind(who, origin.from) {
            return Ok(());
        }
        let law = "data_of_several_possible_devices_is_published_for_none";
        // Its customer may have removed it, or changed its address, since.
        let is_there = durable.turns(origin.by) == origin.turns
            && durable.exists(origin.by)
            && durable.profile(origin.by).ip == Some(origin.from.ip());
        hold(
            law,
            origin.by == who || origin.is_movable || !is_there,
            || format!("data of device {} is published for device {who}", origin.by),
        )?;
        let still = |(other, turns): &&(usize, u32)| {
            is_there
                && durable.exists(*other)
                && durable.turns(*other) == *turns
                && durable.profile(*other).ip == durable.profile(origin.by).ip
        };
        let other = origin.shared_with.iter().find(still);
        hold(law, other.is_none(), || {
            format!("data of device {who} or {other:?} is published for device {who}")
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
/// machine that received it first was lost, has received many messages since, or received messages
/// of the device from elsewhere. A crash alone does not make it forget what was stored shortly
/// before.
pub(super) fn acknowledged_data_is_published(
    laws: &LawChecker,
    who: usize,
    (at_ms, key): (i64, AttemptKey),
    durable: &Durable,
) -> Verdict {
    let Some(posted) = laws.sent_data.posted.get(&key) else {
        return Ok(());
    };
    let law = "what_is_acknowledged_is_stored";
    let Some(bytes) = &posted.bytes else {
        return hold(law, false, || {
            format!("device {who} is answered 2.04 for no data")
        });
    };
    let (then, now) = (posted.lives[who], laws.sent_data.lives[who]);
    let crashes = match at_ms - posted.first_at_ms > RESTORED_EVENTS_MS {
        true => now.crashed - then.crashed,
        false => 0,
    };
    let received = (now.received - then.received) / RECENT_MAX;
    let forgotten = (now.moved - then.moved) + crashes + received;
    let published = durable.history(who).times_published(Protocol::Coap, bytes);
    hold(law, published > 0, || {
        let bytes = String::from_utf8_lossy(bytes);
        format!("device {who} is answered 2.04 for {bytes:?}, which is not published")
    })?;
    hold(law, published <= 1 + forgotten, || {
        format!("{bytes:?} of device {who}: published {published}, forgotten {forgotten} times")
    })
}
