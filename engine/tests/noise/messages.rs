//! What a device says on the wire: each input as a message.

use engine::action::{
    CoapRequest, Content, ContentEncoding, Lwm2mRequest, Mode, NewAction, Operation, Request,
    UdpRequest,
};
use engine::ids::TraceId;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::uri::PathAndQuery;

use super::fixture::{NoiseFixture, OBJECTS};
use super::inputs::{
    CallerCommand, PayloadMeaning, RequestMeaning, RequestShape, ResponseShape, ResponseTarget,
};

impl RequestShape {
    /// The blocks it is said in, of 16 bytes each.
    pub(super) fn in_blocks(&self) -> Vec<Self> {
        let parts: Vec<_> = self.payload.chunks(16).collect();
        let mut left = parts.len();
        let numbered = (0..).zip(parts);
        let blocks = numbered.map(|(number, part)| {
            left -= 1;
            let more = if left > 0 { More::Yes } else { More::No };
            Self {
                block: Some(Block::new(number, more, BlockSize::MIN)),
                payload: part.to_vec(),
                ..self.clone()
            }
        });
        blocks.collect()
    }
}

impl NoiseFixture {
    pub(super) fn tell(&self, telling: ResponseShape) -> Message {
        let observations = self.device.snapshot(self.now).observations;
        let token = match telling.to {
            ResponseTarget::Observed(at) if !observations.is_empty() => {
                Token::new(&at.get(&observations).token).unwrap()
            }
            ResponseTarget::Observed(_) | ResponseTarget::Asked => self.asked.token,
        };
        let id = match telling.kind {
            MessageKind::Acknowledgement => self.asked.message_id,
            MessageKind::Confirmable | MessageKind::NonConfirmable | MessageKind::Reset => {
                MessageId(self.messages)
            }
        };
        let mut message = Message::separate(telling.kind, telling.code, id, token);
        if let Some(sequence) = telling.observe {
            message = message.with_observe(sequence);
        }
        if let Some(format) = telling.format {
            message = message.with_content_format(ContentFormat(format));
        }
        if let Some(block) = telling.block1 {
            message = message.with_block1(block);
        }
        if let Some(block) = telling.block2 {
            message = message.with_block2(block);
        }
        if let Some(number) = telling.option {
            message = message.with_option(number, &[1]);
        }
        message.with_payload(telling.payload)
    }

    pub(super) fn said(&self, saying: RequestShape) -> Message {
        let id = MessageId(self.messages);
        let request = Message::request(saying.kind, Code::POST, id, Token::EMPTY);
        let mut message = match saying.what {
            PayloadMeaning::Register => {
                request
                    .with_uri_path(["rd"])
                    .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60"])
            }
            PayloadMeaning::Update => request.with_uri_path(&self.location),
            PayloadMeaning::Send => request.with_uri_path(["dp"]),
            PayloadMeaning::Data(arguments) => request.with_uri_query(arguments),
        };
        if let Some(format) = saying.format {
            message = message.with_content_format(ContentFormat(format));
        }
        if let Some(block) = saying.block {
            message = message.with_block1(block);
        }
        message.with_payload(saying.payload)
    }

    pub(super) fn say(&self, sense: RequestMeaning) -> Message {
        let id = MessageId(self.messages);
        let request = |code| Message::request(MessageKind::Confirmable, code, id, Token::EMPTY);
        match sense {
            RequestMeaning::Register => request(Code::POST)
                .with_uri_path(["rd"])
                .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60", "b=U", "Q"])
                .with_payload(OBJECTS),
            RequestMeaning::Update => request(Code::POST)
                .with_uri_path(&self.location)
                .with_uri_query(["lt=61"]),
            RequestMeaning::Deregister => request(Code::DELETE).with_uri_path(&self.location),
            RequestMeaning::Answer => {
                Message::response_to(&self.asked, Code::CONTENT, id).with_payload("87")
            }
            RequestMeaning::Agreement => Message::response_to(&self.asked, Code::CONTENT, id)
                .with_observe(self.messages.into())
                .with_payload("87"),
            RequestMeaning::Acknowledgement => Message::acknowledgement(self.asked.message_id),
            RequestMeaning::Reset => Message::reset(self.asked.message_id),
        }
    }
}

/// What a caller asks, in two attempts where it may have two.
pub(super) fn request(asking: CallerCommand, mode: Mode) -> NewAction {
    let (request, attempts_permitted) = match asking {
        CallerCommand::Operation(operation, path) => (operation_on(operation, path), 2),
        CallerCommand::Request(method, bytes, port) => {
            let content = (bytes > 0).then(|| written(&"x".repeat(bytes)));
            let request = CoapRequest {
                method,
                port: port.try_into().unwrap(),
                target: PathAndQuery::parse("/a?b").unwrap(),
                content,
            };
            (Request::Coap(request), 2)
        }
        CallerCommand::Datagram => {
            let request = UdpRequest {
                content: written("on"),
                port: 4445.try_into().unwrap(),
            };
            (Request::Udp(request), 1)
        }
    };
    NewAction {
        request,
        mode,
        attempts_permitted,
        expires_in_s: Some(300),
        trace: TraceId::from_bytes([1; 16]),
        idempotent_call: None,
    }
}

fn operation_on(operation: Operation, path: &str) -> Request {
    let data = (operation == Operation::Write).then(|| "300".into());
    Request::Lwm2m(Lwm2mRequest {
        operation,
        path: path.parse().unwrap(),
        data,
    })
}

fn written(text: &str) -> Content {
    Content::parse(ContentEncoding::String, text).unwrap()
}
