//! How does a device receive and serve a body in blocks (RFC 7959) over a lossy link?

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::message::Message;

use super::plain::answer;
use super::wire::DeviceSocket;

/// The ETag of the only version of the body that a device serves.
const ETAG: &[u8] = b"v1";

/// A link that loses some datagrams, chosen by a seed. The first message of a transfer is never
/// lost: an attempt without it fails, which another test covers.
pub(crate) struct Loss {
    percent: u64,
    state: u64,
}

/// A device that stores one body, which a request can put and another can get. It stops when this
/// value is dropped.
pub(crate) struct BlockwiseDevice {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    taken: AtomicUsize,
    stored: Mutex<StoredBody>,
}

/// The stored body.
#[derive(Clone, Default)]
struct StoredBody {
    bytes: Vec<u8>,
    format: Option<ContentFormat>,
}

/// The part of an incoming body received so far.
#[derive(Default)]
struct BodyState {
    incoming: Vec<u8>,
    last: Option<(Message, Message)>,
}

impl Loss {
    /// Loses this percentage of the datagrams, chosen by the seed.
    pub(crate) fn percent(percent: u64, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { percent, state }
    }

    /// Whether the next datagram is lost.
    fn takes(&mut self) -> bool {
        // xorshift64: any sequence will do, as long as it is the same each time.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) % 100 < self.percent
    }
}

impl BlockwiseDevice {
    /// A device that serves requests at this socket from now on, in blocks of a size.
    pub(crate) fn behind(wire: DeviceSocket, size: BlockSize, mut loss: Loss) -> Self {
        let shared: Arc<Shared> = Arc::default();
        let its = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut transfer = BodyState::default();
            wire.serve(|request| {
                if its.is_over.load(Ordering::SeqCst) {
                    return ControlFlow::Break(());
                }
                let Some(request) = request.filter(|request| begins(request) || !loss.takes())
                else {
                    return ControlFlow::Continue(None);
                };
                its.taken.fetch_add(1, Ordering::SeqCst);
                let is_spared = begins(&request);
                let answer = transfer.answer(request, &mut its.stored.lock().unwrap(), size);
                ControlFlow::Continue(answer.filter(|_| is_spared || !loss.takes()))
            });
        });
        let thread = Some(thread);
        Self { shared, thread }
    }

    /// The body that was put.
    pub(crate) fn stored(&self) -> Vec<u8> {
        self.shared.stored.lock().unwrap().bytes.clone()
    }

    /// How many requests were not lost.
    pub(crate) fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }
}

impl Drop for BlockwiseDevice {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

impl BodyState {
    /// The answer to a request. A repeated request gets the same answer.
    fn answer(
        &mut self,
        request: Message,
        stored: &mut StoredBody,
        size: BlockSize,
    ) -> Option<Message> {
        if let Some((last, response)) = &self.last
            && *last == request
        {
            return Some(response.clone());
        }
        let response = match request.code {
            Code::PUT | Code::POST => self.take(&request, stored, size),
            Code::GET => give(&request, stored, size),
            _ => return None,
        };
        self.last = Some((request, response.clone()));
        Some(response)
    }

    fn take(&mut self, request: &Message, stored: &mut StoredBody, size: BlockSize) -> Message {
        let Some(block) = request.block1() else {
            *stored = StoredBody {
                bytes: request.payload.clone(),
                format: request.content_format(),
            };
            return answer(request, Code::CHANGED);
        };
        let offset = block.offset().unwrap();
        if offset > self.incoming.len() {
            return answer(request, Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.incoming.truncate(offset);
        self.incoming.extend_from_slice(&request.payload);
        if block.has_more() {
            let wanted = block.size().unwrap().min(size);
            let confirmed = Block::new(block.number(), More::Yes, wanted);
            return answer(request, Code::CONTINUE).with_block1(confirmed);
        }
        *stored = StoredBody {
            bytes: self.incoming.clone(),
            format: request.content_format(),
        };
        answer(request, Code::CHANGED).with_block1(block)
    }
}

/// Whether a request is the first of its transfer.
fn begins(request: &Message) -> bool {
    let block = request.block1().or(request.block2());
    block.is_none_or(|block| block.number() == 0)
}

fn give(request: &Message, stored: &StoredBody, size: BlockSize) -> Message {
    let bytes = stored.bytes.clone();
    block_of(request, &bytes, stored.format, size).with_etag(ETAG)
}

/// The block of a body that a request asks for, at most this large.
pub(crate) fn block_of(
    request: &Message,
    body: &[u8],
    format: Option<ContentFormat>,
    largest: BlockSize,
) -> Message {
    let wanted = request.block2();
    let size = wanted
        .and_then(Block::size)
        .map_or(largest, |it| it.min(largest));
    let offset = wanted.map_or(0, |wanted| wanted.offset().unwrap());
    let part = body.get(offset..).unwrap_or_default();
    let more = if part.len() > size.bytes() {
        More::Yes
    } else {
        More::No
    };
    let number = u32::try_from(offset / size.bytes()).unwrap();
    let part = &part[..part.len().min(size.bytes())];
    let given = answer(request, Code::CONTENT).with_payload(part);
    let given = match format {
        Some(format) => given.with_content_format(format),
        None => given,
    };
    given.with_block2(Block::new(number, more, size))
}

/// The blocks of a body as requests carry them: each with its number, the last without the More
/// flag.
pub(crate) fn blocks(body: &[u8], size: BlockSize) -> impl Iterator<Item = (Block, &[u8])> {
    let amount = body.len().div_ceil(size.bytes());
    let numbered = body.chunks(size.bytes()).enumerate();
    numbered.map(move |(index, part)| {
        let more = if index + 1 < amount {
            More::Yes
        } else {
            More::No
        };
        let number = u32::try_from(index).unwrap();
        (Block::new(number, more, size), part)
    })
}

/// A block size.
pub(crate) fn size(bytes: u16) -> BlockSize {
    BlockSize::of_bytes(bytes).unwrap()
}

/// A body of this length, the same each time, in which no two blocks are equal.
pub(crate) fn body(length: usize) -> Vec<u8> {
    let byte = |index: usize| (index.wrapping_mul(31) ^ (index >> 8)).to_le_bytes()[0];
    (0..length).map(byte).collect()
}
