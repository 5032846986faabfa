//! How does a body received in blocks grow? Its memory follows the received bytes, never the
//! announced size, and is limited.

/// The bytes received so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Body(Vec<u8>);

/// The body would exceed its limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

impl Body {
    /// Appends a block.
    pub(super) fn append(&mut self, block: &[u8], bytes_max: usize) -> Result<(), TooLong> {
        let length = self.0.len().saturating_add(block.len());
        if length > bytes_max {
            return Err(TooLong);
        }
        if length > self.0.capacity() {
            // Grows like a vector, but not beyond the limit.
            let room = length.max(self.0.len().saturating_mul(2)).min(bytes_max);
            self.0.reserve_exact(room.saturating_sub(self.0.len()));
        }
        self.0.extend_from_slice(block);
        Ok(())
    }

    /// Returns whether the body has exactly these bytes at an offset.
    pub(super) fn holds(&self, offset: usize, block: &[u8]) -> bool {
        let there = self.0.get(offset..).unwrap_or_default();
        !block.is_empty() && there.starts_with(block)
    }

    /// Drops everything after a length.
    pub(super) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns how many bytes of memory it occupies.
    pub(super) fn memory(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}
