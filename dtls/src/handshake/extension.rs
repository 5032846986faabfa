//! Which extensions do the hellos have? RFC 5246 section 7.4.1.4.

use crate::alert::AlertDescription;
use crate::cipher_suite::{CipherSuite, RecordCipher};
use crate::presentation::{Reader, Writer};
use crate::record::PLAINTEXT_MAX;

use super::Refused;

const MAX_FRAGMENT_LENGTH: u16 = 1;
const SUPPORTED_GROUPS: u16 = 10;
const EC_POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const CLIENT_CERTIFICATE_TYPE: u16 = 19;
const SERVER_CERTIFICATE_TYPE: u16 = 20;
const ENCRYPT_THEN_MAC: u16 = 22;
const EXTENDED_MASTER_SECRET: u16 = 23;
const RECORD_SIZE_LIMIT: u16 = 28;
const SESSION_TICKET: u16 = 35;
const CONNECTION_ID: u16 = 54;
const RETURN_ROUTABILITY_CHECK: u16 = 61;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// The most extensions of a hello; the work per hello is bounded.
const EXTENSIONS_MAX: usize = 64;

/// The extensions of a hello that mean something here; others are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extensions<'a> {
    /// RFC 6066 section 4: a code for a length.
    pub(crate) max_fragment_length: Option<u8>,
    /// RFC 8422 section 5.1.1: numbers of two bytes each.
    pub(crate) supported_groups: Option<&'a [u8]>,
    /// RFC 5246 section 7.4.1.4.1: pairs of hash and signature.
    pub(crate) signature_algorithms: Option<&'a [u8]>,
    /// RFC 7250: the list of a client, or the one value of a server.
    pub(crate) client_certificate_type: Option<&'a [u8]>,
    /// RFC 7250.
    pub(crate) server_certificate_type: Option<&'a [u8]>,
    /// RFC 7366.
    pub(crate) encrypt_then_mac: bool,
    /// RFC 7627.
    pub(crate) extended_master_secret: bool,
    /// RFC 8449.
    pub(crate) record_size_limit: Option<u16>,
    /// RFC 5077: empty to ask for a ticket.
    pub(crate) session_ticket: Option<&'a [u8]>,
    /// RFC 9146: what records to the sender of the hello are to carry.
    pub(crate) connection_id: Option<&'a [u8]>,
    /// RFC 9853: only with a Connection ID.
    pub(crate) return_routability_check: bool,
    /// RFC 5746: empty in a first handshake.
    pub(crate) renegotiation_info: Option<&'a [u8]>,
    /// RFC 8422 section 5.1.2 of a server; ours are all uncompressed.
    pub(crate) ec_point_formats: bool,
}

impl<'a> Extensions<'a> {
    /// Reads what follows the fixed part of a hello, to its end.
    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, Refused> {
        let mut found = Self::default();
        if reader.is_empty() {
            return Ok(found);
        }
        let mut list = Reader::new(reader.vector16()?);
        let mut seen: [u16; EXTENSIONS_MAX] = [0; EXTENSIONS_MAX];
        let mut count = 0;
        while !list.is_empty() {
            let number = list.u16()?;
            let content = list.vector16()?;
            let place = seen.get_mut(count).ok_or(DECODE_ERROR)?;
            *place = number;
            if seen[..count].contains(&number) {
                return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
            }
            count += 1;
            found.take(number, content)?;
        }
        Ok(found)
    }

    fn take(&mut self, number: u16, content: &'a [u8]) -> Result<(), Refused> {
        let mut reader = Reader::new(content);
        match number {
            MAX_FRAGMENT_LENGTH => self.max_fragment_length = Some(reader.u8()?),
            SUPPORTED_GROUPS => self.supported_groups = Some(reader.vector16()?),
            EC_POINT_FORMATS => {
                reader.vector8()?;
                self.ec_point_formats = true;
            }
            SIGNATURE_ALGORITHMS => self.signature_algorithms = Some(reader.vector16()?),
            CLIENT_CERTIFICATE_TYPE => self.client_certificate_type = Some(reader.rest()),
            SERVER_CERTIFICATE_TYPE => self.server_certificate_type = Some(reader.rest()),
            ENCRYPT_THEN_MAC => self.encrypt_then_mac = true,
            EXTENDED_MASTER_SECRET => self.extended_master_secret = true,
            RECORD_SIZE_LIMIT => self.record_size_limit = Some(reader.u16()?),
            SESSION_TICKET => self.session_ticket = Some(reader.rest()),
            CONNECTION_ID => self.connection_id = Some(reader.vector8()?),
            RETURN_ROUTABILITY_CHECK => self.return_routability_check = true,
            RENEGOTIATION_INFO => self.renegotiation_info = Some(reader.vector8()?),
            _ => return Ok(()),
        }
        Ok(reader.end()?)
    }

