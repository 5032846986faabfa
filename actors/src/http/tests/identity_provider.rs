//! Is an identity provider called as bounded as it says?

use std::time::Duration;

use super::peer::{Authority, OK, Peer};
use crate::http::UnreachableReason;
use crate::http::identity_provider::{
    ClientAuthentication, IdentityProviderHttp, ProviderFault, ProviderResponse,
};

/// Longer than a peer on the loopback takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_response_is_returned_as_it_is_and_a_redirect_not_followed() {
    let elsewhere = Peer::that_answers(OK);
    let to = elsewhere.url("/");
    let peer = Peer::that_ends(move |stream| {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 4\r\n\r\n");
        stream.write_all(format!("{head}body").as_bytes())
    });
    let response = http(PATIENCE).fetch(&peer.url("/")).await.unwrap();
    assert_eq!((response.status, &*response.body), (302, &b"body"[..]));
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_form_has_the_credentials_in_its_header_or_in_itself() {
    let peer = Peer::that_answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let form = [("code", "a b&c")];
    for authentication in [
        ClientAuthentication::Basic("id", "secret"),
        ClientAuthentication::InForm,
    ] {
        let (http, url) = (http(PATIENCE), peer.url("/token"));
        let posted = http.post(&url, &form, authentication).await;
        assert_eq!(posted.unwrap().status, 200);
    }
    let received = peer.received().concat();
    let basic = "authorization: basic awq6c2vjcmv0";
    let has_basic = |request: &String| request.to_ascii_lowercase().contains(basic);
    assert_eq!(
        received.iter().map(has_basic).collect::<Vec<_>>(),
        [true, false]
    );
    assert!(
        received
            .iter()
            .all(|request| request.ends_with("code=a+b%26c"))
    );
}

#[tokio::test]
async fn a_response_that_is_too_long_or_never_ends_is_given_up() {
    let endless = Peer::that_ends(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            stream.write_all(&[b'a'; 1_024])?;
        }
    });
    let fault = failed(http(PATIENCE).fetch(&endless.url("/")).await);
    assert_eq!(fault, ProviderFault::TooLong);
    let silent = Peer::that_ends(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n")?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    });
    let http = http(Duration::from_millis(50));
    let fault = failed(http.fetch(&silent.url("/")).await);
    assert_eq!(fault, UnreachableReason::Timeout.into());
}

#[tokio::test]
async fn an_unknown_authority_is_trusted_only_if_the_operator_says_so() {
    let authority = Authority::new();
    let peer = Peer::by_tls(authority.issues("127.0.0.1"));
    let url = format!("https://{}/", peer.at);
    let fault = failed(http(PATIENCE).fetch(&url).await);
    assert_eq!(fault, UnreachableReason::CertificateUntrusted.into());
    let pem = authority.pem();
    let trusting = IdentityProviderHttp::new(Some(&pem)).unwrap();
    assert_eq!(trusting.fetch(&url).await.unwrap().status, 200);
    assert!(IdentityProviderHttp::new(Some(b"no PEM")).is_err());
}

fn http(timeout: Duration) -> IdentityProviderHttp {
    IdentityProviderHttp::within(timeout, None).unwrap()
}

fn failed(answered: Result<ProviderResponse, ProviderFault>) -> ProviderFault {
    answered.map(|response| response.status).unwrap_err()
}
