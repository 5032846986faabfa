//! How much of everything: each bound, the reason for its number, and what happens at it.
//!
//! Constants are the defaults or the hard walls; [`Limits`] carries those an operator may set.

use protocol::coap::block::BlockSize;

use crate::moment::Timestamp;

/// Virtual shards among which devices are spread: enough to split over hundreds of owners,
/// few enough that a list of them is nothing.
pub const SHARDS: u16 = 1_024;

/// The longest registration lifetime honoured; a longer one, 0 or none counts as this (seed 1.4).
pub const LIFETIME_S_MAX: u32 = 86_400;

/// Final action requests are removed this long after their creation.
pub const ACTION_RETENTION_MS: i64 = 7 * DAY_MS;

/// A call named by an `Idempotency-Key` is remembered so long: a caller that did not hear its
/// answer asks again sooner.
pub const PROMISE_RETENTION_MS: i64 = DAY_MS;

/// Administration log entries are removed this long after they were written, so that the seven
/// days before any end within reach exist.
pub const LOG_RETENTION_MS: i64 = 30 * DAY_MS;

/// The window of the administration log when no time is asked for (seed 8).
pub const LOG_WINDOW_MS: i64 = 7 * DAY_MS;

/// The bytes of a payload that a log entry keeps: any datagram fits (RFC 768 allows 65,507 bytes of
/// data). Of what came in more than one, the rest is cut off, and the entry says so.
pub const LOG_PAYLOAD_BYTES_MAX: usize = 65_536;

/// An update that changes nothing is saved at most this often, so that a fleet's updates stay in
/// memory; a restart grants this much longer to a stored registration.
pub const PRESENCE_SAVE_MS: i64 = 3_600_000;

/// One rejected registration of a device is logged at most this often: a stranger who knows an
/// endpoint name must not be able to fill its owner's log.
pub const REJECTION_LOG_MS: i64 = 60_000;

/// The most send attempts a request may ask for (seed 8).
pub const SEND_ATTEMPTS_MAX: u8 = 5;

/// A device that deregistered is remembered so long: it may repeat its farewell for
/// EXCHANGE_LIFETIME (RFC 7252 section 4.8.2) and is to hear the same answer.
pub const FAREWELL_MS: i64 = 247_000;

/// The longest text a request may carry as `data` or `payload`: a mebibyte in base64, and some. A
/// longer one is refused with 400.
pub const ACTION_DATA_BYTES_MAX: usize = 1_500_000;

/// The bytes of `data` and `payload` that may wait for a device at a time: they are in memory while
/// they wait. A request beyond them is refused with 409.
pub const WAITING_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The longest data of a request or a result that is shown among others: a page of a hundred has
/// less than a mebibyte of them. What is longer is shown where the request is shown by itself.
pub const LISTED_BYTES_MAX: usize = 4_096;

/// The bytes of a stretch of history that are read at once; with more, the stretch ends early.
pub const STRETCH_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The longest path of a CoAP request, with its arguments; a longer one is refused with 400.
pub const COAP_PATH_BYTES_MAX: usize = 255;

/// The longest topic: what one Uri-Query option carries behind `t=` (RFC 7252 section 5.10). A
/// longer one does not arrive.
pub const TOPIC_BYTES_MAX: usize = 253;

/// Datagrams of an arbiter whose device is being looked up in the store; more are answered 5.03.
pub const LOOKUPS_MAX: usize = 4_096;

/// Inputs that may wait for a device, also while it is restored: as many callers as a customer's
/// programs are likely to have ask for one device at once. More are refused as too busy; the
/// network repeats a datagram.
pub const INPUTS_MAX: usize = 64;

/// Data from one address that waits to be told whose it is: a device throws its readings of a day
/// at once, and not more. What goes beyond is told to come later.
pub const LANE_MAX: usize = 2_048;

/// Bytes of such data that an arbiter holds for all addresses together: whoever sends them is not
/// known yet, and a datagram may be as large as sixty of the usual ones.
pub const LANES_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// How long a transfer in blocks waits for the next block of the device, in either direction:
/// EXCHANGE_LIFETIME (RFC 7252 section 4.8.2). Each block renews it.
pub const TRANSFER_IDLE_MS: i64 = 247_000;

/// How long it is remembered what a device sent that has no registration: as long as it may repeat
/// it (EXCHANGE_LIFETIME, RFC 7252 section 4.8.2). Its actor is let go then.
pub const DATA_REMEMBERED_MS: i64 = 247_000;

/// After this it is taken that the socket will not say any more what became of a bare datagram.
pub const DEPARTURE_MS: i64 = 10_000;

/// Things noted of one request on its way: five attempts of the standard's transmissions each need
/// less than half of it.
pub const TIMELINE_MAX: usize = 128;

/// Observations of one device: each is kept with its record and asked for anew whenever it
/// registers. One more is refused: the request fails.
pub const OBSERVATIONS_MAX: usize = 64;

/// Values a device may tell in [`PACE_S`]: two hundred a second, more than devices tell that are
/// not told to pause in between. What comes behind is neither told nor acknowledged, so that what
/// a device can have written has a bound; a confirmable message comes again.
pub const PACE_MAX: u16 = 12_000;

/// The stretch of time in which what a device tells is counted, in seconds.
pub const PACE_S: u32 = 60;

/// What a registration counts as, in values: two a second are taken. One behind that is answered
/// 5.03 with Max-Age.
pub const REGISTRATION_PACE: u16 = 100;

/// Bytes of a device that cannot be read are kept at most this often: they are large, are kept for
/// long, and the next ones say no more.
pub const UNREADABLE_LOG_MS: i64 = 60_000;

