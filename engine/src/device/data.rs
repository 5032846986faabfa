//! Data of a device that speaks plain CoAP or bare UDP: whose it is, what is taken of it and how it
//! is answered (RFC 7252 section 5.8.2).
//!
//! Such a device has no registration: it is known by its address alone. What it sends is told as
//! it came, and like everything a device says by itself it lets out what waits for the device.

use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::recent::Recent;

use crate::action::Protocol;
use crate::admin_log::entry::Entry;
use crate::datagram::{Bare, Datagram};
use crate::device::Device;
use crate::effect::Effects;
use crate::event::{Data, Happening};
use crate::limits::DATA_REMEMBERED_MS;
use crate::moment::{Moment, Timestamp};
use crate::occurrence::{Heard, News, What};
use crate::peer::{Peer, Via};
use crate::topic::Topic;

/// So many bytes of data count as one value: a value takes less when it is kept, and more rows.
const VALUE_BYTES: usize = 256;

/// What was heard lately from a peer where the device is not, by what is known.
pub(super) struct Visitor {
    pub(super) peer: Peer,
    pub(super) recent: Recent,
}

/// Why data is not taken.
struct Refused {
    code: Code,
    news: News,
}

impl Device {
    /// Takes in bytes of no protocol that came from the address of this device.
    pub fn handle_bare(&mut self, m: &mut Moment, bare: &Bare, out: &mut Effects) -> Heard {
        self.handle_burst(m, [bare], out)
    }

