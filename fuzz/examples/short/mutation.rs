//! Which input is tried next?

/// The longest input: codecs show their faults in few bytes.
const LENGTH_MAX: usize = 4_096;

/// The maximum number of changes to an input.
const CHANGES_MAX: usize = 6;

/// Bytes that decoders branch on: ends of ranges, wrong lengths, marks of JSON, CBOR, XML and
/// links.
const PIECES: [&[u8]; 28] = [
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x9f",
    b"\xbf",
    b"\x7f\xff",
    b"\xf9\x7e\x00",
    b"\xf9\x7c\x00",
    b"\xc4\x82\x28\x1b",
    b"\xc2\x41",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"1e308",
    b"-0.0",
    b"\"",
    b"{\"",
    b"[",
    b"\\u0000",
    b"/65536",
    b"<!--",
    b"&amp;",
    b",</",
];

/// Mutates inputs, reproducibly for the same seed.
pub(crate) struct Mutator {
    state: u64,
}

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Changes one input of the pool in a few places.
    pub(crate) fn next(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.pick(pool).cloned().unwrap_or_default();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut input, pool);
        }
        input.truncate(LENGTH_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let (start, end) = self.range(input.len());
        match self.below(8) {
            0 => self.flip_bit(input),
            1 => {
                let byte = self.random() as u8;
                input.insert(start, byte);
            }
            2 => drop(input.drain(start..end)),
            3 => {
                let piece = self.pick(&PIECES).copied().unwrap_or_default();
                input.splice(start..start, piece.iter().copied());
            }
            4 => {
                let piece = self.pick(&PIECES).copied().unwrap_or_default();
                input.splice(start..end, piece.iter().copied());
            }
            5 => {
                let again = input.get(start..end).unwrap_or_default().to_vec();
                input.splice(end..end, again);
            }
            6 => {
                let other = self.pick(pool).cloned().unwrap_or_default();
                let (from, to) = self.range(other.len());
                let part = other.get(from..to).unwrap_or_default().to_vec();
                input.splice(start..end, part);
            }
            _ => self.shift_byte(input),
        }
    }

    fn flip_bit(&mut self, input: &mut [u8]) {
        let (place, bit) = (self.below(input.len()), self.below(8));
        if let Some(byte) = input.get_mut(place) {
            *byte ^= 1 << bit;
        }
    }

    /// Changes a byte by a small amount: a length, a digit, a type.
    fn shift_byte(&mut self, input: &mut [u8]) {
        let (place, by) = (self.below(input.len()), self.below(9) as u8);
        if let Some(byte) = input.get_mut(place) {
            *byte = byte.wrapping_add(by).wrapping_sub(4);
        }
    }

    /// A range within an input of this length, short ones more often.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let longest = 1 << self.below(10);
        let end = start + self.below(longest + 1);
        (start, end.min(length))
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// A number below the bound; zero if there is none.
    fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        (self.random() % bound) as usize
    }

    /// The next number of SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
