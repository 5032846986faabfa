//! Which settings does the service have? One table, read from several layers.
//!
//! default < preset of the task < TOML file < environment < flag. The table drives all layers: a
//! setting's key in the file is its name, its variable `SIGNALBOX_NAME`, its flag `--name`. Every
//! value has its source. This is the only reader of the environment.

mod group_rules;
mod layers;
mod parse;
mod report;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use actors::delivery::stream::StreamRules;
use actors::smpp::SmppServer;
use actors::web::ConnectionLimits;
use engine::BlockSize;
use engine::arbiter::ArbiterLimits;
use engine::arbiter::admission::RateLimits;
use engine::associations::AssociationLimits;
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::forwarding::DeliveryRules;
use engine::job::runner::JobLimits;
use engine::limits::Limits;
use engine::limits::SmsRules;
use store::PostgresUrl;

use crate::telemetry::{LogFilter, LogFormat};
use crate::tls::KeyFiles;

pub use group_rules::{GroupRule, PersonGrant};
pub use layers::{ConfigFault, ConfigFaults, Layers, Source};
pub use parse::SecretText;
pub(crate) use parse::TOKEN_CHARS_MIN;
pub(crate) use parse::is_confidential_url;
pub(crate) use parse::smpp_password;

use layers::ConfigReader;

/// One setting, as every layer knows it.
#[derive(Clone, Copy, Debug)]
pub struct SettingRow {
    /// The name: the key in the file; variable and flag are derived from it.
    pub name: &'static str,
    /// The description in `--help`.
    pub about: &'static str,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// The type of its value.
    pub kind: SettingKind,
}

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettingKind {
    /// A text.
    Text,
    /// A text that is never printed.
    Secret,
    /// A URL, whose password is never printed.
    Url,
    /// A number.
    Number,
    /// `true` or `false`.
    Switch,
    /// Comma-separated numbers.
    List,
}

impl SettingRow {
    /// The environment variable of the setting.
    pub fn variable(&self) -> String {
        format!("SIGNALBOX_{}", self.name.to_ascii_uppercase())
    }

