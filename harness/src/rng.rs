//! Where does a simulation get its random numbers? From a seed: the same seed gives the same run.

/// A stream of random numbers from a seed (SplitMix64: small, fast, and not secret).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub const fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws 64 bits.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Draws 32 bits.
    pub const fn number_u32(&mut self) -> u32 {
        (self.number() >> 32) as u32
    }

    /// Draws 16 bits.
    pub const fn number_u16(&mut self) -> u16 {
        (self.number() >> 48) as u16
    }

    /// Draws a number from 0 up to, but not including, the bound; 0 for a bound of 0.
    pub const fn below(&mut self, bound: u32) -> u32 {
        ((self.number_u32() as u64 * bound as u64) >> 32) as u32
    }

    /// Whether an event with this probability happens.
    pub const fn hits(&mut self, percent: u8) -> bool {
        self.below(100) < percent as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut rng = Rng::from_seed(seed);
            [rng.number(), rng.number(), rng.number()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    // The first numbers of the reference implementation for seed 1234567.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut rng = Rng::from_seed(1_234_567);
        assert_eq!(rng.number(), 6_457_827_717_110_365_317);
        assert_eq!(rng.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_percentage_is_hit_that_often() {
        let mut rng = Rng::from_seed(1);
        let hits = (0..10_000).filter(|_| rng.hits(30)).count();
        assert!((2_800..3_200).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| !rng.hits(0)));
        assert!((0..1_000).all(|_| rng.hits(100)));
        assert!((0..1_000).all(|_| rng.below(3) < 3));
        assert_eq!(rng.below(0), 0);
    }
}
