//! Why can an answer not be put together from its blocks, or a body not be sent in blocks?

use thiserror::Error;

use crate::coap::block::BlockFault;

/// What the peer did against RFC 7959, or against our limit.
#[derive(Clone, Copy, Debug, Eq, Error, Hash, PartialEq)]
pub enum TransferFault {
    /// A block without the option that says which it is.
    #[error("a block has no Block option")]
    BlockMissing,
    /// The body changed on its way, and again after a second beginning.
    #[error("the body changed during the transfer")]
    Changed,
    /// The last block was answered as if more followed.
    #[error("the device asked for more blocks after the last one")]
    ContinuedPastEnd,
    /// A block with more bytes than its size, or with fewer though others follow.
    #[error("a block does not match its Block option")]
    NotFilled,
    /// The block size that the standard reserves.
    #[error("a block has the reserved block size")]
    ReservedSize,
    /// The body is longer than it may be.
    #[error("the body is longer than {max} bytes")]
    TooLong {
        /// The longest it may be, in bytes.
        max: usize,
    },
    /// Another block than the one asked for or sent.
    #[error("the received block is not the requested one")]
    WrongNumber,
    /// A block larger than the one asked for.
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
