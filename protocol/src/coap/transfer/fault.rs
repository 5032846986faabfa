//! Why can an answer not be put together from its blocks, or a body not be sent in blocks?

use thiserror::Error;

use crate::coap::block::Misfit;

/// What the peer did against RFC 7959, or against our limit.
#[derive(Clone, Copy, Debug, Eq, Error, Hash, PartialEq)]
pub enum TransferFault {
    /// A block without the option that says which it is.
    #[error("a block does not say which it is")]
    BlockMissing,
    /// The body changed on its way, and again after a second beginning.
    #[error("the body changes while it is transferred")]
    Changed,
    /// The last block was answered as if more followed.
    #[error("the last block is answered with a demand for more")]
    ContinuedPastEnd,
    /// A block with more bytes than its size, or with fewer though others follow.
    #[error("a block is not as long as it says")]
    NotFilled,
    /// The block size that the standard reserves.
    #[error("a block has the reserved size")]
    ReservedSize,
    /// The body is longer than it may be.
    #[error("the body is longer than {max} bytes")]
    TooLong {
        /// The longest it may be, in bytes.
        max: usize,
    },
    /// Another block than the one asked for or sent.
    #[error("another block came than the one that was asked for")]
    WrongNumber,
    /// A block larger than the one asked for.
    #[error("a larger block came than was asked for")]
    WrongSize,
}

impl From<Misfit> for TransferFault {
    fn from(misfit: Misfit) -> TransferFault {
        match misfit {
            Misfit::ReservedSize => TransferFault::ReservedSize,
            Misfit::NotFilled => TransferFault::NotFilled,
        }
    }
}
