//! The bounds of everything: each with the reason for its number, and what happens at the bound.
//!
//! Constants are fixed bounds; [`Limits`] has the bounds that an operator may set.

use protocol::coap::block::BlockSize;
use protocol::coap::dedup::RESTORED_LIFETIME_MS;

use crate::moment::Timestamp;

/// Virtual shards that devices are distributed among: enough to split over hundreds of owners, few
/// enough that a list of them is small.
pub const SHARDS: u16 = 1_024;

/// Partitions that a customer's events are divided among: enough that a device whose deliveries
/// fail delays few others, few enough that events committed together are stored together. A
/// partition has the devices of neighbouring shards, so that one owner has it whole.
pub const PARTITIONS: u8 = 16;

/// The devices of a job that are read, asked and saved together: their row is a few kibibytes, and
/// a crash repeats the work of one part at most.
pub const JOB_PART_DEVICES: u32 = 128;

/// The parts of a new job that are committed together: a fraction of what a group of commits has
/// room for, so that the batches of other callers are not delayed.
pub const JOB_PARTS_COMMITTED: usize = 16;

/// The device commands of all jobs that are in flight; further devices wait. They are committed
/// together, and what others commit waits for them: with 8, jobs create requests as fast as 64
/// callers and others' 99th percentile is at most half as much again (BENCHMARKS.md).
pub const JOB_COMMANDS_MAX: usize = 8;

/// The jobs of all customers that have a part in memory, with the data of their request, which may
/// be 1.5 MB. Further jobs wait, and take turns part by part.
pub const JOBS_LOADED_MAX: usize = 8;

/// How often the devices of a part that did not answer are asked again, [`STORE_RETRY_MS`] apart:
/// longer than a device takes to be restored, or to empty a full mailbox. Then they are rejected,
/// so that a parked device does not keep the job from ending. While the store is full, no device
/// answers and nothing is counted.
pub const JOB_ROUNDS_MAX: u8 = 5;

/// The devices of a new campaign that are committed together, or removed together: a fraction of
/// what a group of commits has room for.
pub const CAMPAIGN_ROWS_COMMITTED: usize = 512;

/// The devices of a campaign that are read to begin, or to be told that it ended: they are asked at
/// the same time, and a few of them do not delay the commands of callers.
pub const CAMPAIGN_ROWS_READ: usize = 32;

/// How often a campaign looks at what became of its devices: often enough that devices follow each
/// other without a pause that counts against a download, seldom enough that a campaign of days
/// costs nothing. A device that could not be asked is asked again then.
pub const CAMPAIGN_LOOK_MS: i64 = 1_000;

/// How long a campaign lasts at most: a year, in which each device of a fleet is heard.
pub const CAMPAIGN_MS_MAX: i64 = 366 * DAY_MS;

/// How long a campaign lasts whose caller says nothing: devices that report once a week take part.
pub const CAMPAIGN_MS: i64 = 14 * DAY_MS;

/// The campaigns of a customer that are kept; a new one replaces the oldest that has ended, and is
/// refused if none has.
pub const CAMPAIGNS_MAX: u32 = 100;

/// The devices of a campaign that may be under way at a time.
pub const CAMPAIGN_CONCURRENCY_MAX: u32 = 10_000;

/// How often a device may try again in a campaign.
pub const UPDATE_RETRIES_MAX: u8 = 10;

/// The wait before the state of an update is read again; doubled each time, up to the next. A
/// device that registers or updates its registration is read at once.
pub const UPDATE_READ_MS: i64 = 2_000;

/// The longest wait before the state of an update is read again: a download over NB-IoT takes
/// hours, and each read costs the device energy.
pub const UPDATE_READ_MS_MAX: i64 = 300_000;

/// The longest version of a firmware (`/3/0/3`) that is stored with an update, to be compared with
/// the one after it. A longer one is not known.
pub const FIRMWARE_VERSION_BYTES_MAX: usize = 255;

/// How often a device may lose the blocks of an image that it acknowledged, because it rebooted or
/// was sent something else meanwhile; beyond that its update has failed. Enough for a device with a
/// poor connection, few enough that a device without block-wise transfer fails within a minute.
pub const PUSHES_LOST_MAX: u8 = 5;

