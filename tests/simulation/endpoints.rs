//! The systems of customers that receive events, each with a behaviour of its own.

use std::collections::{BTreeMap, BTreeSet};

use engine::ids::DestinationId;
use harness::rng::Rng;

use crate::settings::pick;

/// How long a delivery waits for an answer.
pub(crate) const TIMEOUT_MS: i64 = 20_000;

/// All endpoints.
#[derive(Default)]
pub(crate) struct Endpoints {
    behaviours: BTreeMap<DestinationId, EndpointBehaviour>,
    /// Those that are brokers.
    brokers: BTreeSet<DestinationId>,
    /// Whether all of them are healthy for now.
    are_well: bool,
}

/// How an endpoint behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EndpointBehaviour {
    /// It accepts everything at once.
    Healthy,
    /// It accepts everything, but some of it after the delivery timed out.
    Slow,
    /// Nothing listens there.
    Dead,
    /// It is up for a while, and down for a while.
    Flapping { every_ms: i64 },
    /// It answers 4xx and 5xx at random.
    Erratic,
    /// It accepts everything, and its answers are lost.
    Forgetful,
    /// It refuses the events of one device, and accepts all others.
    Picky { who: usize },
}

/// What becomes of a delivery at an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryReception {
    /// Whether the endpoint accepted the event.
    pub(crate) is_taken: bool,
    pub(crate) after_ms: i64,
    /// The answer; None if it is lost or there is none.
    pub(crate) answer: Option<&'static str>,
}

impl EndpointBehaviour {
    /// A random behaviour for a destination.
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

    /// Whether it accepts the events of this device at once in any case.
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
    pub(crate) fn put(&mut self, id: DestinationId, behaviour: EndpointBehaviour) {
        self.behaviours.insert(id, behaviour);
    }

    /// Makes an endpoint a broker.
    pub(crate) fn put_broker(&mut self, id: DestinationId) {
        self.brokers.insert(id);
    }

    /// Whether an endpoint is a broker.
    pub(crate) fn is_broker(&self, id: DestinationId) -> bool {
        self.brokers.contains(&id)
    }

    /// The current behaviour of an endpoint, healthy by default.
    fn behaviour(&self, id: DestinationId) -> EndpointBehaviour {
        let own = self.behaviours.get(&id).copied();
        own.filter(|_| !self.are_well)
            .unwrap_or(EndpointBehaviour::Healthy)
    }

    /// Makes all endpoints healthy.
    pub(crate) fn cure(&mut self) {
        self.are_well = true;
    }

    /// Restores the behaviours of all endpoints.
    pub(crate) fn relapse(&mut self) {
        self.are_well = false;
    }

    /// Delivers an event of a device.
    pub(crate) fn receive(
        &self,
        id: DestinationId,
        now_ms: i64,
        who: Option<usize>,
        rng: &mut Rng,
    ) -> DeliveryReception {
        self.behaviour(id).receive(now_ms, who, rng)
    }
}
