//! How do time and randomness reach the crate? With each call, from the caller.

use std::fmt;

/// Milliseconds since the Unix epoch.
///
/// Tickets and exported sessions carry times across a restart, so the origin has to be the same in
/// every process.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The instant so many milliseconds after the epoch.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    pub const fn as_ms(self) -> u64 {
        self.0
    }

    /// The instant so many milliseconds later; it saturates.
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds since `earlier`; zero if that is later.
    pub const fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A source of unpredictable bytes, such as the operating system's.
pub trait Entropy {
    /// Fills the buffer.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Entropy for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// When a call happens, and the randomness it may use.
pub struct Moment<'e> {
    /// The time.
    pub now: Timestamp,
    /// The randomness: of hellos, session ids, Connection IDs, tickets and ephemeral keys.
    pub entropy: &'e mut dyn Entropy,
}

impl Moment<'_> {
    /// Fresh random bytes.
    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }
}

impl fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Moment({} ms)", self.now.as_ms())
    }
}