/// Blocks of images that an arbiter reads at a time for devices that download over CoAP: as many as
/// a disk has work for. Requests beyond that are answered 5.03 with Max-Age.
pub const DOWNLOADS_MAX: usize = 256;

/// Devices whose progress in getting an image is in memory: those of ten campaigns with the highest
/// concurrency, in a few megabytes. Beyond it, the one that began first is shown without.
pub const IMAGE_PROGRESS_MAX: usize = 100_000;

/// The bytes of images that are kept in memory, of all images and for all devices, so that devices
/// that are sent the same image do not each read the file. Beyond it, what was not used for longest
/// is dropped.
pub const IMAGE_CACHE_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// The characters of a URI that devices are given: resource `/5/0/1` has at most 255 (LwM2M Core
/// 1.1 appendix E.6).
pub const FIRMWARE_URI_CHARACTERS_MAX: usize = 255;

/// The paths of a composite request, and the values of a request that writes several: more than any
/// object has resources, and few enough that an answer is a few kibibytes. A longer one is refused.
pub const REQUEST_PATHS_MAX: usize = 100;

/// The longest period of a schedule: a leap year.
pub const SCHEDULE_EVERY_S_MAX: u32 = 366 * 86_400;
/// How long the first part of an SMS waits for the others to be joined with them: as long as a
/// network keeps messages of a device that it cannot forward.
pub const SMS_PARTS_MS: i64 = DAY_MS;

/// The characters of an SMS, or of a part of one, that the network hands in: the text of one
/// message has at most 160 characters (3GPP TS 23.040 section 9.2.3.24), and 8-bit data is twice
/// as long in hexadecimal.
pub const SMS_PART_CHARACTERS_MAX: usize = 280;

/// The characters of the address of an SMS: a number has at most 15 digits, and the field of the
/// protocols 20 characters (3GPP TS 23.040 section 9.1.2.5).
pub const SMS_ADDRESS_CHARACTERS_MAX: usize = 20;

/// The latest end of the validity of an SMS to a device, after it was accepted.
pub const SMS_VALIDITY_MS_MAX: i64 = 7 * DAY_MS;

/// The SMS that the network takes at once: a row each, committed together.
pub const SMS_TAKEN_MAX: u32 = 100;

/// The SMS whose validity is over that are settled at once.
pub const SMS_LAPSED_AT_ONCE: u32 = 100;

/// The time in which at most `wake_ups_max` SMS wake a device.
pub const WAKE_UPS_MS: i64 = 3_600_000;

/// How long a device that received an SMS may take until it is heard: it attaches to its network
/// and registers. Until then another SMS would not wake it any sooner.
pub const WAKE_UP_RESPONSE_MS: i64 = 60_000;

/// The SMS to a device without a final status that a receipt is compared with: as many as the
/// setting allows.
pub const SMS_OPEN_MAX: u32 = 10_000;

/// The messages and receipts of an SMS centre that wait to be stored; one more is answered with
/// ESME_RX_T_APPN, and delivered again later. An SMS centre has a window of its own, far below.
pub const SMPP_INBOUND_MAX: usize = 1_000;

/// The characters of a message of a device over SMPP: 255 parts of 153.
pub const SMPP_TEXT_CHARACTERS_MAX: usize = 255 * 153;

/// How often a link looks for SMS that wait: a caller does not notice, and it is one read.
pub const SMPP_TAKE_EVERY_MS: i64 = 200;

/// The shortest pause between two attempts to bind.
pub const SMPP_BACK_OFF_MS_MIN: i64 = 1_000;

/// The shortest and the longest pause after an SMS centre refused a submission for now.
pub const SMPP_PAUSE_MS_MIN: i64 = 500;
/// See [`SMPP_PAUSE_MS_MIN`].
pub const SMPP_PAUSE_MS_MAX: i64 = 30_000;

/// How long a link that stops waits for responses: the service stops within ten seconds.
pub const SMPP_STOP_MS: i64 = 3_000;

/// The networks of a customer.
pub const NETWORKS_MAX: usize = 64;

/// The longest registration lifetime honoured; a longer one, 0 or none counts as this (seed 1.4).
pub const LIFETIME_S_MAX: u32 = 86_400;

/// Final action requests are removed this long after their creation.
pub const ACTION_RETENTION_MS: i64 = 7 * DAY_MS;

/// How long a call with an `Idempotency-Key` is remembered: a caller that missed the answer retries
/// sooner.
pub const IDEMPOTENCY_RETENTION_MS: i64 = DAY_MS;

