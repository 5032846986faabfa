//! Which request does a device make next? One kind, or several at stated shares.

use std::fmt;

use crate::rng::Rng;

/// A kind of request to the server.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LoadRequest {
    /// A registration.
    Register,
    /// A registration update.
    Update,
    /// A Send of a measured value.
    Send,
}

/// The share of each kind of request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestMix {
    /// The share of registrations.
    pub register: u32,
    /// The share of updates.
    pub update: u32,
    /// The share of Sends.
    pub send: u32,
}

impl RequestMix {
    /// Updates only.
    pub const UPDATES: Self = Self {
        register: 0,
        update: 1,
        send: 0,
    };

    /// Sends only.
    pub const SENDS: Self = Self {
        register: 0,
        update: 0,
        send: 1,
    };

    /// The sum of the shares.
    pub fn total(self) -> u32 {
        [self.register, self.update, self.send]
            .into_iter()
            .fold(0, u32::saturating_add)
    }

    /// Draws the kind of the next request.
    pub(super) fn draw(self, rng: &mut Rng) -> LoadRequest {
        let drawn = rng.below(self.total());
        if drawn < self.send {
            LoadRequest::Send
        } else if drawn < self.send.saturating_add(self.register) {
            LoadRequest::Register
        } else {
            LoadRequest::Update
        }
    }
}

impl fmt::Display for LoadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Register => "register",
            Self::Update => "update",
            Self::Send => "send",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_drawn_at_their_shares() {
        let mix = RequestMix {
            register: 10,
            update: 60,
            send: 30,
        };
        let mut rng = Rng::from_seed(1);
        let mut drawn = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            *drawn.entry(mix.draw(&mut rng)).or_insert(0) += 1;
        }
        for (request, expected) in [
            (LoadRequest::Register, 1_000),
            (LoadRequest::Update, 6_000),
            (LoadRequest::Send, 3_000),
        ] {
            let count = drawn[&request];
            assert!(
                (expected - 300..expected + 300).contains(&count),
                "{drawn:?}"
            );
        }
    }

    #[test]
    fn a_request_without_a_share_is_never_drawn() {
        let mut rng = Rng::from_seed(1);
        for _ in 0..100 {
            assert_eq!(RequestMix::SENDS.draw(&mut rng), LoadRequest::Send);
            assert_eq!(RequestMix::UPDATES.draw(&mut rng), LoadRequest::Update);
        }
    }
}
