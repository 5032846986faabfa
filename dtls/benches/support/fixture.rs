//! What do a client and a server of a bench have besides their credentials?

use std::net::SocketAddr;

use dtls::{Entropy, Moment, Timestamp};

/// A moment, the same for all.
pub(crate) fn moment<'e>(entropy: &'e mut dyn Entropy) -> Moment<'e> {
    Moment {
        now: Timestamp::from_ms(1_800_000_000_000),
        entropy,
    }
}

/// SplitMix64: the cost of the operating system's entropy is not the crate's.
pub(crate) fn fill(state: &mut u64, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_be_bytes()[..chunk.len()]);
    }
}

/// Where the server is.
pub(crate) fn server_address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5_684))
}

/// Where the client is.
pub(crate) fn client_address() -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 40_000))
}
