//! What kind of device is it? Its name, its manners and what it offers.

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::lwm2m::version::EnablerVersion;

use super::plain::PlainPath;
use super::resource::{self, Resource};

/// The formats of LwM2M 1.0 that every device has.
const PLAIN_AND_TLV: [ContentFormat; 3] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
];

/// Describes a device before it is switched on for the first time.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Whether it speaks LwM2M; if not, it does not register.
    pub lwm2m: Lwm2m,
    /// The endpoint name it registers under.
    pub endpoint: String,
    /// The lifetime it registers with, until the server writes another to `/1/0/1`.
    pub lifetime_s: u32,
    /// The release of LwM2M it speaks.
    pub version: EnablerVersion,
    /// Whether it can be reached at any time.
    pub reachability: Reachability,
    /// How often it updates its registration; nine tenths of its lifetime if not said.
    pub update_interval_ms: Option<u32>,
    /// Whether it wants its notifications acknowledged.
    pub notify: Notify,
    /// How patient it is with unanswered messages.
    pub transmission: Transmission,
    /// How long it waits before it tries a failed registration again.
    pub retry: Retry,
    /// The formats it reads and writes; what is asked or told in others it refuses.
    pub formats: Vec<ContentFormat>,
    /// The formats it registers with, which need not be those it has; nothing, if it says none.
    pub announced: Vec<ContentFormat>,
    /// What it does when it is asked for several paths at once.
    pub composite: CompositeRead,
    /// The size of its blocks: what is longer it says and answers in blocks.
    pub block: BlockSize,
    /// What it offers; of two resources with one path the later counts.
    pub resources: Vec<Resource>,
    /// What it offers over plain CoAP; of two with one path the first counts.
    pub paths: Vec<PlainPath>,
}

/// Tells whether a device speaks LwM2M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lwm2m {
    /// It registers and offers its resources.
    Spoken,
    /// It is known by its address alone.
    Unspoken,
}

/// Tells what a device does with a request for several paths at once (LwM2M Core 1.1 section
/// 6.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompositeRead {
    /// It answers with what there is.
    Answered,
    /// It acknowledges the request and never answers.
    AcknowledgedOnly,
    /// It refuses.
    Refused(Code),
}

/// Tells whether a device listens at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// It always listens.
    Always,
    /// It is in queue mode: it listens for a while after the last traffic, then sleeps until its
    /// next update.
    Queue {
        /// How long it listens after the last datagram it sent or received.
        awake_window_ms: u32,
    },
}

/// Tells how a device says that something observed has changed (RFC 7641 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// In messages that are repeated until they are acknowledged, and given up with the observation
    /// if they never are.
    Confirmable,
    /// In messages that may get lost, as most devices do.
    NonConfirmable,
}

/// The waits between attempts to register: each twice the one before, plus up to a quarter of
/// chance, so that devices that were turned away together do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The wait after the first failure.
    pub first_ms: u32,
    /// The longest wait, before chance is added.
    pub most_ms: u32,
}

impl Configuration {
    /// Describes a device that always listens and offers [`resource::defaults`].
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            lwm2m: Lwm2m::Spoken,
            lifetime_s: 300,
            version: EnablerVersion::V1_1,
            reachability: Reachability::Always,
            update_interval_ms: None,
            notify: Notify::NonConfirmable,
            transmission: Transmission::STANDARD,
            retry: Retry {
                first_ms: 2_000,
                most_ms: 300_000,
            },
            formats: PLAIN_AND_TLV.to_vec(),
            announced: PLAIN_AND_TLV.to_vec(),
            composite: CompositeRead::Refused(Code::METHOD_NOT_ALLOWED),
            block: BlockSize::MAX,
            resources: resource::defaults(),
            paths: Vec::new(),
        }
    }

    /// Describes a device without LwM2M that offers these paths over plain CoAP.
    pub fn plain(name: impl Into<String>, paths: Vec<PlainPath>) -> Self {
        Self {
            lwm2m: Lwm2m::Unspoken,
            resources: Vec::new(),
            paths,
            ..Self::new(name)
        }
    }

    /// Has the device speak and announce these formats, and answer for several paths at once.
    pub fn speaking(self, formats: &[ContentFormat]) -> Self {
        Self {
            formats: formats.to_vec(),
            announced: formats.to_vec(),
            composite: CompositeRead::Answered,
            ..self
        }
    }
}

impl Retry {
    /// Returns the wait after so many failures in a row, before chance is added.
    pub(super) fn wait_ms(&self, failures: u32) -> u32 {
        let doublings = failures.saturating_sub(1).min(31);
        let wait_ms = u64::from(self.first_ms) << doublings;
        u32::try_from(wait_ms).unwrap_or(u32::MAX).min(self.most_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::Retry;

    #[test]
    fn each_wait_is_twice_the_one_before_up_to_the_longest() {
        let retry = Retry {
            first_ms: 2_000,
            most_ms: 10_000,
        };
        let waits = [1, 2, 3, 4, 1_000].map(|failures| retry.wait_ms(failures));
        assert_eq!(waits, [2_000, 4_000, 8_000, 10_000, 10_000]);
    }
}
