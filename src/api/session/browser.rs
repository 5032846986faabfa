//! How does a browser reach the console, and which cookie may it keep?
//!
//! Over https the cookie has the prefix `__Host-` (RFC 6265bis section 4.1.3.2), so that no other
//! host and no plain http can set it. Over http only a browser on this machine signs in: anywhere
//! else credentials could be read on the way.

use std::net::{IpAddr, Ipv6Addr};

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HOST, HeaderMap, HeaderName};

use crate::api::error::ApiError;
use crate::api::relayed::is_secure;

/// The header with which a proxy says how its caller reached it.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Headers that a proxy adds.
const OF_PROXIES: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// What a browser keeps a secret for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::api) enum BrowserCookie {
    /// Its session.
    Session,
    /// Its way to the identity provider and back, which ends with a navigation from another site:
    /// browsers keep a cookie with SameSite=Strict out of that.
    SignInAttempt,
}

/// A connection over which people may sign in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::api) enum BrowserTransport {
    /// To this service, or to a proxy in front of it.
    Https,
    /// From this machine.
    LoopbackHttp,
}

impl BrowserTransport {
    /// How a call came, or why nobody signs in that way.
    pub(in crate::api) fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let is_local = request.peer_addr().is_some_and(|it| is_loopback(it.ip()));
        Self::read(is_secure(request), is_local, request.headers())
    }

    fn read(is_tls: bool, is_local: bool, headers: &HeaderMap) -> Result<Self, ApiError> {
        // A caller that invents this header gains a cookie that its browser sends over https only.
        let forwarded = headers.get(FORWARDED_PROTO);
        if is_tls || forwarded.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"https")) {
            return Ok(Self::Https);
        }
        let is_proxied = OF_PROXIES.iter().any(|name| headers.contains_key(*name));
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        match is_local && !is_proxied && host.is_some_and(names_loopback) {
            true => Ok(Self::LoopbackHttp),
            false => Err(ApiError::insecure_transport()),
        }
    }

    /// The origin that a browser asked for.
    pub(in crate::api) fn origin(self, headers: &HeaderMap) -> Result<String, ApiError> {
        let scheme = match self {
            Self::Https => "https",
            Self::LoopbackHttp => "http",
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let host = host.filter(|host| !host.is_empty() && host.bytes().all(is_part));
        let host = host.ok_or_else(|| ApiError::malformed("the Host header names no host"))?;
        Ok(format!("{scheme}://{host}"))
    }

    /// The secret in a cookie of a call.
    pub(in crate::api) fn secret(self, of: BrowserCookie, headers: &HeaderMap) -> Option<&str> {
        let lines = headers.get_all(COOKIE);
        let mut pairs = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| {
                let pairs = line.split(';');
                pairs.filter_map(|pair| pair.trim().split_once('='))
            });
        let found = pairs.find(|(name, _)| *name == self.cookie_name(of));
        found.map(|(_, secret)| secret)
    }

    /// The header that gives a browser a secret, for as long as the browser runs.
    pub(in crate::api) fn cookie(self, of: BrowserCookie, secret: &str) -> String {
        let attributes = self.attributes(of);
        format!("{}={secret}; {attributes}", self.cookie_name(of))
    }

    /// The header that takes a cookie away.
    pub(in crate::api) fn no_cookie(self, of: BrowserCookie) -> String {
        let attributes = self.attributes(of);
        format!("{}=; {attributes}; Max-Age=0", self.cookie_name(of))
    }

    fn cookie_name(self, of: BrowserCookie) -> &'static str {
        match (self, of) {
            (Self::Https, BrowserCookie::Session) => "__Host-signalbox",
            (Self::LoopbackHttp, BrowserCookie::Session) => "signalbox-session",
            (Self::Https, BrowserCookie::SignInAttempt) => "__Host-signalbox-oidc",
            (Self::LoopbackHttp, BrowserCookie::SignInAttempt) => "signalbox-oidc",
        }
    }

    fn attributes(self, of: BrowserCookie) -> &'static str {
        match (self, of) {
            // The prefix requires this path.
            (Self::Https, BrowserCookie::Session) => "Path=/; HttpOnly; SameSite=Strict; Secure",
            (Self::LoopbackHttp, BrowserCookie::Session) => {
                "Path=/console; HttpOnly; SameSite=Strict"
            }
            (Self::Https, BrowserCookie::SignInAttempt) => "Path=/; HttpOnly; SameSite=Lax; Secure",
            (Self::LoopbackHttp, BrowserCookie::SignInAttempt) => {
                "Path=/console/oidc; HttpOnly; SameSite=Lax"
            }
        }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Whether a Host header names this machine: a name of another one may lead here, too.
fn names_loopback(host: &str) -> bool {
    if let Some((ip, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return ip.parse().is_ok_and(|ip: Ipv6Addr| is_loopback(ip.into()));
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    match name.parse::<IpAddr>() {
        Ok(ip) => is_loopback(ip),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn people_sign_in_over_https_or_on_this_machine() {
        use BrowserTransport::{Https, LoopbackHttp};
        let local = [("host", "127.0.0.1:8080")];
        for (is_tls, is_local, headers, expected) in [
            (true, false, &[("host", "iot.example")][..], Some(Https)),
            (false, true, &local, Some(LoopbackHttp)),
            (false, true, &[("host", "localhost")], Some(LoopbackHttp)),
            (false, true, &[("host", "[::1]:80")], Some(LoopbackHttp)),
            (false, false, &local, None),
            (false, true, &[("host", "iot.example")], None),
            (false, true, &[("host", "127.0.0.1.example")], None),
            (false, true, &[], None),
            (
                false,
                true,
                &[local[0], ("x-forwarded-proto", "https")],
                Some(Https),
            ),
            (
                false,
                true,
                &[local[0], ("x-forwarded-proto", "http")],
                None,
            ),
            (
                false,
                true,
                &[local[0], ("x-forwarded-for", "192.0.2.1")],
                None,
            ),
            (
                false,
                true,
                &[local[0], ("forwarded", "for=192.0.2.1")],
                None,
            ),
        ] {
            let found = BrowserTransport::read(is_tls, is_local, &map(headers));
            assert_eq!(found.ok(), expected, "{is_tls} {is_local} {headers:?}");
        }
    }

    #[test]
    fn a_cookie_is_read_under_the_name_of_its_transport() {
        use BrowserCookie::{Session, SignInAttempt};
        use BrowserTransport::{Https, LoopbackHttp};
        let cookies = "a=b; signalbox-session=one; __Host-signalbox=two; signalbox-oidc=three";
        let headers = map(&[("cookie", cookies)]);
        for (transport, cookie, expected) in [
            (LoopbackHttp, Session, Some("one")),
            (Https, Session, Some("two")),
            (LoopbackHttp, SignInAttempt, Some("three")),
            (Https, SignInAttempt, None),
        ] {
            let found = transport.secret(cookie, &headers);
            assert_eq!(found, expected, "{transport:?} {cookie:?}");
        }
        let other = map(&[("cookie", "x-signalbox-session=one")]);
        assert_eq!(LoopbackHttp.secret(Session, &other), None);
    }

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        pairs.collect()
    }
}
