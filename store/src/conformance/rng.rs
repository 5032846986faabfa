//! Where does random data come from? From a seed that can be set.

use std::env;

/// The environment variable that sets the seed.
const SEED: &str = "STORE_SEED";

/// A stream of numbers determined by a seed (SplitMix64).
pub struct Rng(u64);

impl Rng {
    /// The stream of the seed in the environment, or of a new one, which is printed.
    pub fn from_seed_asked_for() -> Self {
        let seed = match env::var(SEED) {
            Ok(text) => text.parse().expect("the seed is a number"),
            Err(_) => getrandom::u64().expect("the operating system has random bytes"),
        };
        eprintln!("{SEED}={seed}");
        Self(seed)
    }

    /// Draws the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// One of several things.
    pub fn one_of<T: Clone>(&mut self, things: &[T]) -> T {
        let bound = u64::try_from(things.len()).expect("a length");
        let index = usize::try_from(self.below(bound)).expect("below a length");
        things[index].clone()
    }

    /// One of several things, or nothing three times out of four.
    pub fn rarely<T: Clone>(&mut self, things: &[T]) -> Option<T> {
        (self.below(4) == 0).then(|| self.one_of(things))
    }

    /// One of several things, or nothing.
    pub fn maybe<T: Clone>(&mut self, things: &[T]) -> Option<T> {
        (self.below(2) == 0).then(|| self.one_of(things))
    }
}
