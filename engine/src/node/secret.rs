//! What do nodes derive from the secret that they share?

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The shortest secret: from what a node shows in a handshake, a shorter one could be guessed.
pub const SECRET_BYTES_MIN: usize = 32;

/// The private key that nodes prove themselves with to each other, as the seed of an Ed25519 key
/// (RFC 8032 section 5.1.5). The same secret always gives the same key.
pub fn private_key_of(secret: &[u8]) -> Zeroizing<[u8; 32]> {
    let mac = Hmac::<Sha256>::new_from_slice(secret);
    let mut mac = mac.expect("HMAC takes keys of any length");
    mac.update(b"signalbox private key of nodes");
    Zeroizing::new(mac.finalize().into_bytes().into())
}
