//! How do arbitrary bytes become the steps of a conversation?

/// The remaining bytes; after the end they are zeros.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether the conversation is over.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// A number of three bytes.
    pub(crate) fn number(&mut self) -> u32 {
        let bytes = [self.byte(), self.byte(), self.byte()];
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// Up to this many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
