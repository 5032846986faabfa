//! What a device says in several blocks, put together (RFC 7959 section 2.3): one body at a time,
//! no longer than what it may say in one datagram, and dropped when it does not go on.

use protocol::coap::assembly::{Assembly, Gathered};
use protocol::coap::code::Code;
use protocol::coap::recent::Remembered;

use crate::datagram::Datagram;
use crate::device::Device;
use crate::device::exchange::Meaning;
use crate::effect::Effects;
use crate::limits::{DATA_REMEMBERED_MS, TRANSFER_IDLE_MS};
use crate::moment::{Moment, Timestamp};
use crate::peer::Peer;

/// A body under way.
pub(super) struct Incoming {
    peer: Peer,
    assembly: Assembly,
}

impl Incoming {
    /// When it is dropped unless it goes on.
    pub(super) fn expires_at(&self) -> Timestamp {
        Timestamp::from_ms(self.assembly.expires_at(TRANSFER_IDLE_MS))
    }
}

impl Device {
    /// Whether a peer may say such a thing in blocks: nothing is put together for those who would
    /// be turned away.
    pub(super) fn may_say(&self, meaning: &Meaning, peer: Peer, now: Timestamp) -> bool {
        match meaning {
            Meaning::Register => self.admit(peer).is_ok(),
            Meaning::Update(location) => self.is_at(*location, peer),
            Meaning::Send => self.is_registered_at(peer, now),
            Meaning::Data => self.is_home(peer),
            Meaning::Deregister(_) | Meaning::Answer | Meaning::Ping | Meaning::Unsupported(_) => {
                false
            }
        }
    }

    /// Takes in a block; gives the whole once it was the last.
    pub(super) fn gather(
        &mut self,
        m: &mut Moment,
        datagram: &Datagram,
        out: &mut Effects,
    ) -> Option<Datagram> {
        let Datagram { peer, message } = datagram;
        self.note_awake(m.now());
        self.remember_visitor(*peer);
        self.linger(m.now().plus_ms(DATA_REMEMBERED_MS));
        let max = self.terms.rules.limits.data_bytes_max;
        let now_ms = m.now().as_ms();
        let gathered = match self.incoming_from(datagram) {
            Some(incoming) => incoming.assembly.take(now_ms, message, max),
            None => Gathered::Incomplete,
        };
        match gathered {
            Gathered::Whole(message) => {
                let peer = *peer;
                self.end_incoming(peer);
                return Some(Datagram { peer, message });
            }
            Gathered::Continue => self.answer(m, datagram, Code::CONTINUE, out),
            Gathered::Incomplete => {
                self.end_incoming(*peer);
                self.answer(m, datagram, Code::REQUEST_ENTITY_INCOMPLETE, out);
            }
            Gathered::TooLarge { .. } => {
                self.end_incoming(*peer);
                self.refuse_length(m, datagram, out);
            }
            Gathered::Malformed => {
                self.end_incoming(*peer);
                self.answer(m, datagram, Code::BAD_REQUEST, out);
            }
        }
        None
    }

    /// Answers that a body is too long, and how long it may be (RFC 7959 section 2.9.3).
    pub(super) fn refuse_length(&mut self, m: &mut Moment, datagram: &Datagram, out: &mut Effects) {
        let max = self.terms.rules.limits.data_bytes_max;
        let why = format!("what the device sent is longer than the {max} bytes that are taken");
        self.keep_unreadable(m, &why, &datagram.message.payload, out);
        let code = Code::REQUEST_ENTITY_TOO_LARGE;
        self.remember(m, datagram, Remembered::Answered(code));
        let answer = self.respond(&datagram.message, code);
        let answer = answer.with_size1(u32::try_from(max).unwrap_or(u32::MAX));
        Self::send(datagram.peer, &answer, out);
    }

    /// The body that a block is of: the one under way, or a new one.
    fn incoming_from(&mut self, datagram: &Datagram) -> Option<&mut Incoming> {
        let begins = datagram
            .message
            .block1()
            .is_some_and(|block| block.number() == 0);
        let under_way = &mut self.busy.get_or_insert_default().incoming;
        let is_its = under_way
            .as_ref()
            .is_some_and(|it| it.peer == datagram.peer);
        if begins && !is_its {
            *under_way = Some(Box::new(Incoming {
                peer: datagram.peer,
                assembly: Assembly::default(),
            }));
        }
        under_way
            .as_deref_mut()
            .filter(|it| it.peer == datagram.peer)
    }

    fn end_incoming(&mut self, peer: Peer) {
        if let Some(busy) = &mut self.busy {
            busy.incoming.take_if(|it| it.peer == peer);
        }
    }
}
