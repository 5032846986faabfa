//! Which message comes next? Fragments arrive in any order, several times or overlapping; messages
//! are read whole and in order (RFC 6347 sections 4.2.2 and 4.2.3).

use super::message::{Fragment, Message};

/// How far ahead of the next message others are kept: the longest flight of a handshake.
const AHEAD_MAX: u16 = 8;

/// The most bytes of one handshake that wait to become messages.
const WAITING_MAX: usize = 20_480;

/// The most gaps in a message. Its fragments come nearly in order, and each one is compared with
/// all gaps. What would make one more is dropped; the peer sends its flight again, and a fragment
/// at the edge of a gap is always taken (RFC 6347 section 4.2.4).
const GAPS_MAX: usize = 64;

/// What a fragment is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reception {
    /// A part that is needed, or was there already.
    Kept,
    /// A part of a message that was read: the peer repeats its flight.
    Repeated,
    /// Too far ahead, too much, or contradicting what was received before.
    Dropped,
}

/// The messages of one handshake that are not complete, or not the next.
#[derive(Debug)]
pub(crate) struct Reassembly {
    next: u16,
    partial: Vec<Partial>,
}

#[derive(Debug)]
struct Partial {
    message: Message,
    length: u32,
    /// What is missing, in order: begin and end of each gap.
    gaps: Vec<(u32, u32)>,
}

impl Reassembly {
    /// Awaits the message with this number first.
    pub(crate) fn starting_at(next: u16) -> Self {
        Self {
            next,
            partial: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, fragment: &Fragment<'_>) -> Reception {
        let Some(ahead) = fragment.sequence.checked_sub(self.next) else {
            return Reception::Repeated;
        };
        if ahead >= AHEAD_MAX {
            return Reception::Dropped;
        }
        let mut partials = self.partial.iter();
        let place = partials.position(|it| it.message.sequence == fragment.sequence);
        let place = match place {
            Some(place) => place,
            None if self.waiting() + fragment.length as usize > WAITING_MAX => {
                return Reception::Dropped;
            }
            None => {
                self.partial.push(Partial::begun_by(fragment));
                self.partial.len() - 1
            }
        };
        self.partial[place].insert(fragment)
    }

    /// The next message, once it is whole.
    pub(crate) fn next_message(&mut self) -> Option<Message> {
        let mut partials = self.partial.iter();
        let place =
            partials.position(|it| it.message.sequence == self.next && it.gaps.is_empty())?;
        self.next = self.next.checked_add(1)?;
        Some(self.partial.swap_remove(place).message)
    }

    fn waiting(&self) -> usize {
        self.partial.iter().map(|it| it.length as usize).sum()
    }
}

impl Partial {
    fn begun_by(fragment: &Fragment<'_>) -> Self {
        Self {
            message: Message {
                message_type: fragment.message_type,
                sequence: fragment.sequence,
                body: vec![0; fragment.length as usize],
            },
            length: fragment.length,
            gaps: vec![(0, fragment.length.max(1))],
        }
    }

    fn insert(&mut self, fragment: &Fragment<'_>) -> Reception {
        if fragment.message_type != self.message.message_type || fragment.length != self.length {
            return Reception::Dropped;
        }
        if fragment.length == 0 {
            self.gaps.clear();
            return Reception::Kept;
        }
        let begin = fragment.offset;
        let end = begin + fragment.bytes.len() as u32;
        let cuts = |(from, to): &(u32, u32)| *from < begin && end < *to;
        if self.gaps.len() >= GAPS_MAX && self.gaps.iter().any(cuts) {
            return Reception::Dropped;
        }
        let body = &mut self.message.body;
        let gaps = std::mem::take(&mut self.gaps);
        for (from, to) in gaps {
            let (first, last) = (from.max(begin), to.min(end));
            if first >= last {
                self.gaps.push((from, to));
                continue;
            }
            // Only what is missing is taken: a later fragment changes nothing.
            let part = &fragment.bytes[(first - begin) as usize..(last - begin) as usize];
            body[first as usize..last as usize].copy_from_slice(part);
            self.gaps.extend((from < first).then_some((from, first)));
            self.gaps.extend((last < to).then_some((last, to)));
        }
        Reception::Kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::handshake::message::MessageType;

    /// A part of a message: its number, and from where to where.
    type Cut = (usize, usize, usize);

    /// The fragments of some messages, each cut somewhere, all of them at least once, in any order.
    fn fragments() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<Cut>)> {
        let bodies = proptest::collection::vec(proptest::collection::vec(0u8.., 0..40), 1..5);
        bodies.prop_flat_map(|bodies| {
            let mut cuts = Vec::new();
            for (message, body) in bodies.iter().enumerate() {
                let middle = body.len() / 2;
                cuts.push((message, 0, body.len()));
                cuts.push((message, 0, middle));
                cuts.push((message, middle / 2, body.len()));
            }
            let cuts = proptest::strategy::Just(cuts).prop_shuffle();
            (proptest::strategy::Just(bodies), cuts)
        })
    }

    proptest! {
        #[test]
        fn messages_are_whole_and_in_order((bodies, cuts) in fragments()) {
            let mut reassembly = Reassembly::starting_at(3);
            let mut read = Vec::new();
            for (message, from, to) in cuts {
                let body = &bodies[message];
                let sequence = message as u16 + 3;
                let reception = reassembly.insert(&Fragment {
                    message_type: MessageType::Certificate,
                    length: body.len() as u32,
                    sequence,
                    offset: from as u32,
                    bytes: &body[from..to],
                });
                let was_read = message < read.len();
                prop_assert_eq!(reception == Reception::Repeated, was_read);
                while let Some(message) = reassembly.next_message() {
                    prop_assert_eq!(usize::from(message.sequence), read.len() + 3);
                    read.push(message.body);
                }
            }
            prop_assert_eq!(read, bodies);
            prop_assert!(reassembly.partial.is_empty());
        }
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut reassembly = Reassembly::starting_at(0);
        let byte_of = |sequence, length, offset| Fragment {
            message_type: MessageType::Certificate,
            length,
            sequence,
            offset,
            bytes: &[1],
        };
        for (fragment, expected) in [
            (byte_of(0, 16_384, 0), Reception::Kept),
            (byte_of(1, 16_384, 0), Reception::Dropped),
            (byte_of(AHEAD_MAX, 1, 0), Reception::Dropped),
            // Another length contradicts the first fragment.
            (byte_of(0, 100, 0), Reception::Dropped),
        ] {
            assert_eq!(reassembly.insert(&fragment), expected, "{fragment:?}");
        }
        // Every other byte, from the end.
        for place in (0..8_192).rev() {
            let gaps = reassembly.partial[0].gaps.len();
            let expected = match gaps < GAPS_MAX {
                true => Reception::Kept,
                false if place == 0 => Reception::Kept,
                false => Reception::Dropped,
            };
            let fragment = byte_of(0, 16_384, 2 * place);
            assert_eq!(reassembly.insert(&fragment), expected, "{fragment:?}");
        }
        assert_eq!(reassembly.partial[0].gaps.len(), GAPS_MAX);
        // What is sent again, in order, is taken.
        for offset in 0..16_384 {
            assert_eq!(
                reassembly.insert(&byte_of(0, 16_384, offset)),
                Reception::Kept
            );
        }
        let message = reassembly.next_message();
        assert_eq!(message.map(|it| it.body), Some(vec![1; 16_384]));
    }
}
