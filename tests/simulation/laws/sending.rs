//! Laws about what devices send unasked: thanked for once it is kept, and kept once.

use std::collections::{BTreeSet, HashMap};

use engine::peer::Peer;
use protocol::coap::code::Code;
use protocol::coap::dedup::RECENT_MAX;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::payload::Sample;

use super::{LawChecker, Verdict, hold};
use crate::disk::Durable;
use crate::wire::AttemptKey;

/// What devices sent.
#[derive(Default)]
pub(crate) struct SentSamples {
    said: HashMap<AttemptKey, SendRecord>,
    /// How often each device was brought back, and how much its machines heard.
    lives: Vec<DeviceLifetime>,
}

/// What was sent under a token.
struct SendRecord {
    /// What is to be kept of it; nothing of what nobody can read.
    samples: Vec<Sample>,
    from: BTreeSet<Peer>,
    /// What had become of the devices when it was said first.
    lives: Vec<DeviceLifetime>,
}

/// What became of a device so far.
#[derive(Clone, Copy, Default)]
struct DeviceLifetime {
    restored: usize,
    heard: usize,
}

impl SentSamples {
    pub(super) fn of(devices: usize) -> Self {
        Self {
            said: HashMap::new(),
            lives: vec![DeviceLifetime::default(); devices],
        }
    }

    /// A device says something, which is a Send of these samples if it is a Send.
    pub(crate) fn hear(&mut self, from: Peer, datagram: &[u8], samples: &[Sample]) {
        let Ok(message) = Message::decode(datagram) else {
            return;
        };
        if message.code != Code::POST || message.uri_path().next() != Some("dp") {
            return;
        }
        if message.kind != MessageKind::Confirmable {
            return;
        }
        let key = AttemptKey::new(message.message_id.0, message.token.as_bytes());
        let said = self.said.entry(key).or_insert_with(|| SendRecord {
            samples: samples.to_vec(),
            from: BTreeSet::new(),
            lives: self.lives.clone(),
        });
        said.from.insert(from);
    }

    pub(super) fn restored(&mut self, who: usize) {
        self.lives[who].restored += 1;
    }

    pub(super) fn heard(&mut self, who: usize) {
        self.lives[who].heard += 1;
    }
}

/// A Send is answered 2.04 once each of its samples is in the history of the device that is
/// answered: once, unless the machine that heard it first was lost or heard much since.
pub(super) fn what_is_sent_is_kept_once(
    laws: &LawChecker,
    who: usize,
    key: AttemptKey,
    durable: &Durable,
) -> Verdict {
    let Some(said) = laws.sendings.said.get(&key) else {
        return Ok(());
    };
    hold(
        "what_is_acknowledged_is_delivered",
        !said.samples.is_empty(),
        || format!("device {who} is thanked for what nobody can read"),
    )?;
    let (then, now) = (said.lives[who], laws.sendings.lives[who]);
    let forgotten = (now.restored - then.restored) + (now.heard - then.heard) / RECENT_MAX;
    let most = said.from.len() + forgotten;
    for sample in &said.samples {
        let kept = durable.history(who).times_sent(sample);
        hold("nothing_is_said_before_it_is_saved", kept > 0, || {
            format!("device {who} is thanked for {sample:?}, which is not kept")
        })?;
        hold("what_is_acknowledged_is_delivered", kept <= most, || {
            format!("{sample:?} of device {who} is kept {kept} times, and may be {most} times")
        })?;
    }
    Ok(())
}
