//! Which options does `signalbox load` have?

use std::ffi::OsString;
use std::fmt;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _, Parser, ValueEnum};
use harness::load::SleepTimes;
use harness::load::addressing::{EndpointPattern, Network};
use harness::load::arrivals::ArrivalPattern;
use harness::load::behaviour::{LinkSecurity, PreSharedKey};
use harness::load::request_mix::RequestMix;

use super::nanoseconds;

/// The default port of CoAP (RFC 7252 section 12.6).
const COAP_PORT: u16 = 5_683;

/// The default port of CoAP over DTLS (RFC 7252 section 12.7).
const COAPS_PORT: u16 = 5_684;

/// The maximum length of a pre-shared key (RFC 4279 section 5.3).
const PSK_BYTES_MAX: usize = 64;

/// The default window of device requests, if neither a window nor a rate is given.
const WINDOW: u32 = 256;

/// The default window of API calls, if neither a window nor a rate is given; each call is a
/// connection.
const CALLS: u32 = 64;

/// The maximum number of concurrent calls if a rate is given.
const CALLS_MAX: u32 = 512;

/// The default duration of a measurement.
const DURATION: Duration = Duration::from_secs(30);

/// The maximum share: finer ones would not be measurable.
const SHARE_MAX: u32 = 1_000_000;

/// The default shares of the mixed scenario.
const SHARES: Shares = Shares {
    devices: RequestMix {
        register: 5,
        update: 45,
        send: 45,
    },
    actions: 5,
};

/// The measured operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Scenario {
    /// Every device registers once
    Register,
    /// Registered devices update their registrations
    Update,
    /// Registered devices send a value (LwM2M Send)
    Send,
    /// API callers create read requests for registered devices
    Actions,
    /// All of these at once, at stated shares
    Mixed,
    /// Every device registers, loses its connection, and registers again with all others at once
    Storm,
    /// Registered devices make a DTLS handshake for each update of their registrations
    Handshake,
}

/// The CoAP address of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerUri {
    /// Whether it is spoken to over DTLS.
    pub scheme: UriScheme,
    /// Where it is.
    pub address: SocketAddrV4,
}

/// The scheme of a CoAP address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UriScheme {
    /// Plain CoAP.
    Coap,
    /// CoAP over DTLS.
    Coaps,
}

/// The shares of the requests in the mixed scenario.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shares {
    /// Those of the devices.
    pub(super) devices: RequestMix,
    /// Those of the API callers.
    pub(super) actions: u32,
}

/// The mode of action requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum RequestMode {
    /// SEND_NOW
    Now,
    /// SEND_WHEN_ACTIVE; the device then updates its registration
    WhenActive,
}

