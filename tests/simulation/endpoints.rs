//! The systems of customers that are told what happens, each with manners of its own.

use std::collections::BTreeMap;

use engine::ids::DestinationId;
use harness::rng::Rng;

use crate::settings::pick;

/// How long somebody who delivers waits for an answer.
pub(crate) const TIMEOUT_MS: i64 = 20_000;

/// All endpoints.
#[derive(Default)]
pub(crate) struct Endpoints {
    manners: BTreeMap<DestinationId, EndpointBehaviour>,
    /// Whether all of them are well for now.
    are_well: bool,
}

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EndpointBehaviour {
    /// It takes everything at once.
    Healthy,
    /// It takes everything, some of it after whoever waits has given up.
    Slow,
    /// Nobody is there.
    Dead,
    /// It is there for a while, and away for a while.
    Flapping { every_ms: i64 },
    /// It answers 4xx and 5xx as it likes.
    Erratic,
    /// It takes everything, and answers are lost.
    Forgetful,
    /// It refuses what a device says, and takes the rest.
    Picky { who: usize },
}

/// What becomes of what is brought to an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryReception {
    /// Whether it has it.
    pub(crate) is_taken: bool,
    pub(crate) after_ms: i64,
    /// What is answered; nothing if the answer is lost, or there is none.
    pub(crate) answer: Option<&'static str>,
}

impl EndpointBehaviour {
    /// The manners of a destination, of which one that is healthy stays so.
    pub(crate) fn draw(devices: usize, pace_ms: i64, rng: &mut Rng) -> Self {
        match rng.below(10) {
            0..3 => Self::Healthy,
            3 => Self::Slow,
            4 => Self::Dead,
            5 => Self::Flapping {
                every_ms: pick(rng, [1_000, 60_000, 50 * pace_ms, 3_600_000]),
            },
            6 => Self::Erratic,
            7 => Self::Forgetful,
            _ => Self::Picky {
                who: rng.below(devices as u32) as usize,
            },
        }
    }

    /// Whether it takes at once what this device says, whatever else happens.
    pub(crate) fn always_takes(self, who: usize) -> bool {
        match self {
            Self::Healthy => true,
            Self::Picky { who: refused } => who != refused,
            Self::Slow | Self::Dead | Self::Flapping { .. } | Self::Erratic | Self::Forgetful => {
                false
            }
        }
    }

    fn receive(self, now_ms: i64, who: Option<usize>, rng: &mut Rng) -> DeliveryReception {
        let soon_ms = 1 + i64::from(rng.below(40));
        let (taken, refused) = (taken_after(soon_ms), refused_after(soon_ms, "answered 500"));
        match self {
            Self::Healthy => taken,
            Self::Slow => taken_after(i64::from(rng.below(30_000))),
            Self::Dead => refused_after(soon_ms, "could not be reached"),
            Self::Flapping { every_ms } => match (now_ms / every_ms) % 2 {
                0 => taken,
                _ => refused,
            },
            Self::Erratic => match rng.below(4) {
                0 => refused,
                1 => refused_after(soon_ms, "answered 404"),
                _ => taken,
            },
            Self::Forgetful if rng.below(3) == 0 => DeliveryReception {
                answer: None,
                ..taken
            },
            Self::Forgetful => taken,
            Self::Picky { who: it } => match who == Some(it) {
                true => refused_after(soon_ms, "answered 422"),
                false => taken,
            },
        }
    }
}

fn taken_after(after_ms: i64) -> DeliveryReception {
    DeliveryReception {
        is_taken: true,
        after_ms,
        answer: (after_ms < TIMEOUT_MS).then_some("took it"),
    }
}

fn refused_after(after_ms: i64, answer: &'static str) -> DeliveryReception {
    DeliveryReception {
        is_taken: false,
        after_ms,
        answer: Some(answer),
    }
}

impl Endpoints {
    pub(crate) fn put(&mut self, id: DestinationId, manner: EndpointBehaviour) {
        self.manners.insert(id, manner);
    }

    /// The manners of an endpoint by now; one that nobody gave any is healthy.
    fn manner(&self, id: DestinationId) -> EndpointBehaviour {
        let own = self.manners.get(&id).copied();
        own.filter(|_| !self.are_well)
            .unwrap_or(EndpointBehaviour::Healthy)
    }

    /// All of them are well.
    pub(crate) fn cure(&mut self) {
        self.are_well = true;
    }

    /// They are as they were.
    pub(crate) fn relapse(&mut self) {
        self.are_well = false;
    }

    /// Brings something that a device said.
    pub(crate) fn receive(
        &self,
        id: DestinationId,
        now_ms: i64,
        who: Option<usize>,
        rng: &mut Rng,
    ) -> DeliveryReception {
        self.manner(id).receive(now_ms, who, rng)
    }
}