/// Administration log entries are removed this long after they were written, so that the default
/// window of seven days is complete for any recent end.
pub const LOG_RETENTION_MS: i64 = 30 * DAY_MS;

/// The default window of the administration log (seed 8).
pub const LOG_WINDOW_MS: i64 = 7 * DAY_MS;

/// The bytes of a payload that a log entry stores: any datagram fits (RFC 768 allows 65,507 bytes
/// of data). A longer payload, from several datagrams, is cut off, and the entry says so.
pub const LOG_PAYLOAD_BYTES_MAX: usize = 65_536;

/// An update that changes nothing is saved at most this often, so that most updates of a fleet need
/// no commit; after a restart, a stored registration lives this much longer.
pub const PRESENCE_SAVE_MS: i64 = 3_600_000;

/// The longest silence that a customer may allow a device before it is offline, in seconds: a year.
/// A longer one would outlive the events of most fleets.
pub const OFFLINE_AFTER_S_MAX: u32 = 31_536_000;

/// Rejected messages of a device are logged at most this often, and counted in between: a stranger
/// who knows an endpoint name must not be able to fill the customer's log.
pub const REJECTION_LOG_MS: i64 = 60_000;

/// The most send attempts of a request (seed 8).
pub const SEND_ATTEMPTS_MAX: u8 = 5;

/// How long a deregistered device is remembered: it may retransmit its deregistration for
/// EXCHANGE_LIFETIME (RFC 7252 section 4.8.2) and must get the same answer.
pub const DEREGISTRATION_REPEATED_MS: i64 = 247_000;

/// The longest data of a request or a result in a list: a page of a hundred has less than a
/// mebibyte of it. Longer data is only shown with the single request.
pub const LISTED_BYTES_MAX: usize = 4_096;

/// The bytes of a history page; a page with more ends early.
pub const STRETCH_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The longest path of a CoAP request, with its arguments; a longer one is refused with 400.
pub const COAP_PATH_BYTES_MAX: usize = 255;

/// The longest topic: what fits one Uri-Query option after `t=` (RFC 7252 section 5.10). A longer
/// one cannot be sent.
pub const TOPIC_BYTES_MAX: usize = 253;

/// Datagrams of an arbiter whose device is being looked up in the store; more are answered 5.03.
pub const LOOKUPS_MAX: usize = 4_096;

/// Senders that are no known device and that are listed for the operator: more than a person reads.
/// Beyond the bound, those that were received least recently are dropped from the list.
pub const STRANGERS_MAX: usize = 1_000;

/// The bytes of the endpoint name of such a sender that are kept: the names that devices are given
/// have half of that. The rest is cut off.
pub const STRANGER_NAME_BYTES_MAX: usize = 64;

/// Messages per second from one address that are refused because their sender is no known device,
/// unless the operator sets another number: what a thousand devices behind one address send that
/// are not created yet.
pub const STRANGER_RATE: u32 = 100;

/// How many seconds of that rate may come at once: devices that register after a power cut.
pub const STRANGER_RATE_BURST_S: i64 = 10;

/// The rates of answers to all strangers of an arbiter and of look-ups for them, as a multiple of
/// that of one address: a tenth of a core at most.
pub const STRANGERS_RATE_FACTOR: u32 = 20;

/// Datagrams per second from one address and port, unless the operator sets another number: what a
/// device sends that transfers a body block by block in a local network.
pub const DEVICE_RATE: u32 = 1_000;

/// How many seconds of that rate may come at once: as much data as one address may have waiting,
/// several times.
pub const DEVICE_RATE_BURST_S: i64 = 10;

/// Messages per second and arbiter of the devices of one customer while those of another one send,
/// unless the operator sets another number: several times what a million devices send every quarter
/// of an hour, and few enough that the others hardly notice. A message with a payload is five.
pub const CUSTOMER_RATE: u32 = 5_000;

/// Inputs that may wait for a device, also while it is restored: more than the programs of a
/// customer are likely to send to one device at once. More are refused as too busy; the network
/// repeats a datagram.
pub const INPUTS_MAX: usize = 64;

/// Data from one address that waits for the look-up of its device: a device may send its readings
/// of a day at once, but not more. Data beyond the bound is answered 5.03 or dropped.
pub const ADDRESS_QUEUE_MAX: usize = 2_048;