/// Runs a load test with simulated devices and API callers
///
/// Works with any LwM2M server. Each device has its own IP address. See docs/load.md for the
/// meaning of the results.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(name = "signalbox load")]
pub struct LoadOptions {
    /// CoAP address of the server; with coaps:// the devices speak DTLS
    #[arg(long, value_name = "coap[s]://HOST[:PORT]")]
    pub target: ServerUri,
    /// Pre-shared key of every device, for coaps://; the PSK identity is the endpoint name
    #[arg(long, value_name = "HEX", value_parser = pre_shared_key)]
    pub psk: Option<PreSharedKey>,
    /// Number of devices
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub devices: u32,
    /// Operation to measure
    #[arg(long, value_enum)]
    pub scenario: Scenario,
    /// Requests per second, independent of the response times
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "window")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// Concurrent requests [default without --rate: 256 device requests or 64 API calls]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub window: Option<u32>,
    /// Duration of a measurement, such as 500ms, 30s or 5m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Number of consecutive measurements
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Percentage of datagrams to drop, in each direction
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=90))]
    pub loss: u8,
    /// Network of the source addresses: device n uses its first address + n
    #[arg(long, value_name = "NETWORK", default_value = "127.64.0.0/10")]
    pub bind: Network,
    /// Pattern of the endpoint names; device numbers start at 0
    #[arg(long, value_name = "PATTERN", default_value = "{:019}")]
    pub endpoint_pattern: EndpointPattern,
    /// Registration lifetime
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    pub lifetime: u32,
    /// ACK_TIMEOUT of the devices (RFC 7252 section 4.8)
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub ack_timeout_ms: u32,
    /// MAX_RETRANSMIT of the devices (RFC 7252 section 4.8)
    #[arg(long, value_name = "TIMES", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=20))]
    pub max_retransmit: u8,
    /// Number of threads for the devices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: u32,
    /// Seed of the random numbers [default: random]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Base URL of the REST API
    #[arg(long, value_name = "http://HOST:PORT", value_parser = api, requires = "token")]
    #[arg(required_if_eq("scenario", "actions"))]
    pub api: Option<String>,
    /// Access token for the management API
    // One in 64 tokens begins with a hyphen.
    #[arg(
        long,
        value_name = "TOKEN",
        requires = "api",
        allow_hyphen_values = true
    )]
    pub token: Option<ApiToken>,
    /// Import the devices through the API first
    #[arg(long, requires = "api")]
    pub import: bool,
    /// Receive the Sends at a webhook of the load's own, at this address, and compare them, too
    #[arg(long, value_name = "IP:PORT", requires = "api")]
    #[arg(num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    pub webhook: Option<SocketAddr>,
    /// Percentage of the time, ten seconds of each twenty for 50, in which the webhook answers 503
    #[arg(
        long,
        value_name = "PERCENT",
        requires = "webhook",
        default_value_t = 0
    )]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=90))]
    pub webhook_refuse: u8,
    /// Maximum number of events in a request to the webhook [default: events are not batched]
    #[arg(long, value_name = "NUMBER", requires = "webhook")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=100))]
    pub webhook_batch: Option<u8>,
    /// Mode of the action requests [default: now; with --sleep when-active]
    #[arg(long, value_enum)]
    pub request_mode: Option<RequestMode>,
    /// Shares of the requests in the mixed scenario, such as update=60,send=30,actions=10
    /// [default: register=5,update=45,send=45,actions=5; without --api no actions]
    #[arg(long, value_name = "REQUEST=SHARE,..")]
    pub shares: Option<Shares>,
    /// Time that devices sleep, on average, between two updates (queue mode)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub sleep: Option<Duration>,
    /// Time that a device stays awake after its last datagram
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s", requires = "sleep")]
    pub awake: Duration,
    /// Print the progress each second, also where standard error is not a terminal
    #[arg(long)]
    pub progress: bool,
    /// File for a JSON report; for FILE.html an HTML report, with the JSON report beside it
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Exit with status 1 if the 99th percentile of the latency is higher
    #[arg(long, value_name = "MILLISECONDS", value_parser = bound)]
    pub max_p99_ms: Option<f64>,
    /// Exit with status 1 if fewer requests per second were answered
    #[arg(long, value_name = "PER_SECOND", value_parser = bound)]
    pub min_rate: Option<f64>,
    /// Exit with status 1 if more requests failed
    #[arg(long, value_name = "NUMBER")]
    pub max_errors: Option<u64>,
}

impl RequestMode {
    /// The mode as the API spells it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Now => "SEND_NOW",
            Self::WhenActive => "SEND_WHEN_ACTIVE",
        }
    }
}

/// A token that is not printed.
#[derive(Clone, Eq, PartialEq)]
pub struct ApiToken(pub(super) String);