    /// Appends them; nothing if there are none.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_nested16(|out| self.put_all(out));
        if out.len() == start + 2 {
            out.truncate(start);
        }
    }

    /// The longest plaintext that the peer accepts in a record. A record size limit goes before a
    /// maximum fragment length (RFC 8449 section 5).
    pub(crate) fn plaintext_max(&self) -> Result<u16, Refused> {
        match (self.record_size_limit, self.max_fragment_length) {
            (Some(limit), _) if limit < RECORD_SIZE_LIMIT_MIN => {
                Err(Refused(AlertDescription::ILLEGAL_PARAMETER))
            }
            (Some(limit), _) => Ok(limit.min(PLAINTEXT_MAX as u16)),
            (None, Some(code)) => fragment_length(code),
            (None, None) => Ok(PLAINTEXT_MAX as u16),
        }
    }

    /// The cipher of records with this suite, if these are the extensions that both sides have.
    pub(crate) fn record_cipher(&self, suite: CipherSuite) -> RecordCipher {
        let cipher = suite.record_cipher();
        match self.encrypt_then_mac {
            true => cipher,
            false => cipher.without_encrypt_then_mac(),
        }
    }

    fn put_all(&self, out: &mut Vec<u8>) {
        if let Some(info) = self.renegotiation_info {
            put(out, RENEGOTIATION_INFO, |out| out.put_vector8(info));
        }
        if self.encrypt_then_mac {
            put(out, ENCRYPT_THEN_MAC, |_| ());
        }
        if self.extended_master_secret {
            put(out, EXTENDED_MASTER_SECRET, |_| ());
        }
        if let Some(code) = self.max_fragment_length {
            put(out, MAX_FRAGMENT_LENGTH, |out| out.push(code));
        }
        if let Some(limit) = self.record_size_limit {
            put(out, RECORD_SIZE_LIMIT, |out| out.put_u16(limit));
        }
        if let Some(groups) = self.supported_groups {
            put(out, SUPPORTED_GROUPS, |out| out.put_vector16(groups));
        }
        if self.ec_point_formats {
            put(out, EC_POINT_FORMATS, |out| out.put_vector8(&[0]));
        }
        if let Some(algorithms) = self.signature_algorithms {
            put(out, SIGNATURE_ALGORITHMS, |out| {
                out.put_vector16(algorithms)
            });
        }
        if let Some(types) = self.client_certificate_type {
            put(out, CLIENT_CERTIFICATE_TYPE, |out| {
                out.extend_from_slice(types)
            });
        }
        if let Some(types) = self.server_certificate_type {
            put(out, SERVER_CERTIFICATE_TYPE, |out| {
                out.extend_from_slice(types)
            });
        }
        if let Some(ticket) = self.session_ticket {
            put(out, SESSION_TICKET, |out| out.extend_from_slice(ticket));
        }
        if let Some(connection_id) = self.connection_id {
            put(out, CONNECTION_ID, |out| out.put_vector8(connection_id));
        }
        if self.return_routability_check {
            put(out, RETURN_ROUTABILITY_CHECK, |_| ());
        }
    }
}

const DECODE_ERROR: Refused = Refused(AlertDescription::DECODE_ERROR);

fn put(out: &mut Vec<u8>, number: u16, content: impl FnOnce(&mut Vec<u8>)) {
    out.put_u16(number);
    out.put_nested16(content);
}

/// The length that a code of max_fragment_length stands for (RFC 6066 section 4).
fn fragment_length(code: u8) -> Result<u16, Refused> {
    match code {
        1..=4 => Ok(256 << code),
        _ => Err(Refused(AlertDescription::ILLEGAL_PARAMETER)),
    }
}

/// RFC 8449 section 4.
const RECORD_SIZE_LIMIT_MIN: u16 = 64;