/// Bytes of such data that an arbiter holds for all addresses in total: the senders are not known
/// yet, and a datagram may be sixty times as large as usual.
pub const ADDRESS_QUEUES_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Bytes of the bodies that an arbiter has received in part from all devices, in either direction
/// (RFC 7959), unless the operator sets another number: a thousand of the longest uplinks. Beyond
/// it the oldest body is dropped: its next block is answered 4.08, and the attempt of a request
/// whose response it is ends.
pub const UNFINISHED_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// How long a transfer in blocks waits for the next block of the device, in either direction:
/// EXCHANGE_LIFETIME (RFC 7252 section 4.8.2). Each block renews it.
pub const TRANSFER_IDLE_MS: i64 = 247_000;

/// How long messages of a device without a registration are remembered: as long as it may
/// retransmit them (EXCHANGE_LIFETIME, RFC 7252 section 4.8.2). Then its actor is unloaded.
pub const DATA_REMEMBERED_MS: i64 = 247_000;

/// How long after it was stored an event tells that the message it came from is repeated, if the
/// service was restarted in between.
pub const RESTORED_EVENTS_MS: i64 = RESTORED_LIFETIME_MS as i64;

/// The last events before a start that are searched for those messages: a hundred seconds of 10,000
/// events a second, in 40 MB of memory until they are too old. Messages of events before them are
/// published again if they are repeated.
pub const RESTORED_EVENTS_MAX: u64 = 1_000_000;

/// After this the outcome of sending a bare datagram counts as unknown.
pub const DEPARTURE_MS: i64 = 10_000;

/// Entries in the timeline of a request: five attempts with the standard's transmissions need less
/// than half of it.
pub const TIMELINE_MAX: usize = 128;

/// Servers of a bootstrap configuration: LwM2M devices have room for a few accounts. More are
/// refused.
pub const BOOTSTRAP_SERVERS_MAX: usize = 8;

/// Further values of a bootstrap configuration: a configuration is part of one commit and is
/// written instance by instance. More are refused.
pub const BOOTSTRAP_VALUES_MAX: usize = 64;

/// Bytes of such a value in its text form. A longer one is refused.
pub const BOOTSTRAP_VALUE_BYTES_MAX: usize = 4_096;

/// Characters of the URI of a server: what the resource of the object has room for (LwM2M Core 1.2
/// appendix E.1). A longer one is refused.
pub const BOOTSTRAP_URI_CHARS_MAX: usize = 255;

/// Requests of a bootstrap that the inspector shows: more than there are with one format each. The
/// later ones are not shown.
pub const BOOTSTRAP_STEPS_MAX: usize = 128;

/// Observations of one device: each is stored with its record and requested again whenever the
/// device registers. One more is refused: the request fails.
pub const OBSERVATIONS_MAX: usize = 64;

/// The window in which the values and registrations of a device are counted, in seconds.
pub const RATE_WINDOW_S: u32 = 60;

/// Payloads of a device that are too long, too many or without a valid topic are logged at most
/// this often, and so are payloads that cannot be decoded once their bytes reached the quota of the
/// day: the next ones add no information.
pub const UNREADABLE_LOG_MS: i64 = 60_000;

/// Values of one payload that a log entry names because they cannot be read: more than a person
/// reads. The entry has the number of the others.
pub const UNREADABLE_VALUES_NAMED_MAX: usize = 20;

/// A failure to read an object of a device is logged at most this often: devices of one kind fail
/// alike, and a fleet that updates every few minutes must not fill the customer's log.
pub const REPORT_FAILURE_LOG_MS: i64 = DAY_MS;

/// How many consecutive reads of an object a reachable device may leave unanswered before the
/// object is not read until the next registration: one may be the network's fault, and each takes a
/// minute or more.
pub const REPORT_SILENCES_MAX: u8 = 2;

/// Resources of one device whose last value is stored, unless the operator sets another number:
/// many times what devices have, and a bound for devices that invent paths. The values of further
/// ones are in the history alone.
pub const LAST_VALUES_MAX: u32 = 4_096;

/// The bytes of a text or an opaque value that is stored as the last known one: the values of a
/// device are shown at once, so they are 4 MiB at most. A longer one is in the history alone, and
/// its path then has no last known value, because the previous one would be out of date.
pub const VALUE_BYTES_MAX: usize = 1_024;