impl LoadOptions {
    /// Parses the arguments after the program's name, `load` first; the error prints itself.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = command();
        let matches = command.clone().try_get_matches_from(arguments)?;
        let options = Self::from_arg_matches(&matches)?;
        let refuse = |message: String| {
            let kind = clap::error::ErrorKind::ValueValidation;
            Err(command.clone().error(kind, message))
        };
        let room = options.bind.size();
        if u64::from(options.devices) > room {
            return refuse(format!(
                "--bind has only {room} addresses; each device needs one"
            ));
        }
        if options.scenario == Scenario::Register && options.rounds > 1 {
            return refuse("--rounds cannot be used with the register scenario".into());
        }
        if options.workers > options.devices {
            return refuse("--workers must not be greater than --devices".into());
        }
        match options.unusable() {
            Some(reason) => refuse(reason.into()),
            None => Ok(options),
        }
    }

    /// Why these options do not fit together.
    fn unusable(&self) -> Option<&'static str> {
        let is_paced = self.rate.is_some() || self.window.is_some();
        match (self.target.scheme, &self.psk) {
            (UriScheme::Coaps, None) => return Some("--target coaps:// needs --psk"),
            (UriScheme::Coap, Some(_)) => return Some("--psk needs --target coaps://"),
            (UriScheme::Coap, None) if self.scenario == Scenario::Handshake => {
                return Some("the handshake scenario needs --target coaps://");
            }
            (UriScheme::Coaps, Some(_)) | (UriScheme::Coap, None) => {}
        }
        match (self.scenario, self.sleep) {
            (Scenario::Register | Scenario::Storm | Scenario::Handshake, Some(_)) => {
                Some("--sleep cannot be used with the register, storm and handshake scenarios")
            }
            (Scenario::Update, Some(_)) if is_paced => {
                Some("with --sleep, devices update when they wake: --rate and --window do not fit")
            }
            (Scenario::Storm, None) if self.window.is_some() => {
                Some("--window cannot be used with the storm scenario: all devices return at once")
            }
            (Scenario::Mixed, _) if self.api.is_none() && self.shares().actions > 0 => {
                Some("--shares with actions needs --api")
            }
            (Scenario::Mixed, _) if self.shares().devices.total() == 0 => {
                Some("--shares needs a request of the devices; see the actions scenario")
            }
            (Scenario::Mixed, _) => None,
            (_, _) if self.shares.is_some() => Some("--shares needs the mixed scenario"),
            (_, _) => None,
        }
    }

    /// A note for the user about an option without effect.
    pub(super) fn note(&self) -> Option<&'static str> {
        let until_last = matches!(self.scenario, Scenario::Register | Scenario::Storm);
        let ignored = until_last && self.duration.is_some();
        ignored.then_some("--duration is ignored: the scenario ends with its last device")
    }

    /// The interval between lines about the progress, where nothing moves on a terminal.
    pub(super) fn progress_lines(&self) -> Duration {
        match self.progress {
            true => Duration::from_secs(1),
            false => Duration::from_secs(5),
        }
    }

    /// The mode of action requests.
    pub(super) fn mode(&self) -> RequestMode {
        let default = match self.sleep {
            Some(_) => RequestMode::WhenActive,
            None => RequestMode::Now,
        };
        self.request_mode.unwrap_or(default)
    }

    /// How long devices sleep and stay awake, if they do.
    pub(super) fn sleep_times(&self) -> Option<SleepTimes> {
        self.sleep.map(|sleep| SleepTimes {
            asleep_ns: nanoseconds(sleep),
            awake_ns: nanoseconds(self.awake),
        })
    }

    /// The shares of the mixed scenario.
    pub(super) fn shares(&self) -> Shares {
        let default = match self.api {
            Some(_) => SHARES,
            None => Shares {
                actions: 0,
                ..SHARES
            },
        };
        self.shares.unwrap_or(default)
    }

    /// Whether the scenario sends values whose arrival can be checked.
    pub(super) fn has_books(&self) -> bool {
        let sends = match self.scenario {
            Scenario::Send => true,
            Scenario::Mixed => self.shares().devices.send > 0,
            Scenario::Register
            | Scenario::Update
            | Scenario::Actions
            | Scenario::Storm
            | Scenario::Handshake => false,
        };
        sends && self.api.is_some()
    }

    /// How the devices speak to the server.
    pub(super) fn security(&self) -> LinkSecurity {
        match &self.psk {
            Some(key) => LinkSecurity::Psk(key.clone()),
            None => LinkSecurity::None,
        }
    }

    /// How the requests of the devices follow each other.
    pub(super) fn arrivals(&self) -> ArrivalPattern {
        match (self.scenario, self.rate) {
            (Scenario::Storm, None) => ArrivalPattern::AtOnce,
            (_, Some(rate)) => ArrivalPattern::Rate(self.part(rate, Shares::of_devices)),
            (_, None) => ArrivalPattern::Window(self.part(self.requests(), Shares::of_devices)),
        }
    }

    /// How the calls of a caller follow each other, or those of all at a rate.
    pub(super) fn calls(&self) -> ArrivalPattern {
        let rate = self.rate.map(|rate| self.part(rate, Shares::of_actions));
        // With a window, each caller has one call in progress.
        rate.map_or(ArrivalPattern::Window(1), ArrivalPattern::Rate)
    }

    /// The part of a number that a kind of requests has in the mixed scenario.
    fn part(&self, whole: u32, of: fn(Shares) -> u32) -> u32 {
        if self.scenario != Scenario::Mixed {
            return whole;
        }
        let shares = self.shares();
        let all = u64::from(Shares::of_devices(shares)) + u64::from(Shares::of_actions(shares));
        let part = u64::from(whole) * u64::from(of(shares)) / all.max(1);
        u32::try_from(part).unwrap_or(whole).max(1)
    }

    /// The duration of a measurement.
    pub(super) fn time(&self) -> Duration {
        self.duration.unwrap_or(DURATION)
    }

    /// The window of device requests, if no rate is given.
    pub(super) fn requests(&self) -> u32 {
        self.window.unwrap_or(WINDOW)
    }

    /// The number of concurrent API calls.
    pub(super) fn callers(&self) -> u32 {
        let callers = match self.rate {
            Some(_) => CALLS_MAX,
            None if self.scenario == Scenario::Mixed => {
                self.part(self.requests(), Shares::of_actions)
            }
            None => self.window.unwrap_or(CALLS),
        };
        callers.min(self.devices)
    }
}

