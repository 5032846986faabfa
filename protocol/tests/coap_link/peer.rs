//! How does a peer accept and send bodies? With our own server's side, and a memory of its answers
//! for all of EXCHANGE_LIFETIME, as in RFC 7252 section 4.2: a link may delay a repeated first
//! request beyond the few messages that `DedupWindow` keeps.

use std::collections::HashMap;

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::serving::cut_from;

const BYTES_MAX: usize = 1_048_576;

/// EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const EXCHANGE_LIFETIME_MS: i64 = 247_000;

/// Whether responses come with the acknowledgement of the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ResponseMode {
    InAcknowledgements,
    Apart,
}

/// A peer that has a body, and accepts one.
pub(crate) struct Peer {
    pub(crate) received: Vec<Vec<u8>>,
    holds: Vec<u8>,
    block: BlockSize,
    manner: ResponseMode,
    assembly: Assembly,
    // When each request was first answered, and how.
    answered: HashMap<MessageId, (i64, Code)>,
    last_id: u16,
}

/// The code that answers a request with a body, and one without.
pub(crate) fn answer_code(to_peer: usize) -> Code {
    match to_peer {
        0 => Code::CONTENT,
        _ => Code::CHANGED,
    }
}

impl Peer {
    pub(crate) fn new(holds: Vec<u8>, block: BlockSize, manner: ResponseMode) -> Peer {
        Peer {
            received: Vec::new(),
            holds,
            block,
            manner,
            assembly: Assembly::default(),
            answered: HashMap::new(),
            last_id: 0,
        }
    }

    pub(crate) fn handle(&mut self, now_ms: i64, datagram: &[u8]) -> Vec<Message> {
        let request = Message::decode(datagram).expect("what we write is well-formed");
        if !request.code.is_request() {
            return Vec::new();
        }
        let before = self.answered.get(&request.message_id);
        let code = match before {
            Some(&(at_ms, code)) if now_ms - at_ms <= EXCHANGE_LIFETIME_MS => code,
            _ => {
                let code = self.act(now_ms, &request);
                self.answered.insert(request.message_id, (now_ms, code));
                code
            }
        };
        self.answer(&request, code)
    }

    fn act(&mut self, now_ms: i64, request: &Message) -> Code {
        if request.block1().is_none() && request.payload.is_empty() {
            let is_of_answer = request.block2().is_some() && request.code == Code::POST;
            return answer_code(usize::from(is_of_answer));
        }
        let gathered = self.assembly.take(now_ms, request, BYTES_MAX);
        assert!(self.assembly.bytes() <= BYTES_MAX);
        match gathered {
            AssemblyOutcome::Whole(whole) => {
                self.received.push(whole.payload);
                Code::CHANGED
            }
            AssemblyOutcome::Continue => Code::CONTINUE,
            AssemblyOutcome::Incomplete => Code::REQUEST_ENTITY_INCOMPLETE,
            AssemblyOutcome::TooLarge { .. } => Code::REQUEST_ENTITY_TOO_LARGE,
            AssemblyOutcome::Malformed => Code::BAD_REQUEST,
        }
    }

    fn answer(&mut self, request: &Message, code: Code) -> Vec<Message> {
        let head = Message::response_to(request, code, request.message_id);
        let head = request
            .block1()
            .into_iter()
            .fold(head, Message::with_block1);
        let is_of_body = [Code::CONTENT, Code::CHANGED].contains(&code);
        let body = if is_of_body { &self.holds[..] } else { &[] };
        let mut response = cut_from(head, body, request, self.block);
        match self.manner {
            ResponseMode::InAcknowledgements => vec![response],
            ResponseMode::Apart => {
                self.last_id = self.last_id.wrapping_add(1);
                response.kind = MessageKind::NonConfirmable;
                response.message_id = MessageId(self.last_id);
                vec![Message::acknowledgement(request.message_id), response]
            }
        }
    }
}

/// A body without a period that could hide a wrong block.
pub(crate) fn body(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}
