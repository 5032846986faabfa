//! How does a server resume a session without keeping it? Session tickets: RFC 5077.
//!
//! ```text
//! key name 4 | nonce 24 | sealed by XChaCha20-Poly1305: the session | tag 16
//! ```

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::moment::Moment;
use crate::presentation::{Reader, Writer};

use super::Refused;
use super::resumption::Resumable;

const NAME_LENGTH: usize = 4;
const NONCE_LENGTH: usize = 24;

/// A key that seals tickets. Whoever has it can read every ticket that it sealed.
#[derive(Clone)]
pub struct TicketKey([u8; 32]);

impl TicketKey {
    /// The key with these bytes, which are to be random.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn name(&self) -> [u8; NAME_LENGTH] {
        let digest = Sha256::new()
            .chain_update(b"dtls ticket key")
            .chain_update(self.0)
            .finalize();
        let mut name = [0; NAME_LENGTH];
        name.copy_from_slice(&digest[..NAME_LENGTH]);
        name
    }

    /// Seals a session.
    pub(crate) fn seal(&self, session: &Resumable, moment: &mut Moment<'_>) -> Vec<u8> {
        let mut plain = Zeroizing::new(Vec::with_capacity(128));
        session.encode(&mut plain);
        let (name, nonce) = (self.name(), moment.random::<NONCE_LENGTH>());
        let payload = Payload {
            msg: &plain,
            aad: &name,
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.expect("a session is far shorter than the cipher's bound");
        [&name[..], &nonce, &sealed].concat()
    }

    /// The session in a ticket that one of these keys sealed.
    pub(crate) fn open(keys: &[Self], ticket: &[u8]) -> Option<Resumable> {
        let mut reader = Reader::new(ticket);
        let name = reader.array::<NAME_LENGTH>().ok()?;
        let nonce = reader.array::<NONCE_LENGTH>().ok()?;
        let payload = Payload {
            msg: reader.rest(),
            aad: &name,
        };
        let key = keys.iter().find(|key| key.name() == name)?;
        let plain = key.cipher().decrypt(&XNonce::from(nonce), payload).ok()?;
        let plain = Zeroizing::new(plain);
        let mut reader = Reader::new(&plain);
        let session = Resumable::decode(&mut reader).ok()?;
        reader.end().ok()?;
        Some(session)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&self.0).into())
    }
}

impl Drop for TicketKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey(..)")
    }
}

/// The body of a NewSessionTicket (RFC 5077 section 3.3).
pub(crate) fn encode_new_session_ticket(lifetime_s: u32, ticket: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(6 + ticket.len());
    out.extend_from_slice(&lifetime_s.to_be_bytes());
    out.put_vector16(ticket);
    out
}

/// The ticket of a NewSessionTicket.
pub(crate) fn decode_new_session_ticket(body: &[u8]) -> Result<&[u8], Refused> {
    let mut reader = Reader::new(body);
    reader.take(4)?;
    let ticket = reader.vector16()?;
    reader.end()?;
    Ok(ticket)
}