impl Shares {
    fn of_devices(self) -> u32 {
        self.devices.total()
    }

    fn of_actions(self) -> u32 {
        self.actions
    }
}

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shares = Self {
            devices: RequestMix::default(),
            actions: 0,
        };
        for part in text.split(',') {
            let (request, share) = part.split_once('=').unwrap_or((part, ""));
            let place = match request {
                "register" => &mut shares.devices.register,
                "update" => &mut shares.devices.update,
                "send" => &mut shares.devices.send,
                "actions" => &mut shares.actions,
                _ => return Err("may name register, update, send and actions".to_owned()),
            };
            let share = share.parse().ok().filter(|share| *share <= SHARE_MAX);
            *place = share.ok_or_else(|| format!("must have a share up to {SHARE_MAX} of each"))?;
        }
        Ok(shares)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestMix {
            register,
            update,
            send,
        } = self.devices;
        let actions = self.actions;
        write!(
            f,
            "register={register},update={update},send={send},actions={actions}"
        )
    }
}

/// The command, for the help of the program.
pub(crate) fn command() -> clap::Command {
    LoadOptions::augment_args(clap::Command::new("load")).bin_name("signalbox load")
}

impl std::str::FromStr for ApiToken {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_fit = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let token = is_fit.then(|| Self(text.to_owned()));
        token.ok_or_else(|| "must be visible ASCII characters".to_owned())
    }
}

impl std::fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for ServerUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, port, place) = match text.split_once("://") {
            Some(("coap", place)) => (UriScheme::Coap, COAP_PORT, place),
            Some(("coaps", place)) => (UriScheme::Coaps, COAPS_PORT, place),
            Some(_) | None => return Err("must begin with coap:// or coaps://".to_owned()),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        let found = match place.rsplit_once(':') {
            Some(_) => place.to_socket_addrs(),
            None => (place, port).to_socket_addrs(),
        };
        let mut found = found.map_err(|error| error.to_string())?;
        let v4 = found.find_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        });
        let address = v4.ok_or("must have an IPv4 address: the simulated devices use IPv4")?;
        Ok(Self { scheme, address })
    }
}

impl fmt::Display for ServerUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            UriScheme::Coap => "coap",
            UriScheme::Coaps => "coaps",
        };
        write!(f, "{scheme}://{}", self.address)
    }
}

fn pre_shared_key(text: &str) -> Result<PreSharedKey, String> {
    let digits = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let key: Option<Vec<u8>> = text.as_bytes().chunks(2).map(digits).collect();
    let key = key.filter(|key| is_hex && (1..=PSK_BYTES_MAX).contains(&key.len()));
    key.map(PreSharedKey)
        .ok_or_else(|| format!("must be 1 to {PSK_BYTES_MAX} bytes in hexadecimal digits"))
}

