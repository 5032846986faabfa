//! What is the service told to do? Every setting in one table, and the layers it is read from.
//!
//! default < preset of the task < TOML file < environment < flag. The table drives all layers: a
//! setting's key in the file is its name, its variable `SIGNALBOX_NAME`, its flag `--name`. Every
//! value knows where it came from. This is the only reader of the environment.

mod layers;
mod parse;
mod report;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use engine::BlockSize;
use engine::delivery::address::policy::Policy;
use engine::delivery::forwarding::DeliveryRules;
use engine::limits::Limits;

use crate::telemetry::{Filter, LogFormat};

pub use layers::{Fault, Faults, Layers, Source};
pub use parse::Secret;

use layers::Reading;

/// One setting as every layer knows it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name: the key in the file, from which variable and flag are made.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub about: &'static str,
    /// Its value where no layer gives one; empty where it has none.
    pub default: &'static str,
    /// How its value is written.
    pub kind: Kind,
    /// Whether anything heeds it.
    pub force: Force,
}

/// How a setting's value is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A text.
    Text,
    /// A text never shown.
    Secret,
    /// A number.
    Number,
    /// `true` or `false`.
    Switch,
    /// Numbers with commas between them.
    List,
}

/// Whether anything heeds a setting.
#[derive(Clone, Copy, Debug)]
pub enum Force {
    /// It does what it says.
    InForce,
    /// It is understood, and what it is about does not exist in this build.
    NotUsedYet(fn(&str) -> Result<(), String>),
}

impl Row {
    /// The environment variable that gives the setting.
    pub fn variable(&self) -> String {
        format!("SIGNALBOX_{}", self.name.to_ascii_uppercase())
    }

    /// The flag that gives the setting, without the dashes before it.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    const fn later(
        name: &'static str,
        default: &'static str,
        kind: Kind,
        about: &'static str,
        check: fn(&str) -> Result<(), String>,
    ) -> Self {
        Self {
            name,
            about,
            default,
            kind,
            force: Force::NotUsedYet(check),
        }
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

        const IN_FORCE: &[Row] = &[$(
            Row {
                name: stringify!($name),
                about: concat!($($about),+),
                default: $default,
                kind: Kind::$kind,
                force: Force::InForce,
            },
        )+];

        impl Config {
            fn read(reading: &mut Reading<'_>) -> Option<Self> {
                $( let $name: Option<$type> = reading.value(stringify!($name), $parse); )+
                Some(Self { $( $name: $name?, )+ })
            }
        }
    };
}

