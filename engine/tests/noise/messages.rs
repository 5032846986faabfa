//! The inputs as messages on the wire.

use engine::action::{
    CoapRequest, Content, ContentEncoding, InstanceWrite, Lwm2mRequest, Mode, NewAction,
    NewInstance, Operation, Request, UdpRequest,
};
use engine::ids::TraceId;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use protocol::coap::uri::PathAndQuery;
use protocol::lwm2m::attributes::Attributes;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::formats::WriteMethod;

use super::fixture::{NoiseFixture, OBJECTS};
use super::inputs::{
    CallerCommand, PayloadMeaning, RequestMeaning, RequestShape, ResponseShape, ResponseTarget,
};

impl RequestShape {
    /// The request in blocks of 16 bytes each.
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
    pub(super) fn response_message(&self, shape: ResponseShape) -> Message {
        let observations = self.device.snapshot(self.now).observations;
        let token = match shape.to {
            ResponseTarget::Observed(at) if !observations.is_empty() => {
                Token::new(&at.get(&observations).token).unwrap()
            }
            ResponseTarget::Observed(_) | ResponseTarget::LastRequest => self.last_request.token,
        };
        let id = match shape.kind {
            MessageKind::Acknowledgement => self.last_request.message_id,
            MessageKind::Confirmable | MessageKind::NonConfirmable | MessageKind::Reset => {
                MessageId(self.messages)
            }
        };
        let mut message = Message::separate(shape.kind, shape.code, id, token);
        if let Some(sequence) = shape.observe {
            message = message.with_observe(sequence);
        }
        if let Some(format) = shape.format {
            message = message.with_content_format(ContentFormat(format));
        }
        if let Some(block) = shape.block1 {
            message = message.with_block1(block);
        }
        if let Some(block) = shape.block2 {
            message = message.with_block2(block);
        }
        if let Some(number) = shape.option {
            message = message.with_option(number, &[1]);
        }
        message.with_payload(shape.payload)
    }

    pub(super) fn request_message(&self, shape: RequestShape) -> Message {
        let id = MessageId(self.messages);
        let request = Message::request(shape.kind, Code::POST, id, Token::EMPTY);
        let mut message = match shape.what {
            PayloadMeaning::Register => {
                request
                    .with_uri_path(["rd"])
                    .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60"])
            }
            PayloadMeaning::Update => request.with_uri_path(&self.location),
            PayloadMeaning::Send => request.with_uri_path(["dp"]),
            PayloadMeaning::Data(arguments) => request.with_uri_query(arguments),
        };
        if let Some(format) = shape.format {
            message = message.with_content_format(ContentFormat(format));
        }
        if let Some(block) = shape.block {
            message = message.with_block1(block);
        }
        message.with_payload(shape.payload)
    }

    pub(super) fn message(&self, meaning: RequestMeaning) -> Message {
        let id = MessageId(self.messages);
        let request = |code| Message::request(MessageKind::Confirmable, code, id, Token::EMPTY);
        match meaning {
            RequestMeaning::Register => request(Code::POST)
                .with_uri_path(["rd"])
                .with_uri_query(["lwm2m=1.1", "ep=meter", "lt=60", "b=U", "Q"])
                .with_payload(OBJECTS),
            RequestMeaning::Update => request(Code::POST)
                .with_uri_path(&self.location)
                .with_uri_query(["lt=61"]),
            RequestMeaning::Deregister => request(Code::DELETE).with_uri_path(&self.location),
            RequestMeaning::Answer => {
                Message::response_to(&self.last_request, Code::CONTENT, id).with_payload("87")
            }
            RequestMeaning::Agreement => {
                Message::response_to(&self.last_request, Code::CONTENT, id)
                    .with_observe(self.messages.into())
                    .with_payload("87")
            }
            RequestMeaning::Acknowledgement => {
                Message::acknowledgement(self.last_request.message_id)
            }
            RequestMeaning::Reset => Message::reset(self.last_request.message_id),
        }
    }
}

/// The request of a caller, with two attempts where two are allowed.
pub(super) fn request(command: CallerCommand, mode: Mode) -> NewAction {
    let (request, attempts_permitted) = match command {
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
        not_before: None,
        wake_up: None,
        trace: TraceId::from_bytes([1; 16]),
        idempotent_call: None,
    }
}

fn operation_on(operation: Operation, path: &str) -> Request {
    let path = path.parse().unwrap();
    Request::Lwm2m(match operation {
        Operation::Write => Lwm2mRequest::Write(path, "300".into()),
        Operation::Execute => Lwm2mRequest::Execute(path, None),
        Operation::ObserveStart => {
            Lwm2mRequest::ObserveStart(path, Attributes::from_query("pmin=10").unwrap())
        }
        Operation::ObserveCompositeStart => {
            let attributes = Attributes::from_query("pmin=10").unwrap();
            Lwm2mRequest::ObserveCompositeStart([path].into(), attributes)
        }
        Operation::ObserveCompositeEnd => Lwm2mRequest::ObserveCompositeEnd([path].into()),
        Operation::ObserveEnd => Lwm2mRequest::ObserveEnd(path),
        Operation::Discover => Lwm2mRequest::Discover(path),
        Operation::Delete => Lwm2mRequest::Delete(path),
        Operation::Create => Lwm2mRequest::Create(NewInstance {
            object: path.object_id(),
            instance: None,
            values: [(Path::resource(path.object_id(), 0, 1), "300".into())].into(),
        }),
        Operation::WriteAttributes => {
            let attributes = Attributes::from_query("pmin=10").unwrap();
            Lwm2mRequest::WriteAttributes(path, attributes)
        }
        Operation::WriteInstance => Lwm2mRequest::WriteInstance(InstanceWrite {
            path: Path::instance(path.object_id(), 0),
            method: WriteMethod::Replace,
            values: [(Path::resource(path.object_id(), 0, 1), "300".into())].into(),
        }),
        Operation::ReadComposite => Lwm2mRequest::ReadComposite([path].into()),
        Operation::WriteComposite => {
            let value = (Path::resource(path.object_id(), 0, 1), "300".into());
            Lwm2mRequest::WriteComposite([value].into())
        }
        Operation::Read => Lwm2mRequest::Read(path),
    })
}

fn written(text: &str) -> Content {
    Content::parse(ContentEncoding::String, text).unwrap()
}
