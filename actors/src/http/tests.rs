//! What is the outcome of requests to customers' systems, well-behaved and others?

mod identity_provider;
mod peer;

use std::future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::{Mutex, mpsc};

use self::peer::{Authority, OK, Peer, self_signed};
use super::resolver::Addresses;
use super::*;

const HOST: &str = "hooks.example";

#[tokio::test]
async fn a_status_of_success_accepts_and_every_other_refuses() {
    for (answer, expected) in [
        (OK, HttpOutcome::Accepted(200)),
        (
            "HTTP/1.1 201 \r\ncontent-length: 2\r\n\r\n{}",
            HttpOutcome::Accepted(201),
        ),
        (
            "HTTP/1.1 204 No Content\r\n\r\n",
            HttpOutcome::Accepted(204),
        ),
        (
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            HttpOutcome::Refused(304),
        ),
        (
            "HTTP/1.1 400 Bad\r\ncontent-length: 3\r\n\r\nbad",
            HttpOutcome::Refused(400),
        ),
        (
            "HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
            HttpOutcome::Refused(410),
        ),
        (
            "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
            HttpOutcome::Refused(500),
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            HttpOutcome::Accepted(200),
        ),
    ] {
        let peer = Peer::that_answers(answer);
        let posted = http().send(request(peer.url("/hook"))).await;
        assert_eq!(posted, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn a_pause_is_read_in_seconds_from_an_overloaded_endpoint() {
    let deferred = |status, retry_after_s| HttpOutcome::Deferred {
        status,
        retry_after_s,
    };
    for (answer, expected) in [
        (
            "HTTP/1.1 429 Slow\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
            deferred(429, 120),
        ),
        (
            "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\ncontent-length: 0\r\n\r\n",
            deferred(503, 0),
        ),
        (
            "HTTP/1.1 503 Busy\r\nretry-after: -1\r\ncontent-length: 0\r\n\r\n",
            HttpOutcome::Refused(503),
        ),
        (
            "HTTP/1.1 429 Slow\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n\
             content-length: 0\r\n\r\n",
            HttpOutcome::Refused(429),
        ),
        (
            "HTTP/1.1 500 Oh\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
            HttpOutcome::Refused(500),
        ),
    ] {
        let peer = Peer::that_answers(answer);
        let posted = http().send(request(peer.url("/hook"))).await;
        assert_eq!(posted, expected, "{answer:?}");
        assert!(posted.to_string().starts_with("the endpoint answered"));
    }
}

#[tokio::test]
async fn a_request_has_the_given_headers_and_body_and_no_more() {
    let peer = Peer::that_answers(OK);
    let request = HttpRequest {
        method: HttpMethod::Patch,
        url: peer.url("/a/:x:/?d=urn%3Adev"),
        headers: headers(&[
            ("content-type", "application/json"),
            ("X-Key", "one"),
            ("Content-Type", "application/x"),
        ]),
        body: b"{\"a\":1}".to_vec(),
    };
    assert_eq!(http().send(request).await, HttpOutcome::Accepted(200));
    let received = peer.received().concat().concat();
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "PATCH /a/:x:/?d=urn%3Adev HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", peer.at);
    let agent = concat!("user-agent: signalbox/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        lines,
        [
            "accept: */*",
            "content-length: 7",
            "content-type: application/x",
            &host,
            agent,
            "x-key: one",
        ]
    );
    assert_eq!(body, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Peer::that_answers(OK);
    let to = elsewhere.url("/secret");
    let peer = Peer::that_ends(move |stream| {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes())
    });
    let posted = http().send(request(peer.url("/"))).await;
    assert_eq!(posted, HttpOutcome::Refused(302));
    assert_eq!(
        posted.to_string(),
        "the endpoint answered 302, and redirects are not followed"
    );
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_connection_is_reused() {
    let peer = Peer::that_answers("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine");
    let http = http();
    for _ in 0..3 {
        let posted = http.send(request(peer.url("/"))).await;
        assert_eq!(posted, HttpOutcome::Accepted(200));
    }
    let received = peer.received();
    assert_eq!(received.len(), 1, "one connection");
    assert_eq!(received[0].len(), 3);
}

#[tokio::test]
async fn an_endless_response_is_cut_off() {
    let (closed_sender, on_close) = mpsc::channel();
    let peer = Peer::that_ends(move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        // The other side closes the connection; otherwise this never ends.
        while stream.write_all(&[b'x'; 4_096]).is_ok() {}
        closed_sender.send(()).unwrap();
        Ok(())
    });
    let posted = http().send(request(peer.url("/"))).await;
    assert_eq!(posted, HttpOutcome::Accepted(200));
    let closed = tokio::task::spawn_blocking(move || on_close.recv_timeout(PATIENCE));
    assert_eq!(closed.await.unwrap(), Ok(()), "the connection is closed");
}

#[tokio::test]
async fn a_missing_body_does_not_delay_its_status() {
    let peer = Peer::that_ends(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345")?;
        wait_for_end(stream)
    });
    // A client that waited for the body would never return.
    let http = http_in(Duration::from_secs(1 << 20));
    let posted = tokio::time::timeout(PATIENCE, http.send(request(peer.url("/")))).await;
    assert_eq!(posted, Ok(HttpOutcome::Accepted(200)));
}

#[tokio::test]
async fn a_status_counts_even_if_the_connection_is_reset_after_it() {
    let beginning = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    // The network decides whether the status or the reset is seen first: both must work.
    let peer = Peer::that_resets_after(beginning);
    let posted = http().send(request(peer.url("/"))).await;
    let either = [
        HttpOutcome::Accepted(200),
        HttpOutcome::Unreachable(UnreachableReason::NoAnswer),
    ];
    assert!(either.contains(&posted), "{posted:?}");
    let peer = Peer::that_ends(move |stream| stream.write_all(beginning.as_bytes()));
    let posted = http().send(request(peer.url("/"))).await;
    assert_eq!(posted, HttpOutcome::Accepted(200));
}

#[tokio::test]
async fn a_request_without_a_response_in_time_is_given_up() {
    let peer = Peer::that_ends(wait_for_end);
    let http = http_in(Duration::from_millis(50));
    let posted = http.send(request(peer.url("/"))).await;
    assert_eq!(posted, HttpOutcome::Unreachable(UnreachableReason::Timeout));
    let dribbling = Peer::that_ends(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx-a: b\r\n")?;
        wait_for_end(stream)
    });
    let posted = http.send(request(dribbling.url("/"))).await;
    assert_eq!(posted, HttpOutcome::Unreachable(UnreachableReason::Timeout));
    assert_eq!(posted.to_string(), "the endpoint did not respond in time");
    // It accepts the connection and sends nothing, not even for TLS.
    let silent = Peer::that_greets("");
    let url = format!("https://{}/", silent.at);
    let posted = http.send(request(url.clone())).await;
    assert_eq!(posted, HttpOutcome::Unreachable(UnreachableReason::Timeout));
    let mut outbound = HttpOptions::under(AddressPolicy::PrivateAllowed);
    outbound.connect_timeout = Duration::from_millis(50);
    let posted = HttpClient::new(outbound).unwrap().send(request(url)).await;
    assert_eq!(posted, HttpOutcome::Unreachable(UnreachableReason::Timeout));
}