    /// Takes in bytes of no protocol of several datagrams that came one behind the other.
    pub fn handle_burst<'b>(
        &mut self,
        m: &mut Moment,
        burst: impl IntoIterator<Item = &'b Bare>,
        out: &mut Effects,
    ) -> Heard {
        let mut heard = Heard::Unasked;
        for bare in burst {
            if self.is_home(bare.peer) {
                heard = Heard::UdpData;
                let news = self.take_bare(m, bare, out);
                out.note(None, What::DataSent(Protocol::Udp, news));
            }
        }
        self.begin_attempt(m, out);
        self.rest();
        heard
    }

    /// Takes in a message from an address that several devices have, this one among them: it may
    /// be any one's, so it is nobody's.
    pub fn handle_ambiguous(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> Heard {
        let why = "several devices have the address it came from";
        self.refuse_stranger(m, datagram, why, out);
        self.rest();
        Heard::Unsupported
    }

    /// Takes data over plain CoAP. It is thanked for once it is durable.
    pub(super) fn take_data(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) {
        if !self.is_home(datagram.peer) {
            let why = "it did not come from the device's address";
            return self.refuse_stranger(m, datagram, why, out);
        }
        if !self.pace.take(m.now(), 1) {
            out.note(None, What::DataSent(Protocol::Coap, News::Excessive));
            return self.put_off(datagram, out);
        }
        self.note_contact(m, datagram.peer, Protocol::Coap, out);
        self.remember_visitor(datagram.peer);
        if self.too_long(datagram.message.payload.len()).is_some() {
            out.note(None, What::DataSent(Protocol::Coap, News::Unusable));
            return self.refuse_length(m, datagram, out);
        }
        let (code, news) = match self.read_data(m, &datagram.message, out) {
            Ok(data) => {
                self.count_bytes(m.now(), data.bytes.len());
                self.tell(m, Happening::Data(Box::new(data)), out);
                (Code::CHANGED, News::Told)
            }
            Err(refused) => (refused.code, refused.news),
        };
        out.note(None, What::DataSent(Protocol::Coap, news));
        self.answer(m, datagram, code, out);
    }

    /// Answers that the sender is not known as a device, and logs it, but not each time.
    pub(super) fn refuse_stranger(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        why: &str,
        out: &mut Effects,
    ) {
        if self.may_log_rejection(m.now()) {
            let entry = Entry::unauthorized_device(m, self.seen_at(Some(datagram.peer)), why);
            self.log(m, entry, out);
        }
        self.answer(m, datagram, Code::UNAUTHORIZED, out);
    }

    /// Makes room for what a peer said lately, so that it is answered the same when it repeats
    /// itself.
    pub(super) fn remember_visitor(&mut self, peer: Peer) {
        if self.record.peer == Some(peer) {
            return;
        }
        let visitor = &mut self.busy.get_or_insert_default().visitor;
        if visitor.as_ref().is_none_or(|there| there.peer != peer) {
            let recent = Recent::default();
            *visitor = Some(Box::new(Visitor { peer, recent }));
        }
    }

    /// What a peer said lately, if that is remembered.
    pub(super) fn recent_of(&mut self, peer: Peer) -> Option<&mut Recent> {
        if self.record.peer == Some(peer) {
            return Some(&mut self.recent);
        }
        let visitor = self.busy.as_mut()?.visitor.as_mut()?;
        (visitor.peer == peer).then_some(&mut visitor.recent)
    }

    /// Message ids belong to an address: at a new one, nothing was heard yet but as a visitor's.
    /// Where the device was before it may still repeat itself.
    pub(super) fn move_to(&mut self, peer: Peer) {
        if self.record.peer == Some(peer) {
            return;
        }
        let recent = self.recent_of(peer).map(std::mem::take);
        let recent = std::mem::replace(&mut self.recent, recent.unwrap_or_default());
        let before = self.record.peer.replace(peer);
        if let Some(busy) = &mut self.busy {
            busy.visitor = before.map(|peer| Box::new(Visitor { peer, recent }));
        }
    }

    fn take_bare(&mut self, m: &mut Moment, bare: &Bare, out: &mut Effects) -> News {
        if !self.pace.take(m.now(), 1) {
            let why = "more data came than is taken in a minute, and nobody can be told to wait";
            self.keep_unreadable(m, why, &bare.bytes, out);
            return News::Excessive;
        }
        self.note_contact(m, bare.peer, Protocol::Udp, out);
        if bare.bytes.is_empty() {
            return News::Empty;
        }
        if let Some(why) = self.too_long(bare.bytes.len()) {
            self.keep_unreadable(m, &why, &bare.bytes, out);
            return News::Unusable;
        }
        self.count_bytes(m.now(), bare.bytes.len());
        let data = Data {
            source: Protocol::Udp,
            topic: None,
            bytes: bare.bytes.as_slice().into(),
        };
        self.tell(m, Happening::Data(Box::new(data)), out);
        News::Told
    }

    fn read_data(
        &mut self,
        m: &mut Moment,
        message: &Message,
        out: &mut Effects,
    ) -> Result<Data, Refused> {
        let refused = |code| Refused {
            code,
            news: News::Unusable,
        };
        let topic = match Topic::among(message.uri_query()) {
            Ok(topic) => topic,
            Err(why) => {
                self.log_invalid_topic(m, &why.to_string(), &message.payload, out);
                return Err(refused(Code::BAD_REQUEST));
            }
        };
        if message.payload.is_empty() {
            return Err(Refused {
                code: Code::BAD_REQUEST,
                news: News::Empty,
            });
        }
        Ok(Data {
            source: Protocol::Coap,
            topic: Some(topic),
            bytes: message.payload.as_slice().into(),
        })
    }

    fn count_bytes(&mut self, now: Timestamp, bytes: usize) {
        self.count_further(now, bytes / VALUE_BYTES);
    }

    pub(super) fn too_long(&self, bytes: usize) -> Option<String> {
        let max = self.terms.rules.limits.data_bytes_max;
        (bytes > max).then(|| format!("it has {bytes} bytes, and at most {max} are taken"))
    }

    /// The device was heard without a registration of its own: over any protocol, that may be the
    /// first time ever.
    fn note_contact(&mut self, m: &mut Moment, peer: Peer, protocol: Protocol, out: &mut Effects) {
        let now = m.now();
        let is_first = self.record.first_heard_at.is_none();
        self.record.first_heard_at.get_or_insert(now);
        self.linger(now.plus_ms(DATA_REMEMBERED_MS));
        if self.record.registration.is_none() {
            self.follow(peer);
        }
        let is_new = self.note_uplink(now, protocol);
        if is_first || is_new || self.record_is_stale(now) {
            self.save_record(now, out);
        }
        if is_first {
            let entry = Entry::first_heard(m, self.seen_at(Some(peer)), protocol);
            self.log(m, entry, out);
        }
    }

    /// Takes note of where a device without registration is. A bare datagram has no message id, so
    /// its port does not matter.
    fn follow(&mut self, peer: Peer) {
        let is_there = self.record.peer.map(|there| there.ip()) == Some(peer.ip());
        match peer.via {
            Via::Bare if is_there => {}
            Via::Bare | Via::Plain => self.move_to(peer),
        }
    }
}
