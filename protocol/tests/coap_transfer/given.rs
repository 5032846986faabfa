//! The device and the clock of the transfer tests.

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{
    FreshIds, Transfer, TransferFault, TransferReception, TransferRules, UploadPosition,
};

pub(crate) const IDLE_MS: i64 = 247_000;
pub(crate) const ANSWER_BYTES_MAX: usize = 1_000;
pub(crate) const PROCEEDS: TransferReception = TransferReception::Proceeds { acknowledge: None };
pub(crate) const ANSWERED: TransferReception = TransferReception::Answered {
    acknowledge: None,
    whole: None,
};

pub(crate) fn rules(block_bytes: u16) -> TransferRules<'static> {
    TransferRules {
        transmission: &Transmission::STANDARD,
        block: size(block_bytes),
        answer_bytes_max: ANSWER_BYTES_MAX,
        idle_ms: IDLE_MS,
    }
}

pub(crate) fn size(bytes: u16) -> BlockSize {
    BlockSize::of_bytes(bytes).expect("a size of blocks")
}

/// The block that the standard writes `number/1/bytes`.
pub(crate) fn more(number: u32, bytes: u16) -> Block {
    Block::new(number, More::Yes, size(bytes))
}

/// The block that the standard writes `number/0/bytes`.
pub(crate) fn last(number: u32, bytes: u16) -> Block {
    Block::new(number, More::No, size(bytes))
}

/// Block 0 of a size that must not be used.
pub(crate) fn reserved() -> Block {
    Block::from_value(0b1111)
}

pub(crate) fn body(length: usize) -> Vec<u8> {
    let bytes = (0..=u8::MAX).cycle();
    bytes.filter(|byte| byte % 7 != 3).take(length).collect()
}

pub(crate) fn request(code: Code) -> Message {
    Message::request(
        MessageKind::Confirmable,
        code,
        MessageId(1),
        Token::from_u64(1),
    )
    .with_uri_path(["5", "0", "0"])
}

pub(crate) fn put(length: usize) -> Message {
    request(Code::PUT)
        .with_content_format(ContentFormat::OCTET_STREAM)
        .with_payload(body(length))
}

/// The same message outside of an acknowledgement.
pub(crate) fn apart(kind: MessageKind, message: Message) -> Message {
    let mut apart = message;
    apart.kind = kind;
    apart.message_id = MessageId(900);
    apart
}

/// Block `number` of a body in blocks of 64 bytes, of which more follow.
pub(crate) fn part(conversation: &Conversation, number: u32) -> Message {
    let offset = more(number, 64).offset().expect("a size of blocks");
    conversation
        .reply(Code::CONTENT)
        .with_block2(more(number, 64))
        .with_payload(&body(offset + 64)[offset..])
}

pub(crate) fn broken(fault: TransferFault) -> TransferReception {
    TransferReception::Broken {
        acknowledge: None,
        fault,
    }
}

/// A transfer and its state in a test.
pub(crate) struct Conversation {
    pub(crate) transfer: Transfer,
    pub(crate) rules: TransferRules<'static>,
    pub(crate) now_ms: i64,
    messages: u16,
}

impl Conversation {
    pub(crate) fn begin(block_bytes: u16, request: Message) -> Conversation {
        let rules = rules(block_bytes);
        Conversation {
            transfer: Transfer::begin(0, &rules, request, 0),
            rules,
            now_ms: 0,
            messages: 1,
        }
    }

    /// A body of this length that is supplied block by block, of which the device has a part.
    pub(crate) fn streaming(block_bytes: u16, length: usize, from: usize) -> Conversation {
        let rules = rules(block_bytes);
        let from = UploadPosition {
            bytes: from,
            size: size(block_bytes),
        };
        let request = put(0);
        let mut conversation = Conversation {
            transfer: Transfer::begin_streamed(0, &rules, request, (length, from), 0),
            rules,
            now_ms: 0,
            messages: 1,
        };
        conversation.proceeds();
        conversation
    }

    /// The message in flight.
    pub(crate) fn sent(&self) -> Message {
        Message::decode(self.transfer.datagram()).expect("what we write is well-formed")
    }

    /// A response to the message in flight, in its acknowledgement.
    pub(crate) fn reply(&self, code: Code) -> Message {
        Message::response_to(&self.sent(), code, MessageId(900))
    }

    /// Gives the transfer a message, and proceeds if the transfer does.
    pub(crate) fn receives(&mut self, message: &Message) -> TransferReception {
        let receipt = self.transfer.handle(self.now_ms, &self.rules, message);
        if matches!(receipt, TransferReception::Proceeds { .. }) {
            self.proceeds();
        }
        receipt
    }

    pub(crate) fn proceeds(&mut self) {
        self.messages += 1;
        let fresh = FreshIds {
            message_id: MessageId(self.messages),
            token: Token::from_u64(self.messages.into()),
            jitter: 0,
        };
        let wanted = self.transfer.wanted().unwrap_or_default();
        let supplied = body(wanted.end).split_off(wanted.start);
        let rules = &self.rules;
        self.transfer
            .proceed_with(self.now_ms, rules, fresh, &supplied);
    }

    /// Gives the transfer the confirmation of its block.
    pub(crate) fn continues(&mut self) -> TransferReception {
        let block = self.sent().block1().expect("a block is on its way");
        let reply = self.reply(Code::CONTINUE).with_block1(block);
        self.receives(&reply)
    }
}
