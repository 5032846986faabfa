//! Which block of a response does a request ask for? The server's side of Block2 (RFC 7959 sections
//! 2.4 and 2.6), without state: each block is cut from the whole body again.

use std::ops::Range;

use super::block::{Block, BlockSize, More};
use super::code::Code;
use super::message::Message;
use super::option;

/// Returns the block of a whole response that the request asks for. A request without Block2 gets
/// the whole body, or its first block if it is longer than the largest block. Errors are not
/// changed. The reserved size is answered with 4.00, and so is a block after the end, for which the
/// standard defines no code.
pub fn cut(mut response: Message, request: &Message, largest: BlockSize) -> Message {
    let body = std::mem::take(&mut response.payload);
    cut_from(response, &body, request, largest)
}

/// Does the same for a body that is not copied, and a response without payload.
pub fn cut_from(response: Message, body: &[u8], request: &Message, largest: BlockSize) -> Message {
    if !response.code.is_success() || response.code == Code::CONTINUE {
        return response.with_payload(body);
    }
    let part = part_of(request, largest, body.len()).and_then(|part| body.get(part));
    cut_part(
        response,
        (part.unwrap_or_default(), body.len()),
        request,
        largest,
    )
}

/// Returns the part of a body of this length that the response to a request has; none if there is
/// no such block.
pub fn part_of(request: &Message, largest: BlockSize, length: usize) -> Option<Range<usize>> {
    match request.block2() {
        None if length <= largest.bytes() => Some(0..length),
        requested => {
            let requested = requested.unwrap_or(Block::new(0, More::No, largest));
            let place = place_of(requested, largest, length)?;
            Some(place.offset..place.end(length))
        }
    }
}

/// Does the same as [`cut`] for a body of which only the part that [`part_of`] names is in memory,
/// with the length of the whole.
pub fn cut_part(
    response: Message,
    (part, length): (&[u8], usize),
    request: &Message,
    largest: BlockSize,
) -> Message {
    let requested = match request.block2() {
        Some(block) => block,
        None if length <= largest.bytes() => return response.with_payload(part),
        None => Block::new(0, More::No, largest),
    };
    match place_of(requested, largest, length) {
        // Without a body there are no blocks, whatever size is requested.
        Some(_) if length == 0 => response,
        Some(place) => cut_at(&place, response, (part, length), request),
        None => refused(&response),
    }
}

struct Place {
    number: u32,
    offset: usize,
    size: BlockSize,
}

impl Place {
    fn end(&self, length: usize) -> usize {
        self.offset.saturating_add(self.size.bytes()).min(length)
    }
}

fn place_of(requested: Block, largest: BlockSize, length: usize) -> Option<Place> {
    let size = requested.size()?.min(largest);
    let offset = requested.offset()?;
    if offset > 0 && offset >= length {
        return None;
    }
    // In smaller blocks, the same offset may have a number that 20 bits do not hold.
    let number = size.number_at(offset)?;
    Some(Place {
        number,
        offset,
        size,
    })
}

fn cut_at(
    place: &Place,
    response: Message,
    (part, length): (&[u8], usize),
    request: &Message,
) -> Message {
    let more = if place.end(length) < length {
        More::Yes
    } else {
        More::No
    };
    let block = Block::new(place.number, more, place.size);
    let response = response.with_block2(block).with_payload(part);
    let is_first = place.offset == 0;
    let response = if is_first {
        response
    } else {
        response.without_option(option::OBSERVE)
    };
    match u32::try_from(length) {
        Ok(length) if is_first || request.size2().is_some() => response.with_size2(length),
        Ok(_) | Err(_) => response,
    }
}

fn refused(response: &Message) -> Message {
    Message::separate(
        response.kind,
        Code::BAD_REQUEST,
        response.message_id,
        response.token,
    )
}