/// Lists of objects that the devices of an arbiter share: far more than a fleet has kinds of
/// devices. Beyond the bound, each device has a list of its own.
pub const OBJECT_LISTS_MAX: usize = 16_384;

/// The Max-Age of a 5.03, in seconds: long enough for a full queue to drain, short enough that the
/// device is still awake.
pub const OVERLOAD_MAX_AGE_S: u32 = 10;

/// API clients a customer may have: they are listed on one page; one more is refused with 409.
pub const CLIENTS_MAX: usize = 100;

/// Valid secrets an API client may have: the one in use, and the one that replaces it. One more is
/// refused with 409.
pub const CLIENT_SECRETS_MAX: usize = 2;

/// Webhooks and brokers a customer may have: each reads the queued events and stores its progress
/// by itself, so that none delays another, and a customer needs few. One more is refused with 409.
/// Plugins are not counted: a customer has at most one for each partner.
pub const INTEGRATIONS_MAX: usize = 20;

/// The bytes of the prefix of the topics of a broker: topics have 65,535 bytes, and brokers allow
/// fewer.
pub const TOPIC_PREFIX_BYTES_MAX: usize = 200;

/// The characters of the user name and of the password at a broker.
pub const BROKER_LOGIN_CHARACTERS_MAX: usize = 1_024;

/// The bytes of a certificate chain or a key of a broker, in PEM: more than chains of four
/// certificates have.
pub const BROKER_PEM_BYTES_MAX: usize = 16_384;

/// Commands that wait for the one before: brokers that speak MQTT 3.1.1 send as many as they like.
/// With one more the connection is closed, and the broker sends them again.
pub const BROKER_COMMANDS_MAX: usize = 1_024;

/// The bytes of the URL of a webhook: more than known URLs have, and less than servers are known to
/// refuse. A longer one is refused.
pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;

/// Headers a customer may add to each event; one more is refused.
pub const WEBHOOK_HEADERS_MAX: usize = 20;

/// The bytes of one such header, name and value: a token with many claims fits.
pub const WEBHOOK_HEADER_BYTES_MAX: usize = 4_096;

/// The bytes of all such headers: servers commonly take 8 KiB of headers.
pub const WEBHOOK_HEADERS_BYTES_MAX: usize = 8_192;

/// The bytes of the server of a plugin: `http://`, a host name (RFC 1035 section 2.3.4) and a port.
/// A longer one is refused.
pub const SERVER_DOMAIN_BYTES_MAX: usize = 266;

/// The characters of the key of a plugin: far more than the keys of known services have, and each
/// is up to 12 bytes of a URL. A longer one is refused.
pub const WEBHOOK_KEY_CHARACTERS_MAX: usize = 512;

/// Numbers of events that a stream reads at once from a partition: some ten kibibytes, and one
/// check of its token for all of them.
pub const STREAM_ROWS_AT_ONCE: u32 = 256;

/// Events whose content a stream reads at once: an event has a few hundred bytes, and 2 MiB at
/// worst.
pub const STREAM_EVENTS_AT_ONCE: usize = 16;

/// Devices of which a stream remembers whether they pass its filter for tags: some ten bytes each.
/// Beyond the bound it forgets all of them and reads them again.
pub const STREAM_DEVICES_MAX: usize = 4_096;

/// How long a stream relies on the tags of a device that it has read: from then on changed tags
/// count.
pub const STREAM_TAGS_MS: i64 = 10_000;

/// Object definitions a customer may have, each version counted: they are listed on one page, and a
/// fleet has a few dozen private objects. One more is refused with 409.
pub const DEFINITIONS_MAX: usize = 200;

/// The bytes of all definitions of a customer: they are parsed when the service starts and whenever
/// the customer changes its settings, in some hundredths of a second. More are refused with 409.
pub const DEFINITIONS_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Names that a search of devices by prefix reads. To read one costs some microseconds, so a search
/// takes a tenth of a second at most. A search that finds more names is refused: the caller has to
/// use a longer prefix.
pub const NAMES_SEARCHED_MAX: usize = 20_000;

/// Log entries that a search for a kind reads. To read one costs some microseconds, so a search
/// takes a tenth of a second at most. If there are more in its time range it is refused: the caller
/// has to narrow it.
pub const LOG_ENTRIES_SEARCHED_MAX: u32 = 20_000;

