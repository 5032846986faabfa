//! Laws about Sends: acknowledged once they are stored, and stored once.

use std::collections::{BTreeSet, HashMap};

use engine::limits::RESTORED_EVENTS_MS;
use engine::peer::Peer;
use protocol::coap::code::Code;
use protocol::coap::dedup::RECENT_MAX;
use protocol::coap::message::{Message, MessageKind};
use protocol::lwm2m::payload::Sample;

use super::{LawChecker, RestoreCause, Verdict, hold};
use crate::disk::Durable;
use crate::wire::AttemptKey;

/// The samples that devices sent.
#[derive(Default)]
pub(crate) struct SentSamples {
    sends: HashMap<AttemptKey, SendRecord>,
    /// How often each device was restored, and how many messages its machines received.
    lives: Vec<DeviceLifetime>,
}

/// A Send, by its token.
struct SendRecord {
    /// The samples to be stored; none if it is unreadable.
    samples: Vec<Sample>,
    from: BTreeSet<Peer>,
    /// When it was first sent, and what had become of the devices by then.
    first_at_ms: i64,
    lives: Vec<DeviceLifetime>,
}

/// What became of a device so far.
#[derive(Clone, Copy, Default)]
struct DeviceLifetime {
    restored: usize,
    /// How often it was restored after a crash.
    crashed: usize,
    received: usize,
}

impl SentSamples {
    pub(super) fn of(devices: usize) -> Self {
        Self {
            sends: HashMap::new(),
            lives: vec![DeviceLifetime::default(); devices],
        }
    }

    /// A device sends a message with these samples, if it is a Send.
    pub(crate) fn receive(
        &mut self,
        (at_ms, from): (i64, Peer),
        datagram: &[u8],
        samples: &[Sample],
    ) {
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
        let send = self.sends.entry(key).or_insert_with(|| SendRecord {
            samples: samples.to_vec(),
            from: BTreeSet::new(),
            first_at_ms: at_ms,
            lives: self.lives.clone(),
        });
        send.from.insert(from);
    }

    pub(super) fn restored(&mut self, who: usize, cause: RestoreCause) {
        match cause {
            RestoreCause::Crash => self.lives[who].crashed += 1,
            RestoreCause::Other => self.lives[who].restored += 1,
        }
    }

    pub(super) fn received(&mut self, who: usize) {
        self.lives[who].received += 1;
    }
}

/// A Send is answered 2.04 once each of its samples is in the history of the device that is
/// answered: once, unless the machine that received it first was lost or has received many messages
/// since. A crash alone does not make it forget what was stored shortly before.
pub(super) fn a_send_is_stored_once(
    laws: &LawChecker,
    who: usize,
    (at_ms, key): (i64, AttemptKey),
    durable: &Durable,
) -> Verdict {
    let Some(send) = laws.sent_samples.sends.get(&key) else {
        return Ok(());
    };
    hold(
        "what_is_acknowledged_is_delivered",
        !send.samples.is_empty(),
        || format!("device {who} is answered 2.04 for an unreadable Send"),
    )?;
    let (then, now) = (send.lives[who], laws.sent_samples.lives[who]);
    let crashes = match at_ms - send.first_at_ms > RESTORED_EVENTS_MS {
        true => now.crashed - then.crashed,
        false => 0,
    };
    let received = (now.received - then.received) / RECENT_MAX;
    let forgotten = (now.restored - then.restored) + crashes + received;
    let most = send.from.len() + forgotten;
    for sample in &send.samples {
        let times = durable.history(who).times_sent(sample);
        hold("nothing_is_sent_before_it_is_saved", times > 0, || {
            format!("device {who} is answered 2.04 for {sample:?}, which is not stored")
        })?;
        hold("what_is_acknowledged_is_delivered", times <= most, || {
            format!("{sample:?} of device {who} is kept {times} times, and may be {most} times")
        })?;
    }
    Ok(())
}
