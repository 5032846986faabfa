//! Why can a response not be assembled from its blocks, or a body not be sent in blocks?

use thiserror::Error;

use crate::coap::block::BlockFault;

/// How the peer violated RFC 7959, or exceeded our limit.
#[derive(Clone, Copy, Debug, Eq, Error, Hash, PartialEq)]
pub enum TransferFault {
    /// A block without its Block option.
    #[error("a block has no Block option")]
    BlockMissing,
    /// The body changed during the transfer, and again after a restart.
    #[error("the body changed during the transfer")]
    Changed,
    /// The last block was answered as if more followed.
    #[error("the device asked for more blocks after the last one")]
    ContinuedPastEnd,
    /// A block with more bytes than its size, or with fewer although others follow.
    #[error("a block does not match its Block option")]
    NotFilled,
    /// The block size that the standard reserves.
    #[error("a block has the reserved block size")]
    ReservedSize,
    /// The body is longer than accepted.
    #[error("the body is longer than {max} bytes")]
    TooLong {
        /// The longest accepted body, in bytes.
        max: usize,
    },
    /// A block other than the one requested or sent.
    #[error("the received block is not the requested one")]
    WrongNumber,
    /// A block larger than requested.
    #[error("the received block is larger than requested")]
    WrongSize,
}

impl From<BlockFault> for TransferFault {
    fn from(misfit: BlockFault) -> TransferFault {
        match misfit {
            BlockFault::ReservedSize => TransferFault::ReservedSize,
            BlockFault::NotFilled => TransferFault::NotFilled,
        }
    }
}
