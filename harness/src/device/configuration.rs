//! What kind of device is it? Its name, its behaviour and its resources.

use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::exchange::Transmission;
use protocol::lwm2m::version::EnablerVersion;

use super::plain::PlainPath;
use super::resource::{self, Resource};

/// The formats of LwM2M 1.0, which every device has.
const PLAIN_AND_TLV: [ContentFormat; 3] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
];

/// The configuration of a device, before it is switched on for the first time.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Whether it speaks LwM2M; if not, it does not register.
    pub lwm2m: Lwm2m,
    /// The endpoint name in the registration.
    pub endpoint: String,
    /// How it asks for its account; none if it has one from its factory.
    pub bootstrap: Option<Bootstrapping>,
    /// The lifetime in the registration, until the server writes another one to `/1/0/1`.
    pub lifetime_s: u32,
    /// The LwM2M version it speaks.
    pub version: EnablerVersion,
    /// Whether it can be reached at any time.
    pub reachability: Reachability,
    /// The interval of its registration updates; by default nine tenths of the lifetime.
    pub update_interval_ms: Option<u32>,
    /// Whether its notifications are Confirmable.
    pub notify: Notify,
    /// The transmission parameters of its messages.
    pub transmission: Transmission,
    /// The delay before it retries a failed registration.
    pub retry: Retry,
    /// The formats it reads and writes; it refuses requests in others.
    pub formats: Vec<ContentFormat>,
    /// The formats in its registration, which can differ from those it has; empty for none.
    pub announced: Vec<ContentFormat>,
    /// How it answers requests for several paths.
    pub composite: CompositeRead,
    /// Its block size: longer bodies are transferred block-wise.
    pub block: BlockSize,
    /// Its resources; of two with the same path, the later one counts.
    pub resources: Vec<Resource>,
    /// Its paths over plain CoAP; of two with the same path, the first one counts.
    pub paths: Vec<PlainPath>,
}

/// Whether a device speaks LwM2M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lwm2m {
    /// It registers and offers its resources.
    Spoken,
    /// It is identified only by its address.
    Unspoken,
}

/// How a device asks for its bootstrap (LwM2M Core 1.2 section 6.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrapping {
    /// How long it waits after it was switched on.
    pub hold_off_ms: u32,
    /// The format in which it prefers to be written.
    pub preferred: Option<ContentFormat>,
    /// The percentage of Writes and Finishes that it refuses.
    pub refused_percent: u8,
}

/// How a device answers a request for several paths (LwM2M Core 1.1 section 6.3.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompositeRead {
    /// With the values that exist.
    Answered,
    /// It acknowledges the request and never responds.
    AcknowledgedOnly,
    /// It refuses the request.
    Refused(Code),
}

/// When a device is reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// At any time.
    Always,
    /// It is in queue mode: it listens for a while after the last traffic, then sleeps until its
    /// next update.
    Queue {
        /// How long it listens after the last datagram it sent or received.
        awake_window_ms: u32,
    },
}

/// How a device sends notifications (RFC 7641 section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// In Confirmable messages. If one is never acknowledged, the observation ends.
    Confirmable,
    /// In Non-confirmable messages, as most devices do.
    NonConfirmable,
}

/// The delays between attempts to register: each is twice the previous one, plus up to a quarter at
/// random, so that devices that were refused together do not retry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The delay after the first failure.
    pub first_ms: u32,
    /// The longest delay, before the random part is added.
    pub most_ms: u32,
}

impl Configuration {
    /// A device that is always reachable and offers [`resource::defaults`].
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            lwm2m: Lwm2m::Spoken,
            bootstrap: None,
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

    /// A device without LwM2M that offers these paths over plain CoAP.
    pub fn plain(name: impl Into<String>, paths: Vec<PlainPath>) -> Self {
        Self {
            lwm2m: Lwm2m::Unspoken,
            resources: Vec::new(),
            paths,
            ..Self::new(name)
        }
    }

    /// The same device with these formats, which it also announces, and with answers to requests
    /// for several paths.
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
    /// The delay after this many failures in a row, before the random part is added.
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
    fn each_delay_is_twice_the_previous_one_up_to_the_longest() {
        let retry = Retry {
            first_ms: 2_000,
            most_ms: 10_000,
        };
        let waits = [1, 2, 3, 4, 1_000].map(|failures| retry.wait_ms(failures));
        assert_eq!(waits, [2_000, 4_000, 8_000, 10_000, 10_000]);
    }
}
