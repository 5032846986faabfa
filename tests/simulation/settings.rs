//! What is this world like? The settings are drawn from its seed, so that many seeds give many
//! worlds.

use std::sync::Arc;

use engine::bootstrap::{AccountSecurity, BootstrapConfig, BootstrapServer, SHORT_ID};
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::forwarding::DeliveryRules;
use engine::directory::bootstrap::ServiceUris;
use engine::firmware::delivery::DownloadUris;
use engine::limits::{ACTION_RETENTION_MS, Limits};
use engine::rules::{EndpointTrust, NoSecBootstrap, Rules};
use harness::rng::Rng;
use protocol::coap::block::BlockSize;
use protocol::coap::exchange::Transmission;
use protocol::lwm2m::binding::Binding;

use crate::disk::campaigns::IMAGES_AT;

/// The documented waits between the tries of an event.
const WAITS_MS: [i64; 4] = [150_000, 180_000, 420_000, 1_020_000];

/// The settings of a world, which never change.
#[derive(Clone, Debug)]
pub(crate) struct WorldSettings {
    pub(crate) devices: usize,
    /// How many arbiters the service has.
    pub(crate) arbiters: usize,
    /// How many nodes share them.
    pub(crate) nodes: usize,
    /// The typical time between two acts.
    pub(crate) pace_ms: i64,
    /// The bounds of the lifetimes that devices choose.
    pub(crate) lifetime_s: (u32, u32),
    /// The percentage of devices in queue mode.
    pub(crate) queue_mode_percent: u8,
    /// Whether devices differ in what they offer and in their formats.
    pub(crate) kinds: Kinds,
    pub(crate) rules: Rules,
    /// Whether two of the devices share an address.
    pub(crate) shared: Shared,
    /// The percentage of LwM2M devices with a firmware object.
    pub(crate) firmware_percent: u8,
    /// The percentage of LwM2M devices that get their accounts by bootstrap.
    pub(crate) bootstrap_percent: u8,
    /// What they are given.
    pub(crate) bootstrap: BootstrapConfig,
    /// How events are delivered.
    pub(crate) delivery: Arc<DeliveryRules>,
    /// The retention of final requests.
    pub(crate) retention_ms: i64,
    /// The faults while the world is not healed.
    pub(crate) faults: Faults,
}

/// The kinds of devices in a world.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kinds {
    /// All devices speak LwM2M alike.
    One,
    /// All devices speak LwM2M alike, over DTLS.
    Secured,
    /// Some also or only speak plain CoAP and bare UDP. They offer more or less, in different
    /// formats, and some announce formats that they refuse. Some speak LwM2M over DTLS.
    Many,
}

/// Whether two devices share an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shared {
    /// No device shares its address.
    No,
    /// Two of the devices without LwM2M share an address.
    Yes,
}

/// How often faults happen, in percent of the cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) lost_percent: u8,
    pub(crate) repeated_percent: u8,
    /// Datagrams that take seconds instead of milliseconds.
    pub(crate) late_percent: u8,
    /// Commits that take seconds instead of milliseconds.
    pub(crate) slow_commit_percent: u8,
    /// Reads of the disk that take seconds instead of milliseconds.
    pub(crate) slow_read_percent: u8,
    /// Reads that fail.
    pub(crate) unread_percent: u8,
    /// Bare datagrams that the socket refuses.
    pub(crate) refused_percent: u8,
    /// Bare datagrams whose outcome the device learns late.
    pub(crate) late_outcome_percent: u8,
    /// Batches between arbiters that wait seconds for a busy arbiter.
    pub(crate) busy_percent: u8,
    /// Mailboxes between arbiters that are full.
    pub(crate) crowded_percent: u8,
    /// Batches between nodes that are lost.
    pub(crate) cut_percent: u8,
}

impl Faults {
    /// No faults.
    pub(crate) const NONE: Self = Self {
        lost_percent: 0,
        repeated_percent: 0,
        late_percent: 0,
        slow_commit_percent: 0,
        slow_read_percent: 0,
        unread_percent: 0,
        refused_percent: 0,
        late_outcome_percent: 0,
        busy_percent: 0,
        crowded_percent: 0,
        cut_percent: 0,
    };
}

