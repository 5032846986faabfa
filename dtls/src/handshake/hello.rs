//! How does a handshake begin? ClientHello, HelloVerifyRequest and ServerHello: RFC 5246 sections
//! 7.4.1.2 and 7.4.1.3, RFC 6347 section 4.2.1.

use crate::alert::AlertDescription;
use crate::key_schedule::RANDOM_LENGTH;
use crate::presentation::{Malformed, Reader, Writer};
use crate::record::{VERSION, VERSION_1_0};

use super::Refused;
use super::extension::Extensions;

pub(crate) const SESSION_ID_MAX: usize = 32;

/// RFC 5746 section 3.3: a client without the extension says the same as a cipher suite.
pub(crate) const EMPTY_RENEGOTIATION_INFO_SCSV: u16 = 0x00ff;

/// What precedes the cipher suites of a ClientHello: enough to judge its cookie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientHelloStart<'a> {
    pub(crate) version: u16,
    pub(crate) random: [u8; RANDOM_LENGTH],
    pub(crate) session_id: &'a [u8],
    pub(crate) cookie: &'a [u8],
}

/// A whole ClientHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientHello<'a> {
    pub(crate) start: ClientHelloStart<'a>,
    /// Numbers of two bytes each.
    pub(crate) cipher_suites: &'a [u8],
    pub(crate) extensions: Extensions<'a>,
}

/// A ServerHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerHello<'a> {
    pub(crate) random: [u8; RANDOM_LENGTH],
    pub(crate) session_id: &'a [u8],
    pub(crate) cipher_suite: u16,
    pub(crate) extensions: Extensions<'a>,
}

impl<'a> ClientHelloStart<'a> {
    pub(crate) fn decode(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let version = reader.u16()?;
        let random = reader.array()?;
        let session_id = reader.vector8()?;
        let cookie = reader.vector8()?;
        if session_id.len() > SESSION_ID_MAX {
            return Err(Malformed);
        }
        Ok(Self {
            version,
            random,
            session_id,
            cookie,
        })
    }
}

impl<'a> ClientHello<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, Refused> {
        let mut reader = Reader::new(body);
        let start = ClientHelloStart::decode(&mut reader)?;
        // Higher versions have lower numbers.
        if start.version >> 8 != 0xfe || start.version > VERSION {
            return Err(Refused(AlertDescription::PROTOCOL_VERSION));
        }
        let cipher_suites = reader.vector16()?;
        let compression_methods = reader.vector8()?;
        if cipher_suites.is_empty() || !cipher_suites.len().is_multiple_of(2) {
            return Err(Refused(AlertDescription::DECODE_ERROR));
        }
        if !compression_methods.contains(&0) {
            return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
        }
        let extensions = Extensions::decode(&mut reader)?;
        reader.end()?;
        Ok(Self {
            start,
            cipher_suites,
            extensions,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.put_u16(self.start.version);
        out.extend_from_slice(&self.start.random);
        out.put_vector8(self.start.session_id);
        out.put_vector8(self.start.cookie);
        out.put_vector16(self.cipher_suites);
        out.put_vector8(&[0]);
        self.extensions.encode(&mut out);
        out
    }

    /// Whether a suite with this number is offered.
    pub(crate) fn offers(&self, number: u16) -> bool {
        let numbers = self.cipher_suites.chunks_exact(2);
        numbers.into_iter().any(|it| it == number.to_be_bytes())
    }
}

impl<'a> ServerHello<'a> {
    pub(crate) fn decode(body: &'a [u8]) -> Result<Self, Refused> {
        let mut reader = Reader::new(body);
        if reader.u16()? != VERSION {
            return Err(Refused(AlertDescription::PROTOCOL_VERSION));
        }
        let random = reader.array()?;
        let session_id = reader.vector8()?;
        let cipher_suite = reader.u16()?;
        if session_id.len() > SESSION_ID_MAX {
            return Err(Refused(AlertDescription::DECODE_ERROR));
        }
        if reader.u8()? != 0 {
            return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
        }
        let extensions = Extensions::decode(&mut reader)?;
        reader.end()?;
        Ok(Self {
            random,
            session_id,
            cipher_suite,
            extensions,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.put_u16(VERSION);
        out.extend_from_slice(&self.random);
        out.put_vector8(self.session_id);
        out.put_u16(self.cipher_suite);
        out.push(0);
        self.extensions.encode(&mut out);
        out
    }
}

/// The body of a HelloVerifyRequest. RFC 6347 section 4.2.1 has the version of DTLS 1.0 in it,
/// whatever is negotiated later.
pub(crate) fn encode_hello_verify_request(cookie: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 + cookie.len());
    out.put_u16(VERSION_1_0);
    out.put_vector8(cookie);
    out
}

/// The cookie of a HelloVerifyRequest.
pub(crate) fn decode_hello_verify_request(body: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(body);
    reader.u16()?;
    let cookie = reader.vector8()?;
    reader.end()?;
    Ok(cookie)
}
