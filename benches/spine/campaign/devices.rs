//! What do the devices of a campaign answer? LwM2M devices with object 5 alone, in a few bytes for
//! each (Core 1.1 appendix E.6).
//!
//! ```text
//!              Write /5/0/1, first block of /5/0/0       all of it             Execute /5/0/2
//!  0 idle ------------------------------------> 1 -----------------> 2 -------------------> 0 idle
//! ```
//! A device that has the image, or has installed it, updates its registration, as one does that
//! reboots: the server then reads its state.

use std::sync::Arc;

use harness::load::outbox::Outbox;
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::{Message, MessageId};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::{self, Reading};
use protocol::lwm2m::value::{DataType, Value};

use crate::talk;

/// The object instance of firmware updates.
const OBJECT: Path = Path::instance(5, 0);

/// Of `/5/0/9`: devices take images by pull and by push.
const BOTH: i64 = 2;

/// Of `/5/0/5`: the update succeeded, and the image is not the one that was sent.
const SUCCESS: i64 = 1;
const WRONG_IMAGE: i64 = 5;

/// The devices of a campaign.
pub(crate) struct FirmwareDevices {
    image: Arc<[u8]>,
    members: Vec<FirmwareDevice>,
    registered: u32,
    /// Images that are complete.
    pub(crate) complete: u32,
}

/// The state of a device.
#[derive(Clone, Default)]
struct FirmwareDevice {
    location: Vec<String>,
    next_id: u16,
    state: i64,
    result: i64,
    /// The bytes that were written to `/5/0/0`.
    written: usize,
}

/// What a device wants besides answering.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Wish {
    /// Nothing.
    None,
    /// To download the image from this URI.
    Download(String),
}

impl FirmwareDevices {
    /// Devices that expect this image.
    pub(crate) fn new(devices: u32, image: Arc<[u8]>) -> Self {
        Self {
            image,
            members: vec![FirmwareDevice::default(); devices as usize],
            registered: 0,
            complete: 0,
        }
    }

    /// The number of registered devices.
    pub(crate) fn registered(&self) -> u32 {
        self.registered
    }

    /// Registers a device, unless it is registered.
    pub(crate) fn register(&mut self, number: u32, out: &mut Outbox) {
        let member = &mut self.members[number as usize];
        if member.location.is_empty() {
            let id = member.next_id();
            put(out, number, &talk::register(number, id));
        }
    }

    /// A device has downloaded the image.
    pub(crate) fn downloaded(&mut self, number: u32, is_right: bool, out: &mut Outbox) {
        let member = &mut self.members[number as usize];
        member.take_image(is_right);
        self.complete += 1;
        member.update(number, out);
    }

    /// Answers a message of the server.
    pub(crate) fn handle(&mut self, number: u32, bytes: &[u8], out: &mut Outbox) -> Wish {
        let message = Message::decode(bytes).expect("the server sends messages");
        if message.code.is_request() {
            return self.answer(number, &message, out);
        }
        if message.code == Code::CREATED {
            let member = &mut self.members[number as usize];
            self.registered += u32::from(member.location.is_empty());
            member.location = message.location_path().map(str::to_owned).collect();
        }
        Wish::None
    }

    fn answer(&mut self, number: u32, request: &Message, out: &mut Outbox) -> Wish {
        let member = &mut self.members[number as usize];
        let respond = |code| Message::response_to(request, code, request.message_id);
        let path: Vec<&str> = request.uri_path().collect();
        let mut wish = Wish::None;
        match (request.code, path.as_slice()) {
            (Code::GET, ["5", "0"]) => {
                let format = request.accept().unwrap_or(ContentFormat::LWM2M_TLV);
                let payload = payload::encode(format, OBJECT, &member.reading());
                let payload = payload.expect("every format has integers");
                let answer = respond(Code::CONTENT).with_content_format(format);
                put(out, number, &answer.with_payload(payload));
            }
            (Code::PUT | Code::POST, ["5", "0", "0"]) => {
                let was_complete = member.state == 2;
                put(out, number, &member.write(request, &self.image));
                if member.state == 2 && !was_complete {
                    self.complete += 1;
                    member.update(number, out);
                }
            }
            (Code::PUT | Code::POST, ["5", "0", "1"]) => {
                let uri = uri_in(request);
                member.result = 0;
                member.state = i64::from(!uri.is_empty());
                put(out, number, &respond(Code::CHANGED));
                if !uri.is_empty() {
                    wish = Wish::Download(uri);
                }
            }
            (Code::POST, ["5", "0", "2"]) => {
                (member.state, member.result) = (0, SUCCESS);
                put(out, number, &respond(Code::CHANGED));
                member.update(number, out);
            }
            (_, _) => put(out, number, &respond(Code::NOT_FOUND)),
        }
        wish
    }
}

impl FirmwareDevice {
    fn next_id(&mut self) -> MessageId {
        self.next_id = self.next_id.wrapping_add(1);
        MessageId(self.next_id)
    }

    fn update(&mut self, number: u32, out: &mut Outbox) {
        let id = self.next_id();
        let location = self.location.iter().map(String::as_str);
        put(out, number, &talk::update(location, id));
    }

    fn take_image(&mut self, is_right: bool) {
        (self.state, self.result) = match is_right {
            true => (2, 0),
            false => (0, WRONG_IMAGE),
        };
    }

    fn reading(&self) -> Reading {
        let resource = |id, value| (Path::resource(5, 0, id), Value::Integer(value));
        let values = [(3, self.state), (5, self.result), (9, BOTH)];
        values.map(|(id, value)| resource(id, value)).into()
    }

    /// Takes a block of the image (RFC 7959 section 2.5); a repeated one is answered again.
    fn write(&mut self, request: &Message, image: &[u8]) -> Message {
        let respond = |code| Message::response_to(request, code, request.message_id);
        let whole = Block::new(0, More::No, BlockSize::MAX);
        let block = request.block1().unwrap_or(whole);
        let offset = block.offset().unwrap_or(usize::MAX);
        // An empty package resets the state machine.
        if request.payload.len() <= 1 && !block.has_more() && offset == 0 {
            (self.state, self.result) = (0, 0);
            return respond(Code::CHANGED);
        }
        if offset == 0 {
            (self.state, self.result, self.written) = (1, 0, 0);
        }
        let behind = offset.saturating_add(request.payload.len());
        let is_next = offset == self.written && image.get(offset..behind) == Some(&request.payload);
        if !is_next && behind != self.written {
            self.take_image(false);
            return respond(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.written = behind;
        if block.has_more() {
            return respond(Code::CONTINUE).with_block1(block);
        }
        if is_next {
            self.take_image(self.written == image.len());
        }
        let answer = respond(Code::CHANGED);
        match request.block1() {
            Some(block) => answer.with_block1(block),
            None => answer,
        }
    }
}

/// The URI in a Write of `/5/0/1`.
fn uri_in(request: &Message) -> String {
    let path = Path::resource(5, 0, 1);
    let format = request.content_format();
    let values = payload::decode(format, path, &request.payload, |_| Some(DataType::String));
    match values.expect("the URI can be read").remove(&path) {
        Some(Value::String(uri)) => uri,
        other => unreachable!("a URI is text: {other:?}"),
    }
}

fn put(out: &mut Outbox, number: u32, message: &Message) {
    let bytes = message.encode();
    out.put(number, |datagram| datagram.extend_from_slice(&bytes));
}
