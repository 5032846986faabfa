//! How are the values of settings parsed? One parser per type; each error says what is expected.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use actors::smpp::SmppServer;
use engine::BlockSize;
use engine::bootstrap::AccountSecurity;
use engine::directory::bootstrap::{InvalidServerUri, check_uri, parse_uri};
use store::PostgresUrl;
use zeroize::Zeroizing;

use super::StoreChoice;

/// A text that is neither printed nor logged.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// A text that a file has.
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned().into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// An address and port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "must be an address and port such as 127.0.0.1:8080".to_owned())
}

/// An address and port that others can connect to.
pub(super) fn reachable_address(text: &str) -> Result<SocketAddr, String> {
    let address = address(text)?;
    match address.ip().is_unspecified() || address.port() == 0 {
        true => Err("must be an address and port that others can connect to".to_owned()),
        false => Ok(address),
    }
}

/// A scheme, a host and a port.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let wrong = "expected a scheme, a host and a port, such as https://devices.example.com:8443";
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let is_host = |host: &str| {
        !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
    };
    match rest.map(|host| host.trim_end_matches('/')) {
        Some(host) if is_host(host) => Ok(text.trim_end_matches('/').to_owned()),
        Some(_) | None => Err(wrong.to_owned()),
    }
}

/// The issuer of an OpenID provider (OpenID Connect Discovery 1.0 section 3).
pub(super) fn issuer(text: &str) -> Result<String, String> {
    match is_confidential_url(text) && !text.contains('?') {
        true => Ok(text.to_owned()),
        false => Err(
            "must be an https:// URL, or an http:// URL of localhost, without a query".to_owned(),
        ),
    }
}

/// Whether nobody can read on the way what is sent to a URL: over https, or on this machine.
pub(crate) fn is_confidential_url(text: &str) -> bool {
    let Ok(url) = url::Url::parse(text) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_loopback = ip.map_or(host == "localhost", |ip| ip.to_canonical().is_loopback());
    let is_plain = url.username().is_empty() && url.password().is_none() && !text.contains('#');
    is_plain && (url.scheme() == "https" || url.scheme() == "http" && is_loopback)
}

/// The scopes of an authentication request (OpenID Connect Core 1.0 section 3.1.2.1).
pub(super) fn oidc_scope(text: &str) -> Result<String, String> {
    match text.split(' ').any(|scope| scope == "openid") {
        true => printable(text),
        false => Err("must contain `openid`".to_owned()),
    }
}

/// A text without control characters.
pub(super) fn printable(text: &str) -> Result<String, String> {
    match text.chars().any(char::is_control) {
        true => Err("must have no control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// A path of the file system.
pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text => Ok(PathBuf::from(text)),
    }
}

/// The parsed value, or None if the text is empty.
pub(super) fn optional<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| match text {
        "" => Ok(None),
        text => parse(text).map(Some),
    }
}

/// A number of a range.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String>
where
    T: FromStr + PartialOrd + fmt::Display,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            format!(
                "must be an integer from {} to {}",
                range.start(),
                range.end()
            )
        })
    }
}

/// A block size in bytes (RFC 7959 section 2.2).
pub(super) fn block_bytes(text: &str) -> Result<BlockSize, String> {
    let size = text.parse().ok().and_then(BlockSize::of_bytes);
    size.ok_or_else(|| "must be 16, 32, 64, 128, 256, 512 or 1024".to_owned())
}

/// `true` or `false`.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "must be true or false".to_owned())
}

/// The URI of the CoAP port.
pub(super) fn coap_uri(text: &str) -> Result<Box<str>, String> {
    server_uri(text, AccountSecurity::NoSec)
}

/// The URI of the CoAPs port.
pub(super) fn coaps_uri(text: &str) -> Result<Box<str>, String> {
    server_uri(text, AccountSecurity::Psk)
}

fn server_uri(text: &str, security: AccountSecurity) -> Result<Box<str>, String> {
    let uri = parse_uri(text).and_then(|uri| check_uri(&uri, security).map(|()| uri));
    uri.map_err(|why| match (why, security) {
        (InvalidServerUri::TooLong, _) => why.to_string(),
        (_, AccountSecurity::NoSec) => "must be coap://host:port".to_owned(),
        (_, AccountSecurity::Psk | AccountSecurity::Rpk | AccountSecurity::X509) => {
            "must be coaps://host:port".to_owned()
        }
    })
}

/// The most delays between the attempts of a delivery: with many short ones, a destination that is
/// down would get requests all the time.
const DELIVERY_WAITS_MAX: usize = 16;