/// Objects of one device that are read when it registers or updates its registration, the lowest
/// numbers first: several times what devices offer, few enough that their paths fit the datagram of
/// one request, and that reading them one by one is over in a few minutes. Further ones are not
/// read.
pub const REPORT_OBJECTS_MAX: usize = 64;

/// That an object of a device cannot be read is logged at most this often: devices of one kind fail
/// alike, and a fleet that updates every few minutes must not fill its owner's log.
pub const REPORT_FAILURE_LOG_MS: i64 = DAY_MS;

/// How often in a row a device that is there may be silent about an object before that is not read
/// any more until the device registers anew: once may be the network's fault, and each time takes a
/// minute and more.
pub const REPORT_SILENCES_MAX: u8 = 2;

/// Resources of one device whose last value is known: many times what devices offer, and a bound on
/// what a device that makes paths up can have kept. The values of further ones are in the history
/// alone.
pub const VALUES_MAX: u32 = 4_096;

/// The bytes of a text or an opaque value that is kept as the last known one: the values of a
/// device are shown at once, and so are 4 MiB at most. A longer one is in the history alone, and
/// of its path no value is known then, for the one before it would be out of date.
pub const VALUE_BYTES_MAX: usize = 1_024;

/// Lists of objects that the devices of an arbiter share: far more kinds of devices than a fleet
/// has. The devices of one more kind each keep a list of their own.
pub const OBJECT_LISTS_MAX: usize = 16_384;

/// What a 5.03 asks a device to wait, in seconds: long enough for a full queue to drain, short
/// enough that the device is still awake.
pub const OVERLOAD_MAX_AGE_S: u32 = 10;

/// API clients a customer may have: they are listed on one page; one more is refused with 409.
pub const CLIENTS_MAX: usize = 100;

/// Destinations a customer may have: each reads and keeps for itself what waits, so that none
/// delays another, and a customer tells few systems, which tell the others. One more is refused
/// with 409.
pub const DESTINATIONS_MAX: usize = 20;

/// The bytes of the URL of a webhook: more than any is known to have, and less than servers are
/// known to refuse. A longer one is refused.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;

/// Headers a customer may have sent with each event; one more is refused.
pub const WEBHOOK_HEADERS_MAX: usize = 20;

/// The bytes of one of them, name and value: a token with many claims fits.
pub const WEBHOOK_HEADER_BYTES_MAX: usize = 4_096;

/// The bytes of all of them: servers commonly take 8 KiB of headers.
pub const WEBHOOK_HEADERS_BYTES_MAX: usize = 8_192;

/// Definitions of objects a customer may have, versions counted each: they are listed on one page,
/// and a fleet has a few dozen private objects. One more is refused with 409.
pub const DEFINITIONS_MAX: usize = 200;

/// The bytes of all definitions of a customer: they are read when the service starts and whenever
/// the customer chooses anew, in some hundredths of a second. More are refused with 409.
pub const DEFINITIONS_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Names looked at in search of devices by how their names begin. To look at one costs some
/// microseconds, so a search takes a tenth of a second at most. A customer with more devices whose
/// search finds more names is refused: whoever asks is to say more of the name.
pub const NAMES_SEARCHED_MAX: usize = 20_000;

/// A panicking actor is restored this many times in [`PANIC_WINDOW_MS`], then parked.
pub const PANICS_MAX: u8 = 3;

/// How soon a failing store is asked again, and an actor that ended is restored: a store that is
/// down must not be asked all the time.
pub const STORE_RETRY_MS: i64 = 1_000;

/// The window in which panics of one actor are counted.
pub const PANIC_WINDOW_MS: i64 = 10 * 60_000;

const DAY_MS: i64 = 86_400_000;

/// The bounds an operator may set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// SCHEDULED requests a device may have; one more is refused.
    pub scheduled_max: u32,
    /// SEND_NOW requests that may wait IN_PROGRESS for a device; one more is refused.
    pub waiting_max: u32,
    /// A request that is not final after this fails, because a device that wakes daily must not
    /// just miss it but nobody waits for a week.
    pub action_expiry_ms: i64,
    /// A queue-mode device listens this long after it was last heard (LwM2M Core 1.2 section 6.5;
    /// MAX_TRANSMIT_WAIT of RFC 7252 section 4.8.2).
    pub awake_window_ms: i64,
    /// The bytes of what a device may say at a time, in one datagram or in blocks: data, values, a
    /// registration. More is answered 4.13.
    pub data_bytes_max: usize,
    /// The bytes of an answer of a device, whatever blocks it comes in; a longer one fails its
    /// request.
    pub answer_bytes_max: usize,
    /// The bytes of a UDP request: what every network carries in one piece (RFC 791 section 3.1). A
    /// longer one is refused with 400.
    pub udp_payload_bytes_max: usize,
    /// The size of the blocks in which a longer body goes to a device (RFC 7959 section 2.2),
    /// unless the device asks for smaller ones.
    pub block: BlockSize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            scheduled_max: 10,
            waiting_max: 10,
            action_expiry_ms: 2 * DAY_MS,
            awake_window_ms: 93_000,
            data_bytes_max: 64 * 1_024,
            answer_bytes_max: 2 * 1_024 * 1_024,
            udp_payload_bytes_max: 508,
            block: BlockSize::MAX,
        }
    }
}

impl Limits {
    /// When a request created now fails if it asks for no other expiry.
    pub fn expiry_of(&self, created_at: Timestamp) -> Timestamp {
        created_at.plus_ms(self.action_expiry_ms)
    }
}
