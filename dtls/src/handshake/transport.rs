//! How do handshake messages get across? Numbers, fragments, flights and timers of RFC 6347
//! section 4.2, and the records of the epoch that the handshake leads to.

use std::net::SocketAddr;

use sha2::{Digest, Sha256};

use crate::config::Retransmission;
use crate::effect::Effects;
use crate::key_schedule::{MasterSecret, TranscriptHash};
use crate::moment::Timestamp;
use crate::presentation::Reader;
use crate::record::protection::NotAuthentic;
use crate::record::{ContentType, Record};
use crate::session::{EPOCH, Session};

use super::flight::{Flight, LastFlight, SizeLimits};
use super::message::{Fragment, Message, MessageType};
use super::reassembly::{Reassembly, Reception};

/// The most protected records that wait until the keys are known: a Finished, and what follows it.
/// As many contents may wait for the Finished; further ones are dropped (RFC 6347 section 4.1).
const EARLY_RECORDS_MAX: usize = 4;
const EARLY_BYTES_MAX: usize = 2_048;

/// The message layer of one handshake.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) limits: SizeLimits,
    incoming: Reassembly,
    transcript: Sha256,
    next_sequence: u16,
    flight: Flight,
    /// What the keys may be; several while a pre-shared key is exchanged for another. The first
    /// protected record tells which it is.
    proposals: Vec<Proposal>,
    /// Which of the proposals it is, once known.
    chosen: Option<usize>,
    has_changed_cipher_spec: bool,
    early: Vec<Box<[u8]>>,
    /// Authentic application data that has overtaken the Finished of the peer.
    overtaking: Vec<Box<[u8]>>,
    rejected_protected: bool,
    retransmission: Retransmission,
    timeout_ms: u64,
    begun_at: Timestamp,
    resend_at: Option<Timestamp>,
}

/// A secret that both sides may have, and the session that follows from it.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) master: MasterSecret,
    pub(crate) session: Session,
}

/// What a deadline means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    Nothing,
    Resend,
    GiveUp,
}

impl Transport {
    pub(crate) fn new(
        now: Timestamp,
        limits: SizeLimits,
        retransmission: Retransmission,
        first_sequence: u16,
        plain_sequence: u64,
    ) -> Self {
        Self {
            limits,
            incoming: Reassembly::starting_at(first_sequence),
            transcript: Sha256::new(),
            next_sequence: first_sequence,
            flight: Flight::numbered_from(plain_sequence),
            proposals: Vec::new(),
            chosen: None,
            has_changed_cipher_spec: false,
            early: Vec::new(),
            overtaking: Vec::new(),
            rejected_protected: false,
            retransmission,
            timeout_ms: retransmission.initial_ms,
            begun_at: now,
            resend_at: None,
        }
    }

    /// Takes a part of a message. A Finished is always protected, nothing else ever is: there is
    /// one handshake in an association.
    pub(crate) fn insert(&mut self, fragment: &Fragment<'_>, content: Protection) -> Reception {
        let expected = match fragment.message_type {
            MessageType::Finished => Protection::Protected,
            MessageType::HelloRequest
            | MessageType::ClientHello
            | MessageType::ServerHello
            | MessageType::HelloVerifyRequest
            | MessageType::NewSessionTicket
            | MessageType::Certificate
            | MessageType::ServerKeyExchange
            | MessageType::CertificateRequest
            | MessageType::ServerHelloDone
            | MessageType::CertificateVerify
            | MessageType::ClientKeyExchange => Protection::Plain,
        };
        if content != expected {
            return Reception::Dropped;
        }
        self.incoming.insert(fragment)
    }

    pub(crate) fn next_message(&mut self) -> Option<Message> {
        self.incoming.next_message()
    }

    /// Adds a received message to the transcript. Not HelloVerifyRequest, nor the ClientHello
    /// before it (RFC 6347 section 4.2.1).
    pub(crate) fn record(&mut self, message: &Message) {
        let mut bytes = Vec::with_capacity(message.body.len() + super::message::HEADER_LENGTH);
        message.as_fragment().encode(&mut bytes);
        self.transcript.update(&bytes);
    }

    pub(crate) fn transcript_hash(&self) -> TranscriptHash {
        self.transcript.clone().finalize().into()
    }

    pub(crate) fn restart_transcript(&mut self) {
        self.transcript = Sha256::new();
    }

    /// Begins our next flight: all of the peer's has arrived.
    pub(crate) fn begin_flight(&mut self) {
        self.flight.clear();
        self.timeout_ms = self.retransmission.initial_ms;
    }

    /// Stops the timer: the peer has begun to answer our flight.
    pub(crate) fn disarm(&mut self) {
        self.resend_at = None;
    }

    pub(crate) fn push(&mut self, message_type: MessageType, body: Vec<u8>) {
        let message = self.make(message_type, body);
        self.flight.push_plain(message);
    }

    /// Appends our Finished, and the change of keys before it.
    pub(crate) fn push_finished(&mut self, body: Vec<u8>) {
        let message = self.make(MessageType::Finished, body);
        self.flight.push_protected(message);
    }

    fn make(&mut self, message_type: MessageType, body: Vec<u8>) -> Message {
        let message = Message {
            message_type,
            sequence: self.next_sequence,
            body,
        };
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.record(&message);
        message
    }

    pub(crate) fn propose(&mut self, proposal: Proposal) {
        self.proposals.push(proposal);
    }

    /// Our own keys are used from now on, without waiting for a record of the peer.
    pub(crate) fn choose_only(&mut self, proposal: Proposal) {
        self.proposals = vec![proposal];
        self.chosen = Some(0);
    }

