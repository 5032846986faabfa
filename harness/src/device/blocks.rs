//! How does the device receive and answer block-wise? (RFC 7959)

use protocol::coap::assembly::{Assembly, AssemblyOutcome};
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::message::Message;
use protocol::coap::serving;
use protocol::coap::transfer::TransferRules;

use super::SimulatedDevice;
use super::configuration::Configuration;
use super::dedup::digest;
use super::outcome::ResponseContent;

/// The longest body that a device receives or gets as a response: more than anybody sends to one.
const BODY_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// How long an incomplete body is kept without a new block: EXCHANGE_LIFETIME of RFC 7252 section
/// 4.8.2.
const IDLE_MS: i64 = 247_000;

impl SimulatedDevice {
    /// Returns the request once it is complete, otherwise the response to its block.
    pub(super) fn gather(&mut self, now_ms: i64, request: &Message) -> Result<Message, Message> {
        let incoming = &mut self.session.incoming;
        if incoming.expires_at(IDLE_MS) <= now_ms {
            *incoming = Assembly::default();
        }
        let code = match incoming.take(now_ms, request, BODY_BYTES_MAX) {
            AssemblyOutcome::Whole(whole) => return Ok(whole),
            AssemblyOutcome::Continue => Code::CONTINUE,
            AssemblyOutcome::Incomplete => Code::REQUEST_ENTITY_INCOMPLETE,
            AssemblyOutcome::TooLarge { .. } => Code::REQUEST_ENTITY_TOO_LARGE,
            AssemblyOutcome::Malformed => Code::BAD_REQUEST,
        };
        Err(self.respond(request, ResponseContent::of(code)))
    }

    /// The block of a response that its request asks for.
    pub(super) fn in_blocks(&self, response: Message, request: &Message) -> Message {
        let response = match request.block1() {
            Some(block) if response.code.is_success() => response.with_block1(block),
            Some(_) | None => response,
        };
        if request.block2().is_none() {
            return begin(response, self.configuration.block);
        }
        serving::cut(tagged(response), request, self.configuration.block)
    }
}

/// The first block of a response to a request without a Block2 option, or the whole response if it
/// fits.
pub(super) fn begin(response: Message, block: BlockSize) -> Message {
    if response.payload.len() <= block.bytes() {
        return response;
    }
    let response = tagged(response);
    serving::cut(response.clone(), &response, block)
}

/// Whether a request continues a response whose first blocks were sent: the operation is not
/// performed again.
pub(super) fn continues(request: &Message) -> bool {
    request.block2().is_some_and(|block| block.number() > 0)
}

/// The rules for the block-wise requests of the device.
pub(super) fn rules(device: &Configuration) -> TransferRules<'_> {
    TransferRules {
        transmission: &device.transmission,
        block: device.block,
        answer_bytes_max: BODY_BYTES_MAX,
        idle_ms: IDLE_MS,
    }
}

// An ETag distinguishes the blocks of different versions of a body (section 2.4).
fn tagged(response: Message) -> Message {
    let tag = digest(&response.payload).to_be_bytes();
    response.with_etag(&tag)
}
