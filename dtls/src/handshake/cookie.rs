//! Does a ClientHello come from where it says? The stateless cookie of RFC 6347 section 4.2.1.
//!
//! A cookie is a keyed hash of the address, of what the hello says before its cookie, and of the
//! time, in steps. Nothing is stored for it, and a hello without one costs a hash and no more.

use std::net::{IpAddr, SocketAddr};

use subtle::ConstantTimeEq;

use crate::key_schedule::hmac_sha256;
use crate::moment::Timestamp;

use super::hello::ClientHelloStart;

/// A cookie is valid until the end of the step after its own: long enough for a network with round
/// trips of 10 seconds, short enough that a collection of cookies is worth little.
const STEP_MS: u64 = 30_000;

const LENGTH: usize = 16;

/// The cookie for a hello from this address at this time.
pub(crate) fn make(
    secret: &[u8; 32],
    now: Timestamp,
    peer: SocketAddr,
    hello: &ClientHelloStart<'_>,
) -> [u8; LENGTH] {
    of_step(secret, now.as_ms() / STEP_MS, peer, hello)
}

/// Whether the hello has a cookie that was made for it lately.
pub(crate) fn is_valid(
    secret: &[u8; 32],
    now: Timestamp,
    peer: SocketAddr,
    hello: &ClientHelloStart<'_>,
) -> bool {
    if hello.cookie.len() != LENGTH {
        return false;
    }
    let step = now.as_ms() / STEP_MS;
    [step, step.wrapping_sub(1)].into_iter().any(|step| {
        let expected = of_step(secret, step, peer, hello);
        hello.cookie.ct_eq(&expected).into()
    })
}

fn of_step(
    secret: &[u8; 32],
    step: u64,
    peer: SocketAddr,
    hello: &ClientHelloStart<'_>,
) -> [u8; LENGTH] {
    let address = match peer.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let parts: [&[u8]; 6] = [
        &step.to_be_bytes(),
        &address.octets(),
        &peer.port().to_be_bytes(),
        &hello.version.to_be_bytes(),
        &hello.random,
        hello.session_id,
    ];
    let hash = hmac_sha256(secret, &parts);
    let mut cookie = [0; LENGTH];
    cookie.copy_from_slice(&hash[..LENGTH]);
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_one_hello_from_one_address_for_a_while() {
        let secret = [7; 32];
        let now = Timestamp::from_ms(1_000_000);
        let peer: SocketAddr = "192.0.2.1:5684".parse().unwrap();
        let hello = ClientHelloStart {
            version: 0xfefd,
            random: [1; 32],
            session_id: &[],
            cookie: &[],
        };
        let cookie = make(&secret, now, peer, &hello);
        let with_cookie = ClientHelloStart {
            cookie: &cookie,
            ..hello
        };
        let check = |now, peer, hello| is_valid(&secret, now, peer, &hello);
        assert!(check(now, peer, with_cookie));
        assert!(check(now.plus_ms(STEP_MS), peer, with_cookie));
        assert!(!check(now.plus_ms(2 * STEP_MS), peer, with_cookie));
        assert!(!check(now, "192.0.2.1:5685".parse().unwrap(), with_cookie));
        assert!(!check(now, "192.0.2.2:5684".parse().unwrap(), with_cookie));
        let random = [2; 32];
        assert!(!check(
            now,
            peer,
            ClientHelloStart {
                random,
                ..with_cookie
            }
        ));
        assert!(!check(now, peer, hello));
    }
}