/// Devices that one query of a filtered list examines where no count tells how many pass: in index
/// rows, at a microsecond or two each, so that a page takes some milliseconds. Beyond the bound the
/// response says that there may be more, and the list continues behind the last device examined.
pub const DEVICES_EXAMINED_MAX: u32 = 3_000;

/// Those of them whose records are read, because no index tells enough: they are spread over the
/// store, so that in a fleet of a million most are read from the disk's cache, at ten microseconds
/// each.
pub const RECORDS_EXAMINED_MAX: u32 = 750;

/// Minutes for which the activity of a customer is counted, in memory: who looks at a fleet asks
/// whether it is as busy as it was a while ago.
pub const ACTIVITY_MINUTES: u32 = 60;

/// Buckets of a series: more than a chart has pixels. More are refused with 400.
pub const SERIES_POINTS_MAX: u32 = 2_000;

/// Events that one call for a series examines: those of a week if the device reports every half
/// minute. To read one costs some ten microseconds, so a call takes some tenths of a second at
/// most. Beyond the bound the response says so, and the next call continues behind the last one
/// examined.
pub const SERIES_EVENTS_MAX: u32 = 20_000;

/// Those of them that are read at once, in some milliseconds: other lists are read in between.
pub const SERIES_EVENTS_AT_ONCE: u32 = 500;

/// Tags of a device: far more than fleets are divided by, and each is an index row of the store.
/// More are refused with 400.
pub const TAGS_MAX: usize = 32;

/// Tags that one filter combines: more than people combine. More are refused with 400.
pub const FILTER_TAGS_MAX: usize = 8;

/// A panicking actor is restored this many times in [`PANIC_WINDOW_MS`], then parked.
pub const PANICS_MAX: u8 = 3;

/// The longest pause that a destination can ask for with `Retry-After`; a longer one is cut to it,
/// so that all tries of an event end within hours.
pub const RETRY_AFTER_MS_MAX: i64 = 3_600_000;

/// The delay before a failed store access is retried, and before an actor that ended is restored: a
/// store that is down must not be accessed all the time.
pub const STORE_RETRY_MS: i64 = 1_000;

/// The window in which panics of one actor are counted.
pub const PANIC_WINDOW_MS: i64 = 10 * 60_000;

/// The milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// DTLS sessions of all arbiters, some 400 bytes each. The one that was silent longest gives way,
/// and its device resumes it.
pub const SESSIONS_MAX: usize = 1_000_000;

/// DTLS handshakes of all arbiters that have passed the cookie, up to 45 kB each. The oldest gives
/// way.
pub const HANDSHAKES_MAX: usize = 2_000;

/// How long a DTLS session may be silent: longer than devices that report daily or weekly.
pub const SESSION_IDLE_MS: u64 = 7 * 86_400_000;

/// How long after its last handshake a DTLS session can be resumed. It lasts as long as its device
/// sends, and the ticket of its handshake has to outlive it: a crash then costs a device behind NAT
/// that has moved for weeks no more than an abbreviated handshake.
pub const RESUMPTION_S: u32 = 30 * 86_400;

/// How many times [`RESUMPTION_S`] after its full handshake a session can be resumed, however often
/// it was: then its device proves its key again.
pub const RESUMPTIONS_UNTIL_PROOF: u32 = 4;

/// How long a flight of a DTLS handshake waits for an answer: longer than a round trip of LTE-M.
pub const HANDSHAKE_RETRANSMIT_MS: u64 = 2_000;

/// Messages over a resumed session that wait until its device is looked up: what a device sends at
/// once. Further ones are dropped, and the device repeats them.
pub const EARLY_RECORDS_MAX: usize = 4;

/// The certificate authorities of a customer: an old and a new one for each of some makers of
/// devices. With it the signatures that are verified for an unknown device have a bound.
pub const AUTHORITIES_MAX: usize = 8;

/// The certificate of an authority, in bytes: RSA keys of 4,096 bits have less than half of it.
pub const AUTHORITY_BYTES_MAX: usize = 4_096;

/// Sessions of devices without tickets that can be resumed by their id, 200 bytes each at every
/// arbiter. The oldest gives way, and its device makes a full handshake.
pub const RESUMABLE_SESSIONS_MAX: usize = 40_000;

