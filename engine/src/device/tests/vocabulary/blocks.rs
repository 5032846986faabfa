//! The vocabulary of block-wise transfers.

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::message::Message;

use super::DeviceFixture;
use crate::limits::Limits;

/// Limits by which anything longer than 16 bytes is sent in blocks.
pub(in crate::device::tests) fn small_blocks() -> Limits {
    Limits {
        block: BlockSize::MIN,
        ..Limits::default()
    }
}

/// The block of 16 bytes with a number.
pub(in crate::device::tests) fn block(number: u32, more: More) -> Block {
    Block::new(number, more, BlockSize::MIN)
}

impl DeviceFixture {
    /// A message of the device in blocks of 16 bytes, each in a message of its own.
    pub(in crate::device::tests) fn in_blocks(&mut self, whole: &Message) -> Vec<Message> {
        let parts: Vec<&[u8]> = whole.payload.chunks(16).collect();
        let last = parts.len() - 1;
        let numbered = (0..).zip(parts);
        numbered
            .map(|(number, part)| {
                let more = match usize::try_from(number) {
                    Ok(number) if number == last => More::No,
                    Ok(_) | Err(_) => More::Yes,
                };
                let mut message = whole.clone().with_block1(block(number, more));
                message.message_id = self.device_id();
                message.with_payload(part)
            })
            .collect()
    }

    /// The device answers the last request with a block of 16 bytes.
    pub(in crate::device::tests) fn answer_in_block(
        &self,
        number: u32,
        more: More,
        payload: impl Into<Vec<u8>>,
    ) -> Message {
        self.piggybacked(Code::CONTENT)
            .with_block2(block(number, more))
            .with_payload(payload)
    }

    /// The device took a block and awaits the next.
    pub(in crate::device::tests) fn goes_on(&self, number: u32) -> Message {
        self.piggybacked(Code::CONTINUE)
            .with_block1(block(number, More::Yes))
    }
}
