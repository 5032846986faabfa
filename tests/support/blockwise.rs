//! How does a device take and give a body in blocks (RFC 7959), over a link that may lose some?

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

/// Names the one version of the body that a device gives.
const ETAG: &[u8] = b"v1";

/// A link that loses some datagrams, which ones a seed says. It spares the beginning of a transfer:
/// an attempt whose first message is never met has failed, and is another test's.
pub(crate) struct Loss {
    percent: u64,
    state: u64,
}

/// A device that keeps one body, which a request can put and another can get. It ends with this
/// value.
pub(crate) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    taken: AtomicUsize,
    kept: Mutex<Kept>,
}

/// What it keeps.
#[derive(Clone, Default)]
struct Kept {
    bytes: Vec<u8>,
    format: Option<ContentFormat>,
}

/// What it remembers of the body that is on its way.
#[derive(Default)]
struct BodyState {
    incoming: Vec<u8>,
    last: Option<(Message, Message)>,
}

impl Loss {
    /// Loses so many of a hundred; the seed says which ones.
    pub(crate) fn percent(percent: u64, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { percent, state }
    }

    /// Whether the next one is lost.
    fn takes(&mut self) -> bool {
        // xorshift64: any order will do, the same one each time.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) % 100 < self.percent
    }
}

impl Keeper {
    /// A device behind a wire that serves from now on, in blocks of a size.
    pub(crate) fn behind(wire: DeviceSocket, size: BlockSize, mut loss: Loss) -> Self {
        let shared: Arc<Shared> = Arc::default();
        let its = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let mut desk = BodyState::default();
            wire.serve(|asked| {
                if its.is_over.load(Ordering::SeqCst) {
                    return ControlFlow::Break(());
                }
                let Some(asked) = asked.filter(|asked| begins(asked) || !loss.takes()) else {
                    return ControlFlow::Continue(None);
                };
                its.taken.fetch_add(1, Ordering::SeqCst);
                let is_spared = begins(&asked);
                let answer = desk.answer(asked, &mut its.kept.lock().unwrap(), size);
                ControlFlow::Continue(answer.filter(|_| is_spared || !loss.takes()))
            });
        });
        let thread = Some(thread);
        Self { shared, thread }
    }

    /// What was put there.
    pub(crate) fn kept(&self) -> Vec<u8> {
        self.shared.kept.lock().unwrap().bytes.clone()
    }

    /// How many requests got through to it.
    pub(crate) fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

impl BodyState {
    /// The answer to a request; to a repeated one, the same.
    fn answer(&mut self, asked: Message, kept: &mut Kept, size: BlockSize) -> Option<Message> {
        if let Some((last, said)) = &self.last
            && *last == asked
        {
            return Some(said.clone());
        }
        let said = match asked.code {
            Code::PUT | Code::POST => self.take(&asked, kept, size),
            Code::GET => give(&asked, kept, size),
            _ => return None,
        };
        self.last = Some((asked, said.clone()));
        Some(said)
    }

    fn take(&mut self, asked: &Message, kept: &mut Kept, size: BlockSize) -> Message {
        let Some(block) = asked.block1() else {
            *kept = Kept {
                bytes: asked.payload.clone(),
                format: asked.content_format(),
            };
            return answer(asked, Code::CHANGED);
        };
        let offset = block.offset().unwrap();
        if offset > self.incoming.len() {
            return answer(asked, Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.incoming.truncate(offset);
        self.incoming.extend_from_slice(&asked.payload);
        if block.has_more() {
            let wanted = block.size().unwrap().min(size);
            let confirmed = Block::new(block.number(), More::Yes, wanted);
            return answer(asked, Code::CONTINUE).with_block1(confirmed);
        }
        *kept = Kept {
            bytes: self.incoming.clone(),
            format: asked.content_format(),
        };
        answer(asked, Code::CHANGED).with_block1(block)
    }
}

/// Whether a request is the first of its transfer.
fn begins(asked: &Message) -> bool {
    let block = asked.block1().or(asked.block2());
    block.is_none_or(|block| block.number() == 0)
}

fn give(asked: &Message, kept: &Kept, size: BlockSize) -> Message {
    let bytes = kept.bytes.clone();
    block_of(asked, &bytes, kept.format, size).with_etag(ETAG)
}

/// The block of a body that a request asks for, of at most a size.
pub(crate) fn block_of(
    asked: &Message,
    body: &[u8],
    format: Option<ContentFormat>,
    largest: BlockSize,
) -> Message {
    let wanted = asked.block2();
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
    let given = answer(asked, Code::CONTENT).with_payload(part);
    let given = match format {
        Some(format) => given.with_content_format(format),
        None => given,
    };
    given.with_block2(Block::new(number, more, size))
}

/// The parts of a body as requests carry them: each with its number, the last without more.
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

/// A size of blocks.
pub(crate) fn size(bytes: u16) -> BlockSize {
    BlockSize::of_bytes(bytes).unwrap()
}

/// Bytes of a length, each time the same ones, of which no two blocks are alike.
pub(crate) fn body(length: usize) -> Vec<u8> {
    let byte = |index: usize| (index.wrapping_mul(31) ^ (index >> 8)).to_le_bytes()[0];
    (0..length).map(byte).collect()
}
