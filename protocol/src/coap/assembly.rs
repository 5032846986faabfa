//! Is the body of a peer's request complete? The server's side of Block1 (RFC 7959 sections 2.3 and
//! 2.5), for one request of one peer at a time.
//!
//! ```text
//!            block 0, more follow               the last block: Whole
//!   (empty) ----------------------> Gathering ------------------------> (empty)
//!                                    |  ^   |
//!                                    +--+   +- a gap, another request, too large, malformed
//!                                  Continue
//! ```

use super::block::Block;
use super::body::{Body, TooLong};
use super::message::Message;
use super::option;

/// The blocks of one body received so far. An empty one uses no heap.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    gathering: Option<Box<AssemblyState>>,
}

/// The result of a request that may be a block of a body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AssemblyOutcome {
    /// The request with its complete body. Its Block1 is still that of the last block, so that the
    /// response can repeat it.
    Whole(Message),
    /// The block was accepted: answer 2.31 with its Block1.
    Continue,
    /// Blocks are missing, or the earlier ones belong to another request: answer 4.08.
    Incomplete,
    /// Answer 4.13, with Size1.
    TooLarge {
        /// The largest accepted body.
        max: usize,
    },
    /// The block is inconsistent: answer 4.00.
    Malformed,
}

#[derive(Clone, Debug)]
struct AssemblyState {
    /// A block without its payload: it identifies the request of the body.
    request: Message,
    body: Body,
    /// The end of the block accepted last. It is before the end of the body while a peer that
    /// started again repeats earlier blocks.
    goes_on_at: usize,
    last_block_at_ms: i64,
}

impl Assembly {
    /// Handles a request: one without Block1 is complete and changes nothing, a block is added to
    /// the earlier ones. Any outcome but Whole and Continue drops the earlier blocks.
    pub fn take(&mut self, now_ms: i64, request: &Message, bytes_max: usize) -> AssemblyOutcome {
        let Some(block) = request.block1() else {
            return AssemblyOutcome::Whole(request.clone());
        };
        let before = self.gathering.take();
        let before = match block.number() {
            0 => before
                .filter(|gathering| gathering.began_with(request))
                .or_else(|| Some(Box::new(AssemblyState::begin(request)))),
            _ => before,
        };
        let Some(mut gathering) = before else {
            return AssemblyOutcome::Incomplete;
        };
        let gathered = gathering.take(block, request, bytes_max);
        if gathered == AssemblyOutcome::Continue {
            gathering.last_block_at_ms = now_ms;
            self.gathering = Some(gathering);
        }
        gathered
    }

    /// Returns when the received blocks are to be dropped if no other follows; never if there are
    /// none.
    pub fn expires_at(&self, idle_ms: i64) -> i64 {
        let gathering = self.gathering.as_ref();
        gathering.map_or(i64::MAX, |gathering| {
            gathering.last_block_at_ms.saturating_add(idle_ms)
        })
    }

    /// Returns whether no block was received.
    pub fn is_empty(&self) -> bool {
        self.gathering.is_none()
    }

    /// Returns how many bytes were received.
    pub fn bytes(&self) -> usize {
        let gathering = self.gathering.as_ref();
        gathering.map_or(0, |gathering| gathering.body.len())
    }

    /// Returns how many bytes of memory the received blocks occupy.
    pub fn memory(&self) -> usize {
        let gathering = self.gathering.as_ref();
        gathering.map_or(0, |gathering| gathering.body.memory())
    }
}

impl AssemblyState {
    fn begin(request: &Message) -> AssemblyState {
        let mut request = request.clone();
        request.payload = Vec::new();
        AssemblyState {
            request,
            body: Body::default(),
            goes_on_at: 0,
            last_block_at_ms: 0,
        }
    }

    fn take(&mut self, block: Block, request: &Message, bytes_max: usize) -> AssemblyOutcome {
        let too_large = AssemblyOutcome::TooLarge { max: bytes_max };
        let announced = request
            .size1()
            .and_then(|bytes| usize::try_from(bytes).ok());
        if block.size_when_filled(request.payload.len()).is_err() {
            return AssemblyOutcome::Malformed;
        }
        if !is_same_operation(&self.request, request) {
            return AssemblyOutcome::Incomplete;
        }
        if announced.is_some_and(|bytes| bytes > bytes_max) {
            return too_large;
        }
        let Some(offset) = self.place_of(block, request) else {
            return AssemblyOutcome::Incomplete;
        };
        let end = offset.saturating_add(request.payload.len());
        if self.body.holds(offset, &request.payload) && block.has_more() {
            if offset == 0 || offset == self.goes_on_at {
                self.goes_on_at = end;
            }
            return AssemblyOutcome::Continue;
        }
        self.body.truncate(offset);
        self.goes_on_at = end;
        match self.body.append(&request.payload, bytes_max) {
            Err(TooLong) => too_large,
            Ok(()) if block.has_more() => AssemblyOutcome::Continue,
            Ok(()) => AssemblyOutcome::Whole(request.clone().with_payload(self.body.take())),
        }
    }

    // A known block is received again in a new message when its answers were lost, late when the
    // network duplicated a datagram, and in sequence when the peer started again. Only a block in
    // sequence may change what is known.
    fn place_of(&self, block: Block, request: &Message) -> Option<usize> {
        let offset = block.offset()?;
        let is_in_turn = offset == self.body.len() || offset == self.goes_on_at;
        let is_known = self.body.holds(offset, &request.payload) && block.has_more();
        (is_in_turn || is_known).then_some(offset)
    }

    // The first block may be late, too. If it equals the known one, the blocks after it show
    // whether the peer started again.
    fn began_with(&self, first: &Message) -> bool {
        is_same_operation(&self.request, first)
            && self.body.holds(0, &first.payload)
            && first.block1().is_some_and(Block::has_more)
    }
}

// Two requests are about the same body if they are matchable (RFC 9175 section 1.1), that is equal
// in all options but Block1, Block2 and the elective ones outside of the cache key (RFC 7252
// section 5.4.2), such as Size1 and Echo; and if their Request-Tag, which distinguishes bodies, is
// the same (section 3.2).
fn is_same_operation(one: &Message, other: &Message) -> bool {
    let counts = |(number, _): &(u16, &[u8])| {
        let is_of_blocks = matches!(*number, option::BLOCK1 | option::BLOCK2);
        let is_outside_of_key = *number & 0b1_1110 == 0b1_1100 && !option::is_critical(*number);
        !is_of_blocks && !is_outside_of_key
    };
    one.code == other.code
        && one
            .options()
            .filter(counts)
            .eq(other.options().filter(counts))
}