settings! {
    /// Where the HTTP API listens.
    http: SocketAddr = "127.0.0.1:8080", Text, parse::address;
    /// Where CoAP and LwM2M devices are heard.
    coap: SocketAddr = "0.0.0.0:5683", Text, parse::address;
    /// Where devices that send bare datagrams are heard.
    udp: SocketAddr = "0.0.0.0:4445", Text, parse::address;
    /// Threads that serve devices, each with a socket of its own on the CoAP address; 0 is one for
    /// each core.
    arbiters: usize = "0", Number, parse::number(0..=1_024);
    /// The certificate chain of the HTTP API, a PEM file; with it the API speaks HTTPS.
    tls_cert: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// The private key of the certificate, a PEM file.
    tls_key: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Where everything is kept.
    data_dir: PathBuf = "./signalbox-data", Text, parse::path;
    /// Which store is used: `embedded`, in the data directory, is the only one of this build.
    store: StoreChoice = "embedded", Text, parse::store;
    /// The token of the operator API; without one, one is made and kept in the data directory.
    operator_token: Option<Secret> = "", Secret, parse::optional(parse::token);
    /// The key that seals secrets at rest, 64 hexadecimal digits; without one, one is made and kept
    /// in the data directory.
    master_key: Option<Secret> = "", Secret, parse::optional(parse::master_key);
    /// The `{platform}` segment of the settings' paths.
    platform: String = "signalbox", Text, parse::segment;
    /// Whether a device without a fixed address is believed by its endpoint name alone.
    trust_endpoint_names: bool = "false", Switch, parse::switch;
    /// Requests per second and customer before 429; 0 is no limit.
    rate_limit: u32 = "0", Number, parse::number(0..=1_000_000);
    /// The longest JSON body read, in bytes; a longer one is answered 413.
    json_body_bytes_max: usize = "2097152", Number, parse::number(1_024..=1 << 30);
    /// The lines of one import of devices; what follows them is refused with 413.
    import_lines_max: u32 = "1000000", Number, parse::number(1..=1_000_000_000);
    /// The shortest first wait for an acknowledgement of a device (RFC 7252 section 4.8).
    coap_ack_timeout_ms: u32 = "2000", Number, parse::number(1..=600_000);
    /// How often an unacknowledged message to a device is repeated (RFC 7252 section 4.8).
    coap_max_retransmit: u8 = "4", Number, parse::number(0..=20);
    /// How long an acknowledged request to a device waits for its response.
    coap_response_timeout_ms: u32 = "93000", Number, parse::number(1..=86_400_000);
    /// What a device may say at a time, in one datagram or in blocks, in bytes: data, values, a
    /// registration; more is answered 4.13.
    data_bytes_max: usize = "65536", Number, parse::number(1..=16_777_216);
    /// The longest answer of a device, whatever blocks it comes in, in bytes; a longer one fails
    /// its request.
    coap_answer_bytes_max: usize = "2097152", Number, parse::number(1..=16_777_216);
    /// The blocks that are sent and asked for where more than one is needed, in bytes: 16, 32, 64,
    /// 128, 256, 512 or 1024 (RFC 7959 section 2.2).
    coap_block_bytes: BlockSize = "1024", Number, parse::block_bytes;
    /// The longest payload of an action request over UDP, in bytes; a longer one is answered 400.
    udp_payload_bytes_max: usize = "508", Number, parse::number(1..=65_507);
    /// The devices that one call may ask something of; more are answered 400.
    bulk_devices_max: u32 = "100", Number, parse::number(1..=1_000);
    /// SCHEDULED requests a device may have; one more is answered 409.
    scheduled_max: u32 = "10", Number, parse::number(1..=10_000);
    /// SEND_NOW requests that may wait for a device; one more is answered 409.
    waiting_max: u32 = "10", Number, parse::number(1..=10_000);
    /// After this a request that is not final fails.
    action_expiry_s: u32 = "172800", Number, parse::number(1..=604_800);
    /// How long a device in queue mode listens after it was heard.
    awake_window_ms: u32 = "93000", Number, parse::number(1..=86_400_000);
    /// Final requests are removed this long after their creation.
    action_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// Entries of the administration log are removed after this.
    log_retention_days: u32 = "30", Number, parse::number(1..=3_650);
    /// What devices said is removed after this.
    history_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// Whether events may be delivered to private addresses and over plain HTTP.
    allow_private_destinations: bool = "false", Switch, parse::switch;
    /// Waits between the tries of a delivery, at most 16; there is one try more than waits.
    delivery_retry_ms: Vec<u32> = "150000,180000,420000,1020000", List, parse::delivery_waits;
    /// How long a destination may take to answer a delivery.
    delivery_timeout_ms: u32 = "20000", Number, parse::number(1..=600_000);
    /// Deliveries that may be under way to one destination.
    delivery_parallel_max: u32 = "64", Number, parse::number(1..=1_024);
    /// Events that may wait for one destination; beyond them its oldest go to its dead letters.
    delivery_backlog_max: u64 = "5000000", Number, parse::number(10_000..=1_000_000_000);
    /// Dead letters are removed after this.
    dead_letter_retention_days: u32 = "7", Number, parse::number(1..=3_650);
    /// Certificates that destinations may show beside those of public authorities, a PEM file.
    delivery_ca_file: Option<PathBuf> = "", Text, parse::optional(parse::path);
    /// Memory the store may use for its cache, in MiB.
    store_cache_mib: u32 = "256", Number, parse::number(16..=1_048_576);
    /// Batches that may wait for the disk; beyond them callers get 503 and devices 5.03.
    store_queue_max: usize = "8192", Number, parse::number(64..=1_048_576);
    /// Disk space left alone: with less than this free, in MiB, nothing new is taken in.
    disk_reserve_mib: u32 = "256", Number, parse::number(0..=1_048_576);
    /// What is written to the operator's log: `info`, or a filter like `info,actors=debug`.
    log: Filter = "info", Text, Filter::parse;
    /// How the operator's log is written: `text` or `json`.
    log_format: LogFormat = "text", Text, LogFormat::parse;
}

