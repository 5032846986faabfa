//! What does the device hear and answer in blocks? (RFC 7959)

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

/// The longest body a device hears or is answered: more than anybody sends to one.
const BODY_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// How long a body may rest before it is forgotten: EXCHANGE_LIFETIME of RFC 7252 section 4.8.2.
const IDLE_MS: i64 = 247_000;

impl SimulatedDevice {
    /// Gives a request once it is whole, and before that what meets its block.
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

    /// Gives the part of a response that its request asks for.
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

/// Gives the first block of what nobody asked to have in blocks, or all of it if it fits one.
pub(super) fn begin(response: Message, block: BlockSize) -> Message {
    if response.payload.len() <= block.bytes() {
        return response;
    }
    let response = tagged(response);
    serving::cut(response.clone(), &response, block)
}

/// Tells whether a request goes on with an answer of which the beginning was told: nothing is to
/// be done for it again.
pub(super) fn goes_on(request: &Message) -> bool {
    request.block2().is_some_and(|block| block.number() > 0)
}

/// How the device says what may take several messages.
pub(super) fn rules(device: &Configuration) -> TransferRules<'_> {
    TransferRules {
        transmission: &device.transmission,
        block: device.block,
        answer_bytes_max: BODY_BYTES_MAX,
        idle_ms: IDLE_MS,
    }
}

// Blocks of another version of a body are told from those that were asked for (section 2.4).
fn tagged(response: Message) -> Message {
    let tag = digest(&response.payload).to_be_bytes();
    response.with_etag(&tag)
}