    pub(crate) fn chosen(&self) -> Option<&Proposal> {
        self.proposals.get(self.chosen?)
    }

    pub(crate) fn chosen_index(&self) -> usize {
        self.chosen.unwrap_or(0)
    }

    /// Takes a ChangeCipherSpec of the peer (RFC 5246 section 7.1). It may overtake the messages
    /// before it.
    pub(crate) fn change_cipher_spec(&mut self, fragment: &[u8]) {
        if fragment == [1] {
            self.has_changed_cipher_spec = true;
        }
    }

    /// Whether protected records can be read now.
    pub(crate) fn can_open(&self) -> bool {
        self.has_changed_cipher_spec && !self.proposals.is_empty()
    }

    /// Opens a protected record with the keys, or with any of those they may be.
    pub(crate) fn open(
        &mut self,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ContentType, NotAuthentic> {
        let chosen = self.chosen;
        for (index, proposal) in self.proposals.iter_mut().enumerate() {
            if chosen.is_some_and(|chosen| chosen != index) {
                continue;
            }
            if let Ok(opened) = proposal.session.open(record, out) {
                self.chosen = Some(index);
                return Ok(opened.content_type);
            }
        }
        Err(NotAuthentic)
    }

    /// Whether a protected record was not authentic, for the first time: its sender is told once.
    pub(crate) fn reject_protected(&mut self) -> bool {
        !std::mem::replace(&mut self.rejected_protected, true)
    }

    /// Whether the peer seems to have another key.
    pub(crate) fn has_rejected_protected(&self) -> bool {
        self.rejected_protected
    }

    /// Keeps a protected record that came before its keys.
    pub(crate) fn keep_early(&mut self, record: &Record<'_>) {
        if record.epoch == EPOCH && has_room(&self.early, record.fragment.len()) {
            self.early.push(record.to_bytes().into());
        }
    }

    pub(crate) fn take_early(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.early)
    }

    /// Keeps application data until the Finished that it has overtaken; false if there is too much.
    pub(crate) fn keep_overtaking(&mut self, content: Vec<u8>) -> bool {
        let is_kept = has_room(&self.overtaking, content.len());
        if is_kept {
            self.overtaking.push(content.into());
        }
        is_kept
    }

    pub(crate) fn take_overtaking(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.overtaking)
    }

    /// Sends our flight and arms the timer.
    pub(crate) fn send_flight(&mut self, now: Timestamp, peer: SocketAddr, out: &mut Effects) {
        self.resend_at = Some(now.plus_ms(self.timeout_ms));
        self.transmit(peer, out);
    }

    /// Sends our flight again because the peer has sent its own again.
    pub(crate) fn answer_repetition(&mut self, peer: SocketAddr, out: &mut Effects) {
        if self.flight.may_answer() {
            self.transmit(peer, out);
        }
    }

    /// Sends our flight again because nothing has come; waits twice as long for an answer.
    pub(crate) fn resend(&mut self, now: Timestamp, peer: SocketAddr, out: &mut Effects) {
        self.timeout_ms = (self.timeout_ms * 2).min(self.retransmission.max_ms);
        self.send_flight(now, peer, out);
    }

    fn transmit(&mut self, peer: SocketAddr, out: &mut Effects) {
        let chosen = self.chosen.unwrap_or(0);
        let session = self.proposals.get_mut(chosen).map(|it| &mut it.session);
        self.flight.transmit(self.limits, session, peer, out);
    }

    pub(crate) fn next_plain_sequence(&mut self) -> u64 {
        self.flight.next_plain_sequence()
    }

    /// When [`Self::due`] is to be asked.
    pub(crate) fn deadline(&self) -> Timestamp {
        let end = self.begun_at.plus_ms(self.retransmission.give_up_ms);
        self.resend_at.map_or(end, |at| at.min(end))
    }

    pub(crate) fn due(&self, now: Timestamp) -> Due {
        if now >= self.begun_at.plus_ms(self.retransmission.give_up_ms) {
            return Due::GiveUp;
        }
        match self.resend_at {
            Some(at) if at <= now => Due::Resend,
            Some(_) | None => Due::Nothing,
        }
    }

    /// Takes the session and the flight that the peer may ask for again.
    pub(crate) fn finish(&mut self) -> Option<(Session, LastFlight)> {
        let proposal = self.proposals.get(self.chosen?)?;
        let session = proposal.session.clone();
        let flight = std::mem::take(&mut self.flight);
        let limits = self.limits;
        Some((session, LastFlight { flight, limits }))
    }
}

fn has_room(kept: &[Box<[u8]>], length: usize) -> bool {
    let bytes: usize = kept.iter().map(|it| it.len()).sum();
    kept.len() < EARLY_RECORDS_MAX && bytes + length <= EARLY_BYTES_MAX
}

/// How a fragment came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protection {
    Plain,
    Protected,
}

impl Record<'_> {
    /// The record as it came.
    fn to_bytes(self) -> Vec<u8> {
        use crate::presentation::Writer;
        let mut out = Vec::with_capacity(self.fragment.len() + 24);
        out.push(self.content_type as u8);
        out.put_u16(self.version);
        out.extend_from_slice(&self.number().to_be_bytes());
        out.extend_from_slice(self.connection_id);
        out.put_vector16(self.fragment);
        out
    }

    /// Reads a record that was kept.
    pub(crate) fn of_kept(bytes: &[u8], connection_id_length: usize) -> Option<Record<'_>> {
        Record::decode(&mut Reader::new(bytes), connection_id_length).ok()
    }
}