impl WorldSettings {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        // From a world of seconds, in which everything collides, to a world of hours, in which
        // requests expire after their two days.
        let (pace_ms, lifetime_s) = match rng.below(4) {
            0 => (100, (20, 60)),
            1 => (1_000, (30, 600)),
            2 => (30_000, (300, 7_200)),
            _ => (1_200_000, (3_600, 100_000)),
        };
        Self {
            devices: 2 + rng.below(9) as usize,
            arbiters: pick(rng, [1, 2, 3, 5]),
            nodes: pick(rng, [1, 1, 2, 3]),
            pace_ms,
            lifetime_s,
            queue_mode_percent: pick(rng, [0, 50, 100]),
            kinds: Kinds::Many,
            shared: pick(rng, [Shared::No, Shared::Yes]),
            firmware_percent: 80,
            bootstrap_percent: 30,
            bootstrap: with_second_server(lifetime_s.0),
            rules: rules(rng),
            delivery: Arc::new(delivery(rng, pace_ms)),
            retention_ms: 300 * pace_ms,
            faults: Faults {
                lost_percent: pick(rng, [0, 5, 20, 50]),
                repeated_percent: pick(rng, [0, 5, 20, 40]),
                late_percent: pick(rng, [0, 1, 5, 20]),
                slow_commit_percent: pick(rng, [0, 1, 5, 20]),
                slow_read_percent: pick(rng, [0, 1, 5, 20]),
                unread_percent: pick(rng, [0, 0, 1, 5]),
                refused_percent: pick(rng, [0, 5, 20]),
                late_outcome_percent: pick(rng, [0, 10, 50]),
                busy_percent: pick(rng, [0, 1, 5, 20]),
                crowded_percent: pick(rng, [0, 0, 1, 5]),
                cut_percent: pick(rng, [0, 1, 5, 20]),
            },
        }
    }

    /// A world without faults in which nothing happens by itself.
    pub(crate) fn still(devices: usize) -> Self {
        Self {
            devices,
            arbiters: 2,
            nodes: 1,
            pace_ms: 1_000,
            lifetime_s: (86_400, 86_400),
            queue_mode_percent: 0,
            kinds: Kinds::One,
            shared: Shared::No,
            firmware_percent: 0,
            bootstrap_percent: 0,
            bootstrap: BootstrapConfig::of_this_service(AccountSecurity::NoSec),
            rules: Rules {
                limits: Limits::default(),
                transmission: Transmission::STANDARD,
                bootstrap: NoSecBootstrap::Accepted,
                uris: ServiceUris::default(),
                downloads: downloads(),
                names: EndpointTrust::NameSuffices,
                own: Box::default(),
                addresses: AddressPolicy::PublicOnly,
            },
            delivery: Arc::new(DeliveryRules {
                retry_delays_ms: WAITS_MS.into(),
                sms_retry_delays_ms: WAITS_MS.into(),
                parallel_max: 64,
                backlog_max: 100_000,
            }),
            retention_ms: ACTION_RETENTION_MS,
            faults: Faults::NONE,
        }
    }
}

/// An account at this service, and one at another server with a key.
pub(crate) fn with_second_server(lifetime_s: u32) -> BootstrapConfig {
    BootstrapConfig {
        servers: Box::new([
            server((SHORT_ID, None), lifetime_s, AccountSecurity::NoSec),
            server(
                (2_222, Some("coaps://other.example")),
                lifetime_s,
                AccountSecurity::Psk,
            ),
        ]),
        objects: Box::default(),
    }
}

/// An account at this service with a key.
pub(crate) fn with_own_key(lifetime_s: u32) -> BootstrapConfig {
    BootstrapConfig {
        servers: Box::new([server((SHORT_ID, None), lifetime_s, AccountSecurity::Psk)]),
        objects: Box::default(),
    }
}

fn server(
    (short_id, uri): (u16, Option<&str>),
    lifetime_s: u32,
    security: AccountSecurity,
) -> BootstrapServer {
    BootstrapServer {
        short_id,
        uri: uri.map(Into::into),
        lifetime_s,
        binding: Binding::UDP,
        security,
        certificate: None,
    }
}

fn rules(rng: &mut Rng) -> Rules {
    let limits = Limits::default();
    Rules {
        limits: Limits {
            scheduled_max: pick(rng, [2, 5, limits.scheduled_max]),
            waiting_max: pick(rng, [1, 3, limits.waiting_max]),
            awake_window_ms: pick(rng, [10_000, limits.awake_window_ms]),
            passive_response_timeout_ms: pick(rng, [1_000, limits.passive_response_timeout_ms]),
            block: pick(rng, [BlockSize::MIN, BlockSize::MAX]),
            ..limits
        },
        transmission: Transmission {
            ack_timeout_ms: pick(rng, [500, 2_000]),
            max_retransmit: pick(rng, [1, 4]),
            response_timeout_ms: pick(rng, [5_000, 93_000]),
            ..Transmission::STANDARD
        },
        bootstrap: NoSecBootstrap::Accepted,
        uris: ServiceUris::default(),
        downloads: downloads(),
        names: EndpointTrust::NameSuffices,
        own: Box::default(),
        addresses: AddressPolicy::PublicOnly,
    }
}

fn downloads() -> DownloadUris {
    DownloadUris {
        http: Some(IMAGES_AT.into()),
        ..DownloadUris::default()
    }
}

fn delivery(rng: &mut Rng, pace_ms: i64) -> DeliveryRules {
    // In a fast world, tries do not wait for a quarter of an hour.
    let waits_ms = match pace_ms {
        ..10_000 => WAITS_MS.map(|wait_ms| wait_ms / 1_000),
        10_000.. => WAITS_MS,
    };
    DeliveryRules {
        retry_delays_ms: waits_ms.into(),
        sms_retry_delays_ms: waits_ms.into(),
        parallel_max: pick(rng, [2, 8, 64]),
        backlog_max: pick(rng, [10, 30, 100_000]),
    }
}

pub(crate) fn pick<T: Copy, const N: usize>(rng: &mut Rng, from: [T; N]) -> T {
    from[rng.below(N as u32) as usize]
}