    /// The flag of the setting, without the leading dashes.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

macro_rules! settings {
    ($(
        $(#[doc = $about:literal])+
        $name:ident: $type:ty = $default:literal, $kind:ident, $parse:expr;
    )+) => {
        /// The effective configuration.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( $(#[doc = $about])+ pub $name: $type, )+
        }

        const ROWS: &[SettingRow] = &[$(
            SettingRow {
                name: stringify!($name),
                about: concat!($($about),+),
                default: $default,
                kind: SettingKind::$kind,
            },
        )+];

        impl Config {
            fn read(reading: &mut ConfigReader<'_>) -> Option<Self> {
                $( let $name: Option<$type> = reading.value(stringify!($name), $parse); )+
                Some(Self { $( $name: $name?, )+ })
            }
        }
    };
}

settings! {
    /// Address and port of the HTTP API.
    http: SocketAddr = "127.0.0.1:8080", Text, parse::address;
    /// Address and port of the operator API, with health, metrics and documentation; by default it
    /// is served at the address of the HTTP API, then it no longer is.
    operator_http: Option<SocketAddr> = "", Text, parse::optional(parse::address);
    /// Scheme, host and port at which devices reach the HTTP API, to download firmware; by default
    /// its own address, unless that is unspecified (`[::]` or `0.0.0.0`).
    public_http: Option<String> = "", Text, parse::optional(parse::origin);
    /// UDP address and port for CoAP and LwM2M devices.
    coap: SocketAddr = "[::]:5683", Text, parse::address;
    /// UDP address and port for CoAP and LwM2M devices over DTLS.
    coaps: SocketAddr = "[::]:5684", Text, parse::address;
    /// PEM file with the private key on P-256 with which the service proves its identity to devices
    /// over DTLS; by default generated and stored. A changed file is read again.
    coaps_key: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// PEM file with the certificate chain of that key; without it devices get the public key
    /// alone.
    coaps_cert: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Maximum number of DTLS sessions; beyond it the one that was silent longest ends.
    dtls_sessions_max: usize = "1000000", Number, parse::number(1..=16_000_000);
    /// Maximum number of DTLS handshakes in progress that have passed the cookie; beyond it the
    /// oldest ends.
    dtls_handshakes_max: usize = "2000", Number, parse::number(1..=1_000_000);
    /// Time after which a silent DTLS session ends, in seconds; its device may resume it.
    dtls_idle_s: u32 = "604800", Number, parse::number(60..=31_536_000);
    /// Time after its last handshake for which a device may resume its DTLS session, in seconds.
    /// After four times as long it makes a full handshake, however often it has resumed.
    dtls_resumption_s: u32 = "2592000", Number, parse::number(60..=31_536_000);
    /// Accept DTLS cipher suites with CBC also from devices that do not offer encrypt-then-MAC (RFC
    /// 7366), for old devices that have no other suite.
    dtls_bare_cbc: bool = "false", Switch, parse::switch;
    /// Time until a flight of a DTLS handshake is sent again for the first time, in milliseconds;
    /// narrow-band networks need up to 9 s (RFC 7925 section 11).
    dtls_retransmit_ms: u32 = "2000", Number, parse::number(100..=60_000);
    /// UDP address and port for devices that send plain UDP datagrams.
    udp: SocketAddr = "[::]:4445", Text, parse::address;
    /// Number of threads that serve devices, each with its own CoAP socket; 0 means one per core.
    arbiters: usize = "0", Number, parse::number(0..=1_024);
    /// PEM file with the certificate chain of the HTTP API; enables HTTPS. A changed file is read
    /// again.
    tls_cert: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// PEM file with the private key of the certificate.
    tls_key: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Directory for all data.
    data_dir: PathBuf = "./signalbox-data", Text, parse::path;
    /// Where everything is stored: `embedded` means in the data directory, and
    /// `postgres://user@host/database` in a PostgreSQL database.
    store: StoreChoice = "embedded", Url, parse::store;
    /// File with the password for PostgreSQL, if the URL has none.
    store_password_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// PEM file with additional CA certificates to trust for PostgreSQL.
    store_ca_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Number of connections to PostgreSQL for short reads, and as many again for long ones; writes
    /// have one more.
    store_readers: usize = "4", Number, parse::number(1..=256);
    /// How long the start waits for a PostgreSQL server that cannot be reached, in seconds.
    store_wait_s: u32 = "60", Number, parse::number(0..=86_400);
    /// Name by which this node is listed; by default that of the machine.
    node_name: String = "", Text, parse::printable;
    /// Address and port at which other nodes reach this one, and at which it listens for them: with
    /// it on every node, those that stand by relay datagrams and calls to the active one.
    node_address: Option<SocketAddr> = "", Text, parse::optional(parse::reachable_address);
    /// File with the secret by which nodes recognise each other, at least 32 characters, the same
    /// on every node.
    node_secret_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// How long a node on PostgreSQL holds its shards without having renewed their lease, in
    /// seconds: what it takes until another node takes over from one that is gone.
    node_lease_s: u32 = "10", Number, parse::number(3..=600);
    /// How often a node renews the lease of its shards, in seconds; at most a third of
    /// `node_lease_s`.
    node_heartbeat_s: u32 = "2", Number, parse::number(1..=200);
    /// Open a store that has lost commits from its end, and go on without them.
    accept_loss: bool = "false", Switch, parse::switch;
    /// Token of the operator API, at least 32 characters; by default generated and stored in the
    /// data directory.
    operator_token: Option<SecretText> = "", Secret, parse::optional(parse::token);
    /// Key that encrypts secrets at rest, 64 hexadecimal digits; by default generated and stored in
    /// the data directory.
    master_key: Option<SecretText> = "", Secret, parse::optional(parse::master_key);
    /// The `{platform}` path segment of the settings API.
    platform: String = "signalbox", Text, parse::segment;
    /// Accept registrations without DTLS by endpoint name alone from devices without an `ip`.
    trust_endpoint_names: bool = "false", Switch, parse::switch;
    /// Bootstrap devices without DTLS, which sends their keys in plain text.
    bootstrap_nosec: bool = "false", Switch, parse::switch;
    /// URI by which devices reach the CoAP port, given to them at bootstrap and to download
    /// firmware: `coap://host:port`; by default the host and port that they asked for their
    /// bootstrap at, and for firmware its own address, unless that is unspecified.
    public_coap: Option<Box<str>> = "", Text, parse::optional(parse::coap_uri);
    /// URI by which devices reach the CoAPs port, given to them at bootstrap and to download
    /// firmware: `coaps://host:port`; by default the host and port that they asked for their
    /// bootstrap at, and for firmware its own address, unless that is unspecified.
    public_coaps: Option<Box<str>> = "", Text, parse::optional(parse::coaps_uri);
    /// Lifetime of access tokens, in seconds.
    token_lifetime_s: u32 = "3600", Number, parse::number(1..=86_400);
    /// How long a session of the console lasts after its last use by a person, in seconds.
    console_idle_s: u32 = "1800", Number, parse::number(1..=86_400);
    /// How long a session of the console lasts at most, in seconds.
    console_session_s: u32 = "43200", Number, parse::number(1..=2_592_000);
    /// Scheme, host and port at which browsers reach the console, to which the identity provider
    /// sends them back; by default those that the browser asked for.
    public_console: Option<String> = "", Text, parse::optional(parse::origin);
    /// Issuer of the OpenID provider with which people sign in to the console: an `https://` URL,
    /// or `http://` on this machine. Empty means that nobody does.
    oidc_issuer: Option<String> = "", Text, parse::optional(parse::issuer);
    /// Id that the identity provider knows this service by (`client_id`).
    oidc_client_id: String = "", Text, parse::printable;
    /// File with the secret of that client; without it the service proves itself by PKCE alone.
    oidc_client_secret_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// PEM file with additional CA certificates to trust for the identity provider.
    oidc_ca_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// What the sign-in page calls the identity provider.
    oidc_name: String = "single sign-on", Text, parse::printable;
    /// Scopes that the identity provider is asked for, separated by spaces; one is `openid`.
    oidc_scope: String = "openid profile email", Text, parse::oidc_scope;
    /// Claim of the ID token with the groups of a person.
    oidc_groups_claim: String = "groups", Text, parse::printable;
    /// Which group may do what, in the order in which the rules are tried: a list of tables with
    /// `group`, and either `customer` and `scopes` or `operator = true`. As JSON outside the file.
    oidc_groups: Vec<GroupRule> = "[]", Text, group_rules::group_rules;
    /// Calls per second and customer; the calls of two seconds may come at once, and more are
    /// answered with 429. 0 means no limit.
    rate_limit: u32 = "500", Number, parse::number(0..=1_000_000);
    /// Token requests, and calls with wrong credentials, per second and address; those of two
    /// seconds may come at once, and more are answered with 429. 0 means no limit.
    address_rate_limit: u32 = "100", Number, parse::number(0..=1_000_000);
    /// Maximum size of a JSON body, in bytes; a larger one is answered with 413.
    json_body_bytes_max: usize = "2097152", Number, parse::number(1_024..=1 << 30);
    /// Maximum size of the JSON bodies of all calls in progress, in bytes, of which one address and
    /// one customer may take a quarter; more are answered with 503.
    bodies_bytes_max: usize = "67108864", Number, parse::number(1_024..=1 << 40);
    /// Maximum number of connections to the API; fewer if the process may not open so many files.
    /// Some more serve the operator and health checks alone.
    http_connections_max: usize = "10000", Number, parse::number(16..=1_000_000);
    /// Maximum number of connections to the API from one address; raise it for a proxy.
    http_connections_per_address_max: usize = "1000", Number, parse::number(1..=1_000_000);
    /// Maximum time from the end of a response to the end of the head of the next request, in
    /// milliseconds; then the connection is closed.
    http_request_wait_ms: u32 = "10000", Number, parse::number(100..=600_000);
    /// Maximum time for which 16 KiB of a response wait to be taken, in milliseconds; then the
    /// connection is closed.
    http_response_wait_ms: u32 = "10000", Number, parse::number(100..=600_000);
    /// Maximum number of lines in a device import; later lines are refused with 413.
    import_lines_max: u32 = "1000000", Number, parse::number(1..=1_000_000_000);
    /// How far the body of a device import may be behind the least rate of 1 KiB a second, in
    /// milliseconds; then the import ends with 408.
    import_behind_max_ms: u32 = "30000", Number, parse::number(100..=600_000);
    /// ACK_TIMEOUT of CoAP, in milliseconds (RFC 7252 section 4.8).
    coap_ack_timeout_ms: u32 = "2000", Number, parse::number(1..=600_000);
    /// MAX_RETRANSMIT of CoAP: retransmissions of a confirmable message (RFC 7252 section 4.8).
    coap_max_retransmit: u8 = "4", Number, parse::number(0..=20);
    /// Maximum wait for the separate response to an acknowledged request, in milliseconds.
    coap_response_timeout_ms: u32 = "93000", Number, parse::number(1..=86_400_000);
    /// Wait for the response to an acknowledged read of passive reporting while anything else waits
    /// for the device, in milliseconds.
    passive_response_timeout_ms: u32 = "5000", Number, parse::number(1..=86_400_000);
    /// Maximum size of a message body from a device, in one datagram or block-wise, in bytes; a
    /// larger one is answered with 4.13.
    data_bytes_max: usize = "65536", Number, parse::number(1..=16_777_216);
    /// Maximum memory for the block-wise bodies of all devices that are not complete, in bytes;
    /// beyond it the oldest is dropped, and its next block is answered with 4.08.
    unfinished_bytes_max: usize = "67108864", Number, parse::number(65_536..=1 << 40);
    /// Maximum size of a response from a device, block-wise included, in bytes; a larger one fails
    /// the request.
    coap_answer_bytes_max: usize = "2097152", Number, parse::number(1..=16_777_216);
    /// Maximum number of values accepted from a device per minute; the values of further messages
    /// are not accepted.
    device_values_max: u16 = "12000", Number, parse::number(1..=60_000);
    /// Maximum number of registrations accepted from a device per minute; one more is answered with
    /// 5.03.
    device_registrations_max: u16 = "120", Number, parse::number(1..=60_000);
    /// Maximum size of the rejected payloads of a device that are stored in the administration log
    /// per day (UTC), in bytes, each counted as a multiple of 256; the entries of further ones have
    /// none.
    log_payload_bytes_per_day: u32 = "65536", Number, parse::number(0..=16_776_960);
    /// Maximum number of objects of a device that passive reporting reads at a registration or
    /// update; the others are read at the next ones.
    passive_objects_max: usize = "64", Number, parse::number(1..=1_000);
    /// Maximum number of resources per device whose last value is stored; the values of further
    /// ones are in the messages of the device only.
    last_values_max: u32 = "4096", Number, parse::number(1..=1_000_000);
    /// Datagrams per second that are refused because their sender is no known device, for each
    /// address (IPv6: each /64); those of ten seconds may come at once. Beyond that, datagrams from
    /// there are dropped, except from devices; of all addresses together twenty times as many are
    /// looked up in the store. 0 means no limit.
    datagram_rate_stranger: u32 = "100", Number, parse::number(0..=1_000_000);
    /// Datagrams per second from one address and port; those of ten seconds may come at once, and
    /// more are dropped. 0 means no limit.
    datagram_rate_device: u32 = "1000", Number, parse::number(0..=1_000_000);
    /// Messages per second of the devices of one customer, for each arbiter, while devices of
    /// another customer send; more are dropped. 0 means no limit.
    datagram_rate_customer: u32 = "5000", Number, parse::number(0..=1_000_000);
    /// Preferred block size for block-wise transfers, in bytes: 16, 32, 64, 128, 256, 512 or 1024
    /// (RFC 7959 section 2.2).
    coap_block_bytes: BlockSize = "1024", Number, parse::block_bytes;
    /// Maximum payload of an action request over UDP, in bytes; a larger one is answered with 400.
    udp_payload_bytes_max: usize = "508", Number, parse::number(1..=65_507);
    /// Maximum length of `data`, and of `payload` over CoAP, of an action request, in bytes; a
    /// longer one is answered with 400.
    action_data_bytes_max: usize = "1500000", Number, parse::number(1..=1 << 30);
    /// Maximum number of devices in a bulk call; more are answered with 400.
    bulk_devices_max: u32 = "100", Number, parse::number(1..=1_000);
    /// Maximum number of devices in a job; a filter that matches more is answered with 400.
    job_devices_max: u32 = "100000", Number, parse::number(1..=10_000_000);
    /// Maximum number of running jobs per customer; one more is answered with 409.
    jobs_running_max: u32 = "10", Number, parse::number(1..=1_000);
    /// Maximum number of schedules per customer; one more is answered with 409.
    schedules_max: u32 = "100", Number, parse::number(1..=1_000);
    /// Minimum of `every` of a schedule, in seconds.
    schedule_every_min_s: u32 = "60", Number, parse::number(1..=86_400);
    /// Maximum size of a firmware image, in bytes; a larger one is answered with 413.
    image_bytes_max: u64 = "67108864", Number, parse::number(1..=1 << 40);
    /// Maximum size of all firmware images of a customer, in bytes; one more is answered with 409.
    images_bytes_max: u64 = "1073741824", Number, parse::number(1..=1 << 50);
    /// Maximum number of SCHEDULED requests per device; one more is answered with 409.
    scheduled_max: u32 = "10", Number, parse::number(1..=10_000);
    /// Maximum number of waiting SEND_NOW requests per device; one more is answered with 409.
    waiting_max: u32 = "10", Number, parse::number(1..=10_000);
    /// Maximum data of all waiting requests of a device, in bytes; more is answered with 409.
    waiting_bytes_max: usize = "4194304", Number, parse::number(1_024..=1 << 30);
    /// Time until an action request expires, in seconds; it fails if it is not final by then.
    action_expiry_s: u32 = "172800", Number, parse::number(1..=604_800);
    /// Time a device in queue mode stays reachable after its last message, in milliseconds.
    awake_window_ms: u32 = "93000", Number, parse::number(1..=86_400_000);
    /// Retention of final action requests, and of jobs, after their creation, in days.
    action_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// Time for which a call with an `Idempotency-Key` is remembered, in hours.
    idempotency_retention_h: u32 = "24", Number, parse::number(1..=8_760);
    /// Retention of the administration log, in days.
    log_retention_days: u32 = "30", Number, parse::number(1..=3_650);
    /// Retention of device messages, in days.
    history_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// Allow webhooks to private addresses and over plain HTTP, and requests to devices at
    /// loopback, link-local and metadata addresses they were not heard from.
    allow_private_destinations: bool = "false", Switch, parse::switch;
    /// Delays between delivery attempts of an event, in milliseconds, comma-separated, at most 16;
    /// there is one attempt more than delays.
    delivery_retry_ms: Vec<u32> = "150000,180000,420000,1020000", List, parse::delivery_waits;
    /// Delays between the attempts to deliver an SMS event, in milliseconds, comma-separated, at
    /// most 32. An event is given up after them, or when it is as old as their sum.
    sms_retry_ms: Vec<u32> = "300000,900000,1800000,3600000,7200000,14400000,14400000,14400000,\
                              14400000,14400000", List, parse::sms_waits;
    /// Retention of SMS, in days.
    sms_retention_days: u32 = "14", Number, parse::number(8..=3_650);
    /// Validity of an SMS to a device without an expiry date, in minutes.
    sms_validity_min: u32 = "1440", Number, parse::number(1..=10_080);
    /// Maximum number of SMS to a device without a final status; one more is refused.
    sms_open_max: u32 = "100", Number, parse::number(1..=10_000);
    /// Maximum number of SMS that wake a device within an hour, for action requests with `wakeUp`;
    /// a request that needs one more is refused.
    wake_up_sms_max: u32 = "4", Number, parse::number(1..=60);
    /// SMS centres of the link to the network, comma-separated, in the order of preference:
    /// `smpp://host:port`, or `smpps://host:port` over TLS. Empty means no link.
    smpp_url: Vec<SmppServer> = "", Text, parse::smpp_servers;
    /// Name that the link binds with (`system_id`), at most 15 characters.
    smpp_system_id: String = "", Text, parse::smpp_field(15);
    /// Password that the link binds with, at most 8 characters.
    smpp_password: Option<SecretText> = "", Secret, parse::optional(parse::smpp_password);
    /// File with that password.
    smpp_password_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Type of system that the link binds with (`system_type`), at most 12 characters.
    smpp_system_type: String = "", Text, parse::smpp_field(12);
    /// PEM file with additional CA certificates to trust for the link.
    smpp_ca_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Maximum number of SMS that are submitted and not answered.
    smpp_window: usize = "32", Number, parse::number(1..=1_000);
    /// Silence of the SMS centre after which it is asked whether it is there, in milliseconds.
    smpp_enquire_link_ms: u32 = "30000", Number, parse::number(100..=3_600_000);
    /// Timeout of a response of the SMS centre, and of the connection, in milliseconds; then the
    /// link connects again.
    smpp_response_timeout_ms: u32 = "10000", Number, parse::number(100..=600_000);
    /// Maximum pause between two attempts to connect the link, in milliseconds.
    smpp_reconnect_max_ms: u32 = "60000", Number, parse::number(1_000..=3_600_000);
    /// Timeout of a delivery attempt, in milliseconds.
    delivery_timeout_ms: u32 = "20000", Number, parse::number(1..=600_000);
    /// Maximum number of concurrent deliveries per webhook.
    delivery_parallel_max: u32 = "64", Number, parse::number(1..=1_024);
    /// Maximum number of waiting events per webhook; beyond it the oldest become dead letters.
    delivery_backlog_max: u64 = "5000000", Number, parse::number(10_000..=1_000_000_000);
    /// Maximum number of streams of events per customer; one more is answered with 409.
    event_streams_max: u32 = "10", Number, parse::number(1..=1_000);
    /// Time without an event after which a stream of events sends a heartbeat, in milliseconds.
    event_stream_heartbeat_ms: u32 = "15000", Number, parse::number(10..=600_000);
    /// Retention of dead letters, in days.
    dead_letter_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// PEM file with additional CA certificates to trust for webhooks.
    delivery_ca_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Size of the store's cache, in MiB.
    store_cache_mib: u32 = "256", Number, parse::number(16..=1_048_576);
    /// Maximum number of batches waiting to be written; beyond it callers get 503, devices 5.03.
    store_queue_max: usize = "8192", Number, parse::number(64..=1_048_576);
    /// Minimum free disk space, in MiB; with less, the service accepts no new data.
    disk_reserve_mib: u32 = "256", Number, parse::number(0..=1_048_576);
    /// Size of a file in the data directory that is given up when the disk is full, in MiB, so that
    /// the service can start then and remove old data; 0 means none.
    disk_reserve_file_mib: u32 = "64", Number, parse::number(0..=1_048_576);
    /// Log level, or a filter such as `info,actors=debug`.
    log: LogFilter = "info", Text, LogFilter::parse;
    /// Log format: `text` or `json`.
    log_format: LogFormat = "text", Text, LogFormat::parse;
}

/// Which store is used.
#[derive(Clone, Debug)]
pub enum StoreChoice {
    /// The one in the data directory.
    Embedded,
    /// A PostgreSQL database.
    Postgres(Box<PostgresUrl>),
}

/// Every setting, in display order.
pub fn rows() -> impl Iterator<Item = &'static SettingRow> {
    ROWS.iter()
}

