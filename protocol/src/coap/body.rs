//! How does a body grow that a peer sends in blocks? Its memory follows what came, never what was
//! announced, and ends at a limit.

/// The bytes that have come so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Body(Vec<u8>);

/// The body would be longer than it may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

impl Body {
    /// Adds a block at the end.
    pub(super) fn append(&mut self, block: &[u8], bytes_max: usize) -> Result<(), TooLong> {
        let length = self.0.len().saturating_add(block.len());
        if length > bytes_max {
            return Err(TooLong);
        }
        if length > self.0.capacity() {
            // Doubles as a vector does, but not beyond the limit.
            let room = length.max(self.0.len().saturating_mul(2)).min(bytes_max);
            self.0.reserve_exact(room.saturating_sub(self.0.len()));
        }
        self.0.extend_from_slice(block);
        Ok(())
    }

    /// Tells whether exactly these bytes are there, at this place.
    pub(super) fn holds(&self, offset: usize, block: &[u8]) -> bool {
        let there = self.0.get(offset..).unwrap_or_default();
        !block.is_empty() && there.starts_with(block)
    }

    /// Drops what is behind a place.
    pub(super) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
