//! Which laws hold for a block-wise request, whatever the device answers? (RFC 7959)

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::exchange::Transmission;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::transfer::{
    FreshIds, Transfer, TransferReception, TransferRules, TransferTimeout,
};

use crate::FuzzOutcome;
use crate::script::Script;

const ANSWER_BYTES_MAX: usize = 512;
const IDLE_MS: i64 = 247_000;
/// The longest wait: MAX_TRANSMIT_WAIT and a response that never arrives.
const SILENCE_MS_MAX: i64 = IDLE_MS + 2 * 93_000;

/// Whatever a device answers and when, each datagram is a block of the request or requests a block
/// of the response, the response stays within its limit, and silence ends everything.
pub(crate) fn blocks_sent(bytes: &[u8]) -> FuzzOutcome {
    let mut script = Script::new(bytes);
    let mut talk = Conversation::begin(&mut script);
    while !script.is_over() && talk.is_on {
        talk.step(&mut script);
    }
    let is_far = talk.transfer.is_under_way();
    talk.fall_silent();
    if is_far {
        FuzzOutcome::Read
    } else {
        FuzzOutcome::Refused
    }
}

struct Conversation {
    transfer: Transfer,
    rules: TransferRules<'static>,
    body: Vec<u8>,
    now_ms: i64,
    messages: u16,
    is_on: bool,
}