const NOT_YET: &[Row] = &[
    Row::later(
        "coaps",
        "0.0.0.0:5684",
        Kind::Text,
        "Where DTLS devices are heard.",
        |text| parse::address(text).map(drop),
    ),
    Row::later(
        "sms_retry_ms",
        "300000,900000,1800000,3600000,7200000,14400000",
        Kind::List,
        "Waits between the tries of an SMS event.",
        |text| parse::waits(text).map(drop),
    ),
];

/// Which store is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreChoice {
    /// The one in the data directory.
    Embedded,
}

/// Every setting, in the order they are shown.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    IN_FORCE.iter().chain(NOT_YET)
}

/// Reads the layers of this process: its environment, and the file if one is named.
pub fn load(
    preset: &'static [(&'static str, &'static str)],
    file: Option<&Path>,
    flags: Vec<(&'static str, String)>,
) -> Result<(Config, Layers), Faults> {
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

/// What the environment says against colours (no-color.org); nothing, if it does not mind.
pub fn no_color() -> Option<OsString> {
    std::env::var_os("NO_COLOR")
}

impl Config {
    fn of(layers: &Layers) -> Result<Self, Faults> {
        let mut reading = layers.reading();
        let config = Self::read(&mut reading);
        for row in NOT_YET {
            if let Force::NotUsedYet(check) = row.force {
                reading.value(row.name, check);
            }
        }
        if let Some(config) = &config {
            config.check_together(&mut reading);
        }
        reading.finish(config)
    }

    /// The bounds the engine is to keep.
    pub fn limits(&self) -> Limits {
        Limits {
            scheduled_max: self.scheduled_max,
            waiting_max: self.waiting_max,
            action_expiry_ms: i64::from(self.action_expiry_s) * 1_000,
            awake_window_ms: i64::from(self.awake_window_ms),
            data_bytes_max: self.data_bytes_max,
            answer_bytes_max: self.coap_answer_bytes_max,
            udp_payload_bytes_max: self.udp_payload_bytes_max,
            block: self.coap_block_bytes,
        }
    }

    /// Where events may be delivered to.
    pub fn policy(&self) -> Policy {
        match self.allow_private_destinations {
            true => Policy::PrivateAllowed,
            false => Policy::PublicOnly,
        }
    }

    /// How events are delivered.
    pub fn delivery_rules(&self) -> DeliveryRules {
        DeliveryRules {
            waits_ms: self
                .delivery_retry_ms
                .iter()
                .copied()
                .map(i64::from)
                .collect(),
            parallel_max: self.delivery_parallel_max as usize,
            backlog_max: self.delivery_backlog_max,
        }
    }

    /// How many threads serve devices.
    pub fn arbiters(&self) -> usize {
        match self.arbiters {
            0 => cores(),
            arbiters => arbiters,
        }
    }

    /// The certificate chain and the key of the API, where it speaks HTTPS.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    /// The configuration of a service nobody told anything.
    #[cfg(test)]
    pub(crate) fn of_defaults() -> Self {
        Self::of(&Layers::of_defaults()).expect("every default is a value")
    }

    fn check_together(&self, reading: &mut Reading<'_>) {
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let (given, missing) = match self.tls_cert {
                Some(_) => ("tls_cert", "tls_key"),
                None => ("tls_key", "tls_cert"),
            };
            reading.fault(given, format!("is of no use without {missing}"));
        }
    }
}

#[cfg(test)]
mod tests;