#[tokio::test]
async fn a_response_that_is_not_http_counts_as_none() {
    let no_answer = HttpOutcome::Unreachable(UnreachableReason::NoAnswer);
    for answer in [
        "",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        "220 mail.example ESMTP\r\n",
    ] {
        let peer = Peer::that_ends(move |stream| stream.write_all(answer.as_bytes()));
        let posted = http().send(request(peer.url("/"))).await;
        assert_eq!(posted, no_answer, "{answer:?}");
    }
    let resets = Peer::that_resets_after("");
    assert_eq!(http().send(request(resets.url("/"))).await, no_answer);
    assert_eq!(
        no_answer.to_string(),
        "the connection was closed without an HTTP response"
    );
}

#[tokio::test]
async fn endless_headers_are_cut_off() {
    let peer = Peer::that_ends(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        while stream.write_all(b"x-more: and more\r\n").is_ok() {}
        Ok(())
    });
    let posted = http().send(request(peer.url("/"))).await;
    assert_eq!(
        posted,
        HttpOutcome::Unreachable(UnreachableReason::NoAnswer)
    );
}

#[tokio::test]
async fn a_host_that_does_not_listen_is_not_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let posted = http().send(request(url)).await;
    assert_eq!(
        posted,
        HttpOutcome::Unreachable(UnreachableReason::NoConnection)
    );
    assert_eq!(posted.to_string(), "the host does not accept connections");
}

#[tokio::test]
async fn a_name_without_an_address_is_not_reached() {
    let http = http_knowing(AddressPolicy::PrivateAllowed, None, vec![]);
    let posted = http
        .send(request("https://nowhere.invalid/".to_owned()))
        .await;
    assert_eq!(
        posted,
        HttpOutcome::Unreachable(UnreachableReason::NameUnknown)
    );
    assert_eq!(posted.to_string(), "the host name cannot be resolved");
}

#[tokio::test]
async fn a_private_address_is_not_called_under_any_name() {
    let forbidden = HttpOutcome::Unreachable(UnreachableReason::Forbidden);
    let peer = Peer::that_answers(OK);
    let port = peer.at.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        HOST,
    ] {
        for leads_to in [
            "127.0.0.1",
            "::ffff:127.0.0.1",
            "169.254.169.254",
            "fd00:ec2::254",
        ] {
            let http = http_knowing(
                AddressPolicy::PublicOnly,
                None,
                vec![leads_to.parse().unwrap()],
            );
            let posted = http.send(request(format!("https://{host}:{port}/"))).await;
            assert_eq!(posted, forbidden, "{host} leads to {leads_to}");
        }
    }
    assert!(peer.received().is_empty(), "nobody connected");
    let plain = http_knowing(AddressPolicy::PublicOnly, None, vec![])
        .send(request(format!("http://{HOST}/")))
        .await;
    assert_eq!(plain, HttpOutcome::Unreachable(UnreachableReason::NotHttps));
}

