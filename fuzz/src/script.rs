//! How do bytes that nobody meant become the steps of a conversation?

/// What is left of the bytes; behind the end they are zeros.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Tells whether the conversation is over.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// Takes a number of three bytes.
    pub(crate) fn number(&mut self) -> u32 {
        let bytes = [self.byte(), self.byte(), self.byte()];
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// Takes up to so many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