fn api(text: &str) -> Result<String, String> {
    let is_http = text.starts_with("http://");
    let base = text.strip_suffix('/').unwrap_or(text);
    is_http
        .then(|| base.to_owned())
        .ok_or_else(|| "must begin with http://; HTTPS is not supported".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: Option<u64> = digits.parse().ok().filter(|number| *number > 0);
    let unit_ms = match text.get(digits.len()..) {
        Some("ms") => Some(1),
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        Some("h") => Some(3_600_000),
        Some(_) | None => None,
    };
    let ms = number
        .zip(unit_ms)
        .and_then(|(n, unit)| n.checked_mul(unit));
    ms.map(Duration::from_millis)
        .ok_or_else(|| "must be a duration such as 500ms, 30s, 5m or 1h".to_owned())
}

fn bound(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "must be a non-negative number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: [&str; 6] = [
        "--target",
        "coap://127.0.0.1",
        "--devices",
        "10",
        "--scenario",
        "update",
    ];

    fn parse(more: &[&str]) -> Result<LoadOptions, clap::Error> {
        let words = ["load"].iter().chain(&LEAST).chain(more);
        LoadOptions::parse(words.map(OsString::from))
    }

    #[test]
    fn every_option_has_a_default() {
        let options = parse(&[]).unwrap();
        assert_eq!(options.target.to_string(), "coap://127.0.0.1:5683");
        assert_eq!(options.security(), LinkSecurity::None);
        assert_eq!(options.time(), Duration::from_secs(30));
        assert_eq!((options.requests(), options.callers()), (256, 10));
        assert_eq!(options.rounds, 1);
        assert_eq!(options.bind.size(), 1 << 22);
        assert_eq!(options.endpoint_pattern.name(7), "0000000000000000007");
    }

    #[test]
    fn an_invalid_option_is_a_usage_error() {
        for more in [
            &["--rate", "5", "--window", "5"][..],
            &["--rate", "0"],
            &["--rounds", "0"],
            &["--scenario", "register", "--rounds", "2"],
            &["--duration", "5"],
            &["--duration", "0s"],
            &["--loss", "101"],
            &["--bind", "127.64.0.0/30"],
            &["--endpoint-pattern", "meter"],
            &["--api", "http://127.0.0.1:1"],
            &["--api", "https://127.0.0.1:1", "--token", "x"],
            &["--token", "x"],
            &["--import"],
            &["--workers", "11"],
            &["--max-p99-ms", "-1"],
            &["--http", "127.0.0.1:1"],
            &["--sleep", "1s", "--rate", "5"],
            &["--awake", "1s"],
            &["--shares", "send=1"],
            &["--webhook"],
            &["--psk", "00"],
        ] {
            let error = parse(more).expect_err(&more.join(" "));
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        for (target, scenario) in [
            ("coaps://127.0.0.1", "register"),
            ("coap://127.0.0.1", "handshake"),
            ("127.0.0.1:5683", "register"),
            ("coap://[::1]:5683", "register"),
            ("coap://127.0.0.1", "everything"),
            ("coap://127.0.0.1", "actions"),
        ] {
            let words = [
                "load",
                "--devices",
                "1",
                "--target",
                target,
                "--scenario",
                scenario,
            ];
            let error = LoadOptions::parse(words.map(OsString::from)).expect_err(scenario);
            assert_eq!(error.exit_code(), 2, "{error}");
        }
    }

    #[test]
    fn devices_that_speak_dtls_need_a_key_in_hexadecimal_digits() {
        let coaps = |more: &[&str]| {
            let words = ["load", "--target", "coaps://127.0.0.1", "--devices", "1"];
            let words = words.iter().chain(&["--scenario", "handshake"]).chain(more);
            LoadOptions::parse(words.map(OsString::from))
        };
        let options = coaps(&["--psk", "00fFa0"]).unwrap();
        assert_eq!(options.target.to_string(), "coaps://127.0.0.1:5684");
        let key = PreSharedKey(vec![0x00, 0xff, 0xa0]);
        assert_eq!(options.security(), LinkSecurity::Psk(key));
        assert!(
            !format!("{options:?}").contains("255"),
            "a key is not shown"
        );
        let long = "00".repeat(65);
        for key in ["", "0", "000", "xx", "+1", long.as_str()] {
            let error = coaps(&["--psk", key]).expect_err(key);
            assert_eq!(error.exit_code(), 2, "{error}");
        }
    }

    #[test]
    fn a_duration_of_registering_is_ignored_with_a_note() {
        let note = |scenario: &str| {
            let words = ["--scenario", scenario, "--duration", "1s"];
            let words = ["load"].iter().chain(&LEAST[..4]).chain(&words);
            let options = LoadOptions::parse(words.map(OsString::from)).unwrap();
            options.note()
        };
        assert!(note("register").unwrap().contains("--duration is ignored"));
        assert_eq!(note("update"), None);
    }

    fn mixed(more: &[&str]) -> Result<LoadOptions, clap::Error> {
        let words = ["load"].iter().chain(&LEAST[..4]);
        let words = words.chain(&["--scenario", "mixed"]).chain(more);
        LoadOptions::parse(words.map(OsString::from))
    }

    #[test]
    fn a_mix_divides_the_rate_and_the_window() {
        let api = ["--api", "http://127.0.0.1:1", "--token", "x"];
        let shares = ["--shares", "register=1,update=2,send=3,actions=2"];
        let with = |more: &[&str]| mixed(&[&api[..], &shares, more].concat()).unwrap();
        let rate = with(&["--rate", "800"]);
        assert_eq!(rate.arrivals(), ArrivalPattern::Rate(600));
        assert_eq!(
            (rate.calls(), rate.callers()),
            (ArrivalPattern::Rate(200), 10)
        );
        let window = with(&["--window", "16"]);
        assert_eq!(window.arrivals(), ArrivalPattern::Window(12));
        assert_eq!(
            (window.calls(), window.callers()),
            (ArrivalPattern::Window(1), 4)
        );
        assert!(window.has_books());
        let few = with(&["--window", "1"]);
        assert_eq!(
            (few.arrivals(), few.callers()),
            (ArrivalPattern::Window(1), 1)
        );
    }

    #[test]
    fn a_mix_has_actions_only_with_an_api() {
        assert_eq!(mixed(&[]).unwrap().shares().actions, 0);
        for refused in [
            "actions=1,send=1",
            "actions=1",
            "send",
            "send=x",
            "read=1",
            "send=-1",
            "",
        ] {
            let error = mixed(&["--shares", refused]).expect_err(refused);
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        let shares: Shares = "send=3,update=1".parse().unwrap();
        assert_eq!(shares.to_string(), "register=0,update=1,send=3,actions=0");
    }

    #[test]
    fn devices_that_sleep_are_asked_when_they_wake() {
        let sleeping = parse(&["--sleep", "30s"]).unwrap();
        assert_eq!(sleeping.mode(), RequestMode::WhenActive);
        let times = sleeping.sleep_times().unwrap();
        assert_eq!(
            (times.asleep_ns, times.awake_ns),
            (30_000_000_000, 5_000_000_000)
        );
        assert_eq!(parse(&[]).unwrap().mode(), RequestMode::Now);
    }

    #[test]
    fn a_webhook_has_an_address_of_its_own_unless_it_is_given() {
        let api = ["--api", "http://127.0.0.1:1", "--token", "x"];
        let address = |more: &[&str]| parse(&[&api[..], more].concat()).unwrap().webhook;
        assert_eq!(address(&[]), None);
        assert_eq!(address(&["--webhook"]), "127.0.0.1:0".parse().ok());
        assert_eq!(
            address(&["--webhook", "10.0.0.1:99"]),
            "10.0.0.1:99".parse().ok()
        );
    }

    #[test]
    fn times_have_a_unit() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)));
        }
        for text in ["", "s", "1d", "-1s", "1.5s", "99999999999999999999s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_may_begin_with_a_hyphen() {
        let options = parse(&["--api", "http://127.0.0.1:1", "--token", "-Hello"]).unwrap();
        assert_eq!(options.token, Some(ApiToken("-Hello".to_owned())));
    }

    #[test]
    fn a_token_is_not_shown() {
        let options = parse(&["--api", "http://127.0.0.1:1/", "--token", "secret"]).unwrap();
        assert!(!format!("{options:?}").contains("secret"));
        assert_eq!(options.api.as_deref(), Some("http://127.0.0.1:1"));
    }
}