impl Conversation {
    fn begin(script: &mut Script<'_>) -> Conversation {
        let block = match script.byte() & 3 {
            0 => BlockSize::MIN,
            1 => BlockSize::of_bytes(64).expect("a size of blocks"),
            _ => BlockSize::MAX,
        };
        let rules = TransferRules {
            transmission: &Transmission::STANDARD,
            block,
            answer_bytes_max: ANSWER_BYTES_MAX,
            idle_ms: IDLE_MS,
        };
        let codes = [Code::GET, Code::POST, Code::PUT, Code::FETCH];
        let code = codes[usize::from(script.byte() & 3)];
        let length = usize::from(script.byte()) * usize::from(script.byte() & 7);
        let body: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
        let kind = match script.byte() & 3 {
            0 => MessageKind::NonConfirmable,
            _ => MessageKind::Confirmable,
        };
        let request = Message::request(kind, code, MessageId(1), Token::from_u64(1))
            .with_uri_path(["3", "0"])
            .with_payload(body.as_slice());
        let request = match script.byte() & 3 {
            0 => request.with_observe(0),
            1 => request.with_block2(Block::from_value(script.number())),
            _ => request,
        };
        Conversation {
            transfer: Transfer::begin(0, &rules, request, 0),
            rules,
            body,
            now_ms: 0,
            messages: 1,
            is_on: true,
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.byte() & 7 {
            0 => {
                self.now_ms += i64::from(script.byte()) * 1_000;
                self.wake_up();
            }
            1 => {
                let length = usize::from(script.byte());
                if let Ok(message) = Message::decode(script.bytes(length)) {
                    self.handle(&message);
                }
            }
            2 => self.handle(&Message::acknowledgement(self.transfer.message_id())),
            3 => {
                let mut response = self.response(script);
                response.kind = MessageKind::Confirmable;
                response.message_id = MessageId(script.byte().into());
                self.handle(&response);
            }
            _ => {
                let response = self.response(script);
                self.handle(&response);
            }
        }
    }

    fn sent(&self) -> Message {
        Message::decode(self.transfer.datagram()).expect("what was written can be read")
    }

    // Usually what a device would answer to the last message.
    fn response(&self, script: &mut Script<'_>) -> Message {
        let sent = self.sent();
        let choice = script.byte();
        let code = match choice & 7 {
            0 => Code::from_byte(script.byte()),
            1 => Code::REQUEST_ENTITY_TOO_LARGE,
            2 => Code::CHANGED,
            3 | 4 => Code::CONTENT,
            _ => Code::CONTINUE,
        };
        let response = Message::response_to(&sent, code, MessageId(900));
        let response = match (choice >> 3 & 3, sent.block1()) {
            (0, _) => response.with_block1(Block::from_value(script.number())),
            (1, _) | (_, None) => response,
            (_, Some(block)) => response.with_block1(block),
        };
        let response = match choice >> 5 & 3 {
            0 => response.with_block2(Block::from_value(script.number())),
            1 => response,
            _ => requested_part(&sent, response, script.byte()),
        };
        match script.byte() & 15 {
            0 => response.with_etag(&[script.byte()]),
            1 => response.with_size2(script.number()),
            2 => {
                let length = usize::from(script.byte());
                response.with_payload(vec![7; length])
            }
            3 => response.with_observe(script.number()),
            _ => response,
        }
    }

    fn handle(&mut self, message: &Message) {
        match self.transfer.handle(self.now_ms, &self.rules, message) {
            TransferReception::NotMine | TransferReception::Acknowledged => {}
            TransferReception::Proceeds { .. } => self.proceed(),
            TransferReception::Answered { whole, .. } => {
                let length = whole.map_or(0, |whole| whole.payload.len());
                assert!(length <= ANSWER_BYTES_MAX);
                self.end();
            }
            TransferReception::Reset
            | TransferReception::Unusable { .. }
            | TransferReception::Broken { .. } => self.end(),
        }
    }

    fn wake_up(&mut self) {
        match self.transfer.handle_timeout(self.now_ms) {
            TransferTimeout::NotYet | TransferTimeout::Retransmit => {}
            TransferTimeout::Again => self.proceed(),
            TransferTimeout::GaveUp(_) => self.end(),
        }
    }

    fn proceed(&mut self) {
        assert!(self.transfer.is_under_way());
        self.messages = self.messages.wrapping_add(1);
        let fresh = FreshIds {
            message_id: MessageId(self.messages),
            token: Token::from_u64(self.messages.into()),
            jitter: u32::from(self.messages) << 16,
        };
        self.transfer.proceed(self.now_ms, &self.rules, fresh);
        assert_eq!(self.transfer.message_id(), fresh.message_id);
        assert_eq!(self.transfer.token(), Token::from_u64(1));
        self.check_sent(fresh);
    }

    fn check_sent(&self, fresh: FreshIds) {
        let sent = self.sent();
        assert_eq!(sent.token, fresh.token);
        if let Some(block) = sent.block1() {
            let offset = block.offset().expect("our sizes are not reserved");
            let end = offset + sent.payload.len();
            assert_eq!(sent.payload, &self.body[offset..end]);
            assert_eq!(block.has_more(), end < self.body.len());
            assert!(
                block
                    .size()
                    .is_some_and(|size| sent.payload.len() <= size.bytes())
            );
        } else {
            let block2 = sent.block2().expect("it goes on with one or the other");
            assert!(!block2.has_more() && block2.size().is_some());
            assert_eq!(sent.observe(), None);
        }
    }

    fn end(&mut self) {
        self.is_on = false;
        assert_eq!(self.transfer.next_timeout(), i64::MAX);
        assert_eq!(
            self.transfer.handle_timeout(i64::MAX),
            TransferTimeout::NotYet
        );
    }

    fn fall_silent(&mut self) {
        let ends_by_ms = self.now_ms + SILENCE_MS_MAX;
        while self.is_on {
            self.now_ms = self.now_ms.max(self.transfer.next_timeout());
            assert!(self.now_ms <= ends_by_ms, "silence ends it");
            self.wake_up();
        }
    }
}

// The requested block, or the first one.
fn requested_part(sent: &Message, response: Message, choice: u8) -> Message {
    let block2 = sent.block2();
    let size = block2.and_then(Block::size).unwrap_or(BlockSize::MIN);
    let number = block2.map_or(0, Block::number);
    let (more, length) = match choice & 7 {
        0 => (More::No, usize::from(choice >> 4)),
        _ => (More::Yes, size.bytes()),
    };
    response
        .with_block2(Block::new(number, more, size))
        .with_payload(vec![choice; length])
}