/// The bounds an operator may set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The rules of SMS to devices.
    pub sms: SmsRules,
    /// SEND_WHEN_ACTIVE requests that may wait SCHEDULED for a device; one more is refused.
    pub scheduled_max: u32,
    /// SEND_NOW requests that may wait for a device, for their first attempt or for the next one;
    /// one more is refused.
    pub waiting_max: u32,
    /// The bytes of `data` and `payload` of all waiting requests of a device: they are in memory. A
    /// request beyond them is refused with 409.
    pub waiting_bytes_max: usize,
    /// A request that is not final after this fails: long enough for a device that wakes daily, and
    /// short enough because no caller waits for a week.
    pub action_expiry_ms: i64,
    /// A queue-mode device listens this long after its last message (LwM2M Core 1.2 section 6.5;
    /// MAX_TRANSMIT_WAIT of RFC 7252 section 4.8.2).
    pub awake_window_ms: i64,
    /// How long a read for passive reporting that the device acknowledged may stay unanswered while
    /// anything else waits for the device: some devices acknowledge a Read-Composite and never
    /// answer it, and those that answer need a second or two. Then it is given up.
    pub passive_response_timeout_ms: i64,
    /// The bytes of the body of a request of a device, in one datagram or in blocks: data, values,
    /// a registration. A longer one is answered 4.13.
    pub data_bytes_max: usize,
    /// The bytes of an answer of a device, in any number of blocks; a longer one fails its request.
    pub answer_bytes_max: usize,
    /// Values that are accepted from a device within [`RATE_WINDOW_S`]: two hundred a second, more
    /// than devices send without pauses. Values beyond the bound are neither published nor
    /// acknowledged, so that the writes a device can cause are bounded; a confirmable message is
    /// retransmitted.
    pub values_max: u16,
    /// Registrations that are accepted from a device within [`RATE_WINDOW_S`]: two a second. One
    /// beyond that is answered 5.03 with Max-Age.
    pub registrations_max: u16,
    /// Bytes of rejected payloads of one device that are stored in the log within a day (UTC): a
    /// developer sees what the device sends, and a device with a fault stores no more in a month
    /// than one large firmware. Beyond the bound, entries have no bytes.
    pub log_payload_bytes_per_day: u32,
    /// Objects of one device that are read for passive reporting in one round: several times what
    /// devices have, few enough that their paths fit the datagram of one request, and that reading
    /// them one by one takes a few minutes. The others are read in the next rounds.
    pub passive_objects_max: usize,
    /// The bytes of a UDP request: what every network carries in one piece (RFC 791 section 3.1). A
    /// longer one is refused with 400.
    pub udp_payload_bytes_max: usize,
    /// The size of the blocks in which a longer body goes to a device (RFC 7959 section 2.2),
    /// unless the device asks for smaller ones.
    pub block: BlockSize,
}

/// The rules of SMS to devices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SmsRules {
    /// How long an SMS is valid by default.
    pub validity_ms: i64,
    /// The SMS to one device whose status is not final; one more is refused.
    pub open_max: u32,
    /// The SMS that wake one device within an hour, each of which costs money; a request that needs
    /// one more is refused.
    pub wake_ups_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sms: SmsRules {
                validity_ms: DAY_MS,
                open_max: 100,
                wake_ups_max: 4,
            },
            scheduled_max: 10,
            waiting_max: 10,
            waiting_bytes_max: 4 * 1_024 * 1_024,
            action_expiry_ms: 2 * DAY_MS,
            awake_window_ms: 93_000,
            passive_response_timeout_ms: 5_000,
            data_bytes_max: 64 * 1_024,
            answer_bytes_max: 2 * 1_024 * 1_024,
            values_max: 12_000,
            registrations_max: 120,
            passive_objects_max: 64,
            log_payload_bytes_per_day: 64 * 1_024,
            udp_payload_bytes_max: 508,
            block: BlockSize::MAX,
        }
    }
}

impl Limits {
    /// When a request with the default expiry fails.
    pub fn expiry_of(&self, created_at: Timestamp) -> Timestamp {
        created_at.plus_ms(self.action_expiry_ms)
    }

    /// The number of values that a registration counts as.
    pub fn registration_weight(&self) -> u16 {
        self.values_max.div_ceil(self.registrations_max.max(1))
    }
}