/// The most delays between the attempts to deliver an SMS event: those of a day.
const SMS_WAITS_MAX: usize = 32;

/// The longest delay between two attempts of a delivery: dead letters are deleted by then.
const DELIVERY_WAIT_MS_MAX: u32 = 7 * 86_400_000;

/// Delays between the attempts of a delivery; none if the text is empty.
pub(super) fn delivery_waits(text: &str) -> Result<Vec<u32>, String> {
    waits_up_to(DELIVERY_WAITS_MAX, text)
}

/// The delays between attempts to deliver an SMS event.
pub(super) fn sms_waits(text: &str) -> Result<Vec<u32>, String> {
    waits_up_to(SMS_WAITS_MAX, text)
}

fn waits_up_to(max: usize, text: &str) -> Result<Vec<u32>, String> {
    let is_wait = |wait: &u32| *wait <= DELIVERY_WAIT_MS_MAX;
    let wait = |wait: &str| wait.trim().parse().ok().filter(is_wait);
    let waits = text.split(',').filter(|_| !text.trim().is_empty());
    let waits: Option<Vec<u32>> = waits.map(wait).collect();
    let waits = waits.filter(|waits| waits.len() <= max);
    waits.ok_or_else(|| {
        format!(
            "must be at most {max} integers from 0 to {DELIVERY_WAIT_MS_MAX}, \
             separated by commas"
        )
    })
}

/// The characters of the password of SMPP (SMPP 3.4 section 5.2.2).
const SMPP_PASSWORD_MAX: usize = 8;

/// SMS centres: `smpp://host:port` or `smpps://host:port`, separated by commas.
pub(super) fn smpp_servers(text: &str) -> Result<Vec<SmppServer>, String> {
    let urls = text.split(',').map(str::trim).filter(|url| !url.is_empty());
    let servers: Option<Vec<SmppServer>> = urls.map(smpp_server).collect();
    servers.ok_or_else(|| {
        "must be smpp://host:port or smpps://host:port, several separated by commas".to_owned()
    })
}

fn smpp_server(url: &str) -> Option<SmppServer> {
    let (scheme, place) = url.split_once("://")?;
    let is_tls = match scheme {
        "smpp" => false,
        "smpps" => true,
        _ => return None,
    };
    let (host, port) = place.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let host = host.trim_matches(['[', ']']);
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_valid = match is_bracketed {
        true => host.parse::<std::net::Ipv6Addr>().is_ok(),
        false => !host.is_empty() && host.chars().all(is_host),
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    is_valid.then(|| SmppServer {
        host: host.into(),
        port,
        is_tls,
    })
}

/// A field of `bind_transceiver`.
pub(super) fn smpp_field(max: usize) -> impl Fn(&str) -> Result<String, String> {
    move |text| {
        let is_printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        match text.len() <= max && is_printable {
            true => Ok(text.to_owned()),
            false => Err(format!("must be at most {max} printable ASCII characters")),
        }
    }
}

/// The password of SMPP.
pub(crate) fn smpp_password(text: &str) -> Result<SecretText, String> {
    smpp_field(SMPP_PASSWORD_MAX)(text).map(|text| SecretText(text.into()))
}

/// The embedded store, or the URL of a database.
pub(super) fn store(text: &str) -> Result<StoreChoice, String> {
    match text {
        "embedded" => Ok(StoreChoice::Embedded),
        url if url.starts_with("postgres") => {
            let url = PostgresUrl::parse(url).map_err(|why| why.to_string());
            url.map(|url| StoreChoice::Postgres(Box::new(url)))
        }
        _ => Err("must be `embedded` or postgres://user@host/database".to_owned()),
    }
}

/// The shortest token of the operator: too long to be guessed.
pub(crate) const TOKEN_CHARS_MIN: usize = 32;

/// A secret that fits an Authorization header (RFC 6750 section 2.1).
pub(super) fn token(text: &str) -> Result<SecretText, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    if text.len() >= TOKEN_CHARS_MIN && text.chars().all(allowed) {
        Ok(SecretText(text.to_owned().into()))
    } else {
        Err(format!(
            "must consist of at least {TOKEN_CHARS_MIN} letters, digits and -._~+/="
        ))
    }
}

/// 32 bytes in hexadecimal.
pub(super) fn master_key(text: &str) -> Result<SecretText, String> {
    if text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit()) {
        Ok(SecretText(text.to_owned().into()))
    } else {
        Err("must be 64 hexadecimal digits".to_owned())
    }
}

/// One segment of a URL path that needs no escaping.
pub(super) fn segment(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if !text.is_empty() && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("must consist of letters, digits and -._~".to_owned())
    }
}