/// Reads the layers of this process: its environment, and the file if one is given.
pub fn load(
    preset: &'static [(&'static str, &'static str)],
    file: Option<&Path>,
    flags: Vec<(&'static str, String)>,
) -> Result<(Config, Layers), ConfigFaults> {
    let mut layers = Layers::of_defaults();
    layers.add_preset(preset);
    if let Some(file) = file {
        layers.add_file(file);
    }
    layers.add_environment(std::env::vars_os());
    layers.add_flags(flags);
    Config::of(&layers).map(|config| (config, layers))
}

/// The cores this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The variable in which a process tells the one that replaces it how often that happened.
pub const RESTARTS: &str = "RESTARTS_OF_SIGNALBOX";

/// How often the process was replaced in a row.
pub fn restarts() -> u32 {
    let restarts = std::env::var(RESTARTS).ok();
    restarts.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The value of `NO_COLOR`, if it is set (no-color.org).
pub fn no_color() -> Option<OsString> {
    std::env::var_os("NO_COLOR")
}

impl Config {
    fn of(layers: &Layers) -> Result<Self, ConfigFaults> {
        let mut reading = layers.reading();
        let config = Self::read(&mut reading);
        if let Some(config) = &config {
            config.check_together(&mut reading);
        }
        reading.finish(config)
    }

    /// The limits for the engine.
    pub fn limits(&self) -> Limits {
        Limits {
            sms: self.sms_rules(),
            scheduled_max: self.scheduled_max,
            waiting_max: self.waiting_max,
            waiting_bytes_max: self.waiting_bytes_max,
            action_expiry_ms: i64::from(self.action_expiry_s) * 1_000,
            awake_window_ms: i64::from(self.awake_window_ms),
            passive_response_timeout_ms: i64::from(self.passive_response_timeout_ms),
            data_bytes_max: self.data_bytes_max,
            answer_bytes_max: self.coap_answer_bytes_max,
            udp_payload_bytes_max: self.udp_payload_bytes_max,
            values_max: self.device_values_max,
            registrations_max: self.device_registrations_max,
            passive_objects_max: self.passive_objects_max,
            log_payload_bytes_per_day: self.log_payload_bytes_per_day,
            block: self.coap_block_bytes,
        }
    }

    /// The most of a customer that the runner of jobs has.
    pub fn job_limits(&self) -> JobLimits {
        JobLimits {
            running_max: self.jobs_running_max,
            schedules_max: self.schedules_max,
        }
    }

    /// How much may wait in all arbiters.
    pub fn arbiter_limits(&self) -> ArbiterLimits {
        ArbiterLimits {
            unfinished_bytes_max: self.unfinished_bytes_max,
            rates: RateLimits {
                stranger: self.datagram_rate_stranger,
                device: self.datagram_rate_device,
                customer: self.datagram_rate_customer,
            },
            ..ArbiterLimits::default()
        }
    }

    /// How many DTLS sessions all arbiters have, for how long, and which they refuse.
    pub fn association_limits(&self) -> AssociationLimits {
        AssociationLimits {
            sessions_max: self.dtls_sessions_max,
            handshakes_max: self.dtls_handshakes_max,
            idle_timeout_ms: u64::from(self.dtls_idle_s) * 1_000,
            resumption_s: self.dtls_resumption_s,
            retransmit_ms: u64::from(self.dtls_retransmit_ms),
            accepts_bare_cbc: self.dtls_bare_cbc,
        }
    }

    /// What connections to the API may do.
    pub fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections_max: self.http_connections_max,
            per_address_max: self.http_connections_per_address_max,
            request_wait: Duration::from_millis(self.http_request_wait_ms.into()),
            response_wait: Duration::from_millis(self.http_response_wait_ms.into()),
        }
    }

    /// Which addresses webhooks may have.
    pub fn policy(&self) -> AddressPolicy {
        match self.allow_private_destinations {
            true => AddressPolicy::PrivateAllowed,
            false => AddressPolicy::PublicOnly,
        }
    }

    /// How events are delivered.
    pub fn delivery_rules(&self) -> DeliveryRules {
        DeliveryRules {
            retry_delays_ms: self
                .delivery_retry_ms
                .iter()
                .copied()
                .map(i64::from)
                .collect(),
            sms_retry_delays_ms: self.sms_retry_ms.iter().copied().map(i64::from).collect(),
            parallel_max: self.delivery_parallel_max as usize,
            backlog_max: self.delivery_backlog_max,
        }
    }

    /// What streams of events may do.
    pub fn stream_rules(&self) -> StreamRules {
        StreamRules {
            streams_max: self.event_streams_max,
            heartbeat_ms: self.event_stream_heartbeat_ms,
        }
    }

    /// The rules of SMS to devices.
    pub fn sms_rules(&self) -> SmsRules {
        SmsRules {
            validity_ms: i64::from(self.sms_validity_min) * 60_000,
            open_max: self.sms_open_max,
            wake_ups_max: self.wake_up_sms_max,
        }
    }

    /// The number of threads that serve devices.
    pub fn arbiters(&self) -> usize {
        match self.arbiters {
            0 => cores(),
            arbiters => arbiters,
        }
    }

    /// The certificate chain and the key of the API, if it serves HTTPS.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    /// The key for DTLS and its certificate chain, if files have them.
    pub fn coaps_key_files(&self) -> Option<KeyFiles> {
        Some(KeyFiles {
            key: self.coaps_key.clone()?,
            cert: self.coaps_cert.clone(),
        })
    }

    /// The configuration with every default.
    #[cfg(test)]
    pub(crate) fn of_defaults() -> Self {
        Self::of(&Layers::of_defaults()).expect("every default is a value")
    }

    fn check_together(&self, reading: &mut ConfigReader<'_>) {
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let (given, missing) = match self.tls_cert {
                Some(_) => ("tls_cert", "tls_key"),
                None => ("tls_key", "tls_cert"),
            };
            reading.fault(given, format!("requires {missing}"));
        }
        if self.coaps_cert.is_some() && self.coaps_key.is_none() {
            reading.fault("coaps_cert", "requires coaps_key".to_owned());
        }
        self.check_store(reading);
        self.check_smpp(reading);
        self.check_oidc(reading);
    }

    fn check_store(&self, reading: &mut ConfigReader<'_>) {
        if self.node_heartbeat_s > self.node_lease_s / 3 {
            let why = "must be at most a third of node_lease_s";
            reading.fault("node_heartbeat_s", why.to_owned());
        }
        match (&self.node_address, &self.node_secret_file) {
            (Some(_), None) => {
                reading.fault("node_address", "requires node_secret_file".to_owned());
            }
            (None, Some(_)) => {
                reading.fault("node_secret_file", "requires node_address".to_owned());
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        match &self.store {
            StoreChoice::Embedded => {
                let of_postgres = [
                    ("store_password_file", self.store_password_file.is_some()),
                    ("store_ca_file", self.store_ca_file.is_some()),
                    ("node_address", self.node_address.is_some()),
                ];
                for (name, _) in of_postgres.into_iter().filter(|(_, is_set)| *is_set) {
                    let why = "requires store to be the URL of a PostgreSQL database";
                    reading.fault(name, why.to_owned());
                }
            }
            StoreChoice::Postgres(url) => {
                if url.has_password() && self.store_password_file.is_some() {
                    let why = "must be empty, because store has a password";
                    reading.fault("store_password_file", why.to_owned());
                }
            }
        }
    }

    fn check_oidc(&self, reading: &mut ConfigReader<'_>) {
        if self.oidc_issuer.is_none() {
            return;
        }
        if self.oidc_client_id.is_empty() {
            reading.fault("oidc_issuer", "requires oidc_client_id".to_owned());
        }
        if self.oidc_groups.is_empty() {
            let why = "requires oidc_groups: without a rule nobody can sign in";
            reading.fault("oidc_issuer", why.to_owned());
        }
    }

    fn check_smpp(&self, reading: &mut ConfigReader<'_>) {
        if self.smpp_url.is_empty() {
            return;
        }
        if self.smpp_system_id.is_empty() {
            reading.fault("smpp_url", "requires smpp_system_id".to_owned());
        }
        match (&self.smpp_password, &self.smpp_password_file) {
            (None, None) => {
                let why = "requires smpp_password or smpp_password_file";
                reading.fault("smpp_url", why.to_owned());
            }
            (Some(_), Some(_)) => {
                let why = "must be empty, because smpp_password is given";
                reading.fault("smpp_password_file", why.to_owned());
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests;
