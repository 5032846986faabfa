//! The protection of an established session: keys, record numbers and limits.

use crate::cipher_suite::CipherSuite;
use crate::key_schedule::TrafficKeys;
use crate::presentation::{Malformed, Reader, Writer};
use crate::record::protection::{NotAuthentic, TrafficKey};
use crate::record::replay::ReplayWindow;
use crate::record::{ContentType, HEADER_LENGTH, Record};

/// The only epoch with protection: renegotiation is refused.
pub(crate) const EPOCH: u16 = 1;
const FIRST_NUMBER: u64 = (EPOCH as u64) << 48;
/// RFC 6347 section 4.1: a sequence number must never repeat.
const LAST_NUMBER: u64 = FIRST_NUMBER + (1 << 48) - 1;

/// Reads and writes the protected records of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    read: TrafficKey,
    write: TrafficKey,
    /// Epoch and sequence number of the next record.
    next_number: u64,
    window: ReplayWindow,
    /// What records to the peer carry; empty: no Connection ID.
    peer_connection_id: Box<[u8]>,
    pub(crate) suite: CipherSuite,
    /// Whether records of the peer carry a Connection ID of ours.
    pub(crate) has_connection_id: bool,
    /// Whether both sides answer challenges at new addresses (RFC 9853).
    pub(crate) checks_paths: bool,
    /// The longest plaintext in a record that the peer accepts.
    plaintext_max: u16,
}

/// What both hellos agreed on for the records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordParameters {
    pub(crate) peer_connection_id: Box<[u8]>,
    pub(crate) has_connection_id: bool,
    pub(crate) checks_paths: bool,
    pub(crate) plaintext_max: u16,
}

/// What was in a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Opened {
    pub(crate) content_type: ContentType,
    /// No record with a higher number was received before.
    pub(crate) is_newest: bool,
}

/// All numbers of the session were used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Exhausted;

impl Session {
    /// The session as the client has it.
    pub(crate) fn of_client(
        suite: CipherSuite,
        keys: TrafficKeys,
        parameters: RecordParameters,
    ) -> Self {
        Self::new(suite, keys.server, keys.client, parameters)
    }

    /// The session as the server has it.
    pub(crate) fn of_server(
        suite: CipherSuite,
        keys: TrafficKeys,
        parameters: RecordParameters,
    ) -> Self {
        Self::new(suite, keys.client, keys.server, parameters)
    }

    fn new(
        suite: CipherSuite,
        read: TrafficKey,
        write: TrafficKey,
        parameters: RecordParameters,
    ) -> Self {
        Self {
            read,
            write,
            next_number: FIRST_NUMBER,
            window: ReplayWindow::default(),
            peer_connection_id: parameters.peer_connection_id,
            suite,
            has_connection_id: parameters.has_connection_id,
            checks_paths: parameters.checks_paths,
            plaintext_max: parameters.plaintext_max,
        }
    }

    /// Appends a protected record.
    pub(crate) fn seal(
        &mut self,
        content_type: ContentType,
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        if self.next_number > LAST_NUMBER {
            return Err(Exhausted);
        }
        self.write.seal(
            content_type,
            self.next_number,
            &self.peer_connection_id,
            plaintext,
            out,
        );
        self.next_number += 1;
        Ok(())
    }

    /// Appends the plaintext of a record that is authentic and was not received before.
    pub(crate) fn open(
        &mut self,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, NotAuthentic> {
        // RFC 9146 section 3: once a Connection ID is agreed on, every protected record has it.
        let has_connection_id = record.content_type == ContentType::Cid;
        if record.epoch != EPOCH
            || has_connection_id != self.has_connection_id
            || !self.window.is_fresh(record.sequence)
        {
            return Err(NotAuthentic);
        }
        let content_type = self.read.open(record, out)?;
        let is_newest = self.window.is_newest(record.sequence);
        self.window.mark(record.sequence);
        Ok(Opened {
            content_type,
            is_newest,
        })
    }

    /// The longest content of one record.
    pub(crate) fn content_max(&self) -> usize {
        // The type inside a record with a Connection ID counts as plaintext.
        let inner_type = usize::from(!self.peer_connection_id.is_empty());
        usize::from(self.plaintext_max).saturating_sub(inner_type)
    }

    /// The most that a record adds to its content.
    pub(crate) fn overhead_max(&self) -> usize {
        let connection_id = match self.peer_connection_id.len() {
            0 => 0,
            length => length + 1,
        };
        HEADER_LENGTH + connection_id + self.suite.record_cipher().overhead_max()
    }

    /// Whether its records authenticate before they encrypt.
    pub(crate) fn has_bare_cbc(&self) -> bool {
        self.read.is_bare_cbc()
    }

    /// Appends the session as it continues in another process.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.suite.number());
        for key in [&self.read, &self.write] {
            for part in key.parts() {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(&self.next_number.to_be_bytes());
        for number in self.window.to_numbers() {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.put_vector8(&self.peer_connection_id);
        let flags = u8::from(self.has_connection_id) | u8::from(self.checks_paths) << 1;
        out.push(flags | u8::from(self.has_bare_cbc()) << 2);
        out.put_u16(self.plaintext_max);
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let suite = CipherSuite::from_number(reader.u16()?).ok_or(Malformed)?;
        let cipher = suite.record_cipher();
        let [first, second] = cipher.key_parts();
        let mut parts = || Ok([reader.take(first)?, reader.take(second)?]);
        let (read, write) = (parts()?, parts()?);
        let next_number = reader.u64()?;
        let window = ReplayWindow::from_numbers([reader.u64()?, reader.u64()?]);
        let peer_connection_id = reader.vector8()?.into();
        let flags = reader.u8()?;
        let has_bare_cbc = flags & 4 != 0;
        if flags > 7 || has_bare_cbc && !suite.has_cbc() {
            return Err(Malformed);
        }
        let cipher = match has_bare_cbc {
            true => cipher.without_encrypt_then_mac(),
            false => cipher,
        };
        Ok(Self {
            read: TrafficKey::new(cipher, read),
            write: TrafficKey::new(cipher, write),
            next_number,
            window,
            peer_connection_id,
            suite,
            has_connection_id: flags & 1 != 0,
            checks_paths: flags & 2 != 0,
            plaintext_max: reader.u16()?,
        })
    }
}