#[tokio::test]
async fn an_invalid_header_or_url_is_not_sent() {
    let peer = Peer::that_answers(OK);
    for (name, value) in [("x y", "z"), ("", "z"), ("x", "a\r\nb: c"), ("x", "\0")] {
        let mut request = request(peer.url("/"));
        request.headers = headers(&[(name, value)]);
        let posted = http().send(request).await;
        assert_eq!(
            posted,
            HttpOutcome::Unreachable(UnreachableReason::NotSendable)
        );
    }
    for url in [
        "",
        "nonsense",
        "ftp://example.com/",
        "http://a:b@127.0.0.1/",
    ] {
        let posted = http().send(request(url.to_owned())).await;
        assert_eq!(
            posted,
            HttpOutcome::Unreachable(UnreachableReason::NotSendable)
        );
    }
    assert!(peer.received().is_empty());
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_accepted() {
    let authority = Authority::new();
    let peer = Peer::by_tls(authority.issues(HOST));
    let posted = call_by_tls(&peer, Some(authority.pem())).await;
    assert_eq!(posted, HttpOutcome::Accepted(200));
    let received = peer.received().concat().concat();
    assert!(
        received.starts_with("POST /hook HTTP/1.1\r\n"),
        "{received}"
    );
    assert!(
        received.contains(&format!("host: {HOST}:{}\r\n", peer.at.port())),
        "{received}"
    );
}

#[tokio::test]
async fn an_invalid_certificate_is_refused() {
    let authority = Authority::new();
    let untrusted = UnreachableReason::CertificateUntrusted;
    for (certificate, expected) in [
        (
            authority.issues_until(HOST, 2020),
            UnreachableReason::CertificateExpired,
        ),
        (
            authority.issues("other.example"),
            UnreachableReason::CertificateOfAnother,
        ),
        (self_signed(HOST), untrusted),
        (Authority::new().issues(HOST), untrusted),
    ] {
        let peer = Peer::by_tls(certificate);
        let posted = call_by_tls(&peer, Some(authority.pem())).await;
        assert_eq!(posted, HttpOutcome::Unreachable(expected));
        assert!(peer.received().concat().is_empty(), "nothing was sent");
    }
    let peer = Peer::by_tls(authority.issues(HOST));
    let posted = call_by_tls(&peer, None).await;
    assert_eq!(posted, HttpOutcome::Unreachable(untrusted));
}

#[tokio::test]
async fn a_host_without_tls_is_sent_nothing_in_plain_text() {
    let peer = Peer::that_greets("HTTP/1.1 400 Bad Request\r\n\r\n");
    let posted = call_by_tls(&peer, None).await;
    assert_eq!(posted, HttpOutcome::Unreachable(UnreachableReason::NoTls));
}

#[test]
fn authorities_that_cannot_be_read_are_refused() {
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let mut outbound = HttpOptions::under(AddressPolicy::PublicOnly);
        outbound.authorities = Some(pem.into());
        let made = HttpClient::new(outbound);
        assert!(matches!(made, Err(HttpError::Authorities(_))), "{pem:?}");
    }
}

#[test]
fn timeouts_are_those_promised_to_customers() {
    let usual = HttpOptions::under(AddressPolicy::PublicOnly);
    assert_eq!(usual.timeout, Duration::from_secs(20));
    assert!(usual.connect_timeout < usual.timeout);
}

/// Far longer than anything here takes, for results that must arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Resolves every name to these addresses.
struct FixedResolver(Mutex<Vec<IpAddr>>);

impl HostLookup for FixedResolver {
    fn addresses_of(&self, _name: String) -> Addresses {
        Box::pin(future::ready(self.0.lock().unwrap().clone()))
    }
}

fn http() -> HttpClient {
    http_in(PATIENCE)
}

fn http_in(timeout: Duration) -> HttpClient {
    let mut outbound = HttpOptions::under(AddressPolicy::PrivateAllowed);
    outbound.timeout = timeout;
    HttpClient::new(outbound).unwrap()
}

fn http_knowing(
    policy: AddressPolicy,
    authorities: Option<Vec<u8>>,
    ips: Vec<IpAddr>,
) -> HttpClient {
    let outbound = HttpOptions {
        authorities,
        ..HttpOptions::under(policy)
    };
    HttpClient::by(outbound, Arc::new(FixedResolver(Mutex::new(ips)))).unwrap()
}

async fn call_by_tls(peer: &Peer, authorities: Option<Vec<u8>>) -> HttpOutcome {
    let here = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    let http = http_knowing(AddressPolicy::PrivateAllowed, authorities, here);
    let url = format!("https://{HOST}:{}/hook", peer.at.port());
    http.send(request(url)).await
}

fn request(url: String) -> HttpRequest {
    HttpRequest {
        method: HttpMethod::Post,
        url,
        headers: headers(&[("content-type", "application/json")]),
        body: b"{}".to_vec(),
    }
}

fn headers(given: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    given.iter().map(owned).collect()
}

/// Sends nothing until the other side ends the connection.
fn wait_for_end(stream: &mut dyn peer::Stream) -> io::Result<()> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).map(drop)
}
