//! Which URLs are accepted, and why are the others refused?

use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::ids::{DeviceId, Iccid, Imsi};

#[test]
fn a_public_url_is_accepted_unchanged() {
    for text in [
        "https://example.com/",
        "https://example.com/hook/",
        "https://example.com:8443/a/b?c=d&e=%20f",
        "https://hooks.example.com/:iccid:/:imsi:/:ip:?device=:deviceId:",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]:444/x",
        "https://localhost.example.com/",
        "https://example.com./",
        "https://example.com/@x?y=@z",
        "https://notlocalhost/",
        "https://10.example.com/",
    ] {
        let url = DestinationUrl::parse(text, AddressPolicy::PublicOnly);
        assert_eq!(url.as_ref().map(DestinationUrl::as_str), Ok(text));
        let again = DestinationUrl::parse(text, AddressPolicy::PrivateAllowed);
        assert_eq!(again, url);
    }
    for (text, written) in [
        ("HTTPS://EXAMPLE.com", "https://example.com/"),
        (
            "https://bücher.example/ä",
            "https://xn--bcher-kva.example/%C3%A4",
        ),
        ("https://example.com:443/x", "https://example.com/x"),
    ] {
        let url = DestinationUrl::parse(text, AddressPolicy::PublicOnly).unwrap();
        assert_eq!(url.as_str(), written);
        assert_eq!(
            DestinationUrl::parse(written, AddressPolicy::PublicOnly),
            Ok(url)
        );
    }
}

#[test]
fn an_invalid_url_is_refused_with_its_reason() {
    let malformed = "must be a URL like https://example.com/path; placeholders are allowed in path \
                     and query";
    let userinfo = "must not contain a user name or password; use a header instead";
    for (text, expected) in [
        ("", malformed),
        ("example.com", malformed),
        ("/hook", malformed),
        ("https:example.com", malformed),
        ("https:///example.com", malformed),
        ("https://", malformed),
        ("https://exa mple.com/", malformed),
        ("https://example.com/a b", malformed),
        (" https://example.com/", malformed),
        ("https://example.com/\n", malformed),
        ("https://exam\tple.com/", malformed),
        ("https:\\\\example.com", malformed),
        ("https://example.com\\@other.example/", malformed),
        ("https://example.com:65536/", malformed),
        ("https://:iccid:/", malformed),
        ("https://:iccid:.example.com/", malformed),
        ("https://example.com::ip:/", malformed),
        (":iccid:://example.com/", malformed),
        ("https://999.1.1.1/", malformed),
        ("https://example.com:0/", malformed),
        ("https://example..com/", malformed),
        ("https://.example.com/", malformed),
        ("https://example.com../", malformed),
        ("https://./", malformed),
        ("https://[::1/", malformed),
        ("http://example.com/", "must begin with https://"),
        ("ftp://example.com/", "must begin with https://"),
        ("file:///etc/passwd", malformed),
        ("https://user@example.com/", userinfo),
        ("https://user:secret@example.com/", userinfo),
        ("https://:secret@example.com/", userinfo),
        ("https://:iccid:@example.com/", userinfo),
        ("https://@example.com/", userinfo),
        ("https://:@example.com/", userinfo),
        ("https://@example.com", userinfo),
        ("https://@example.com?at=@", userinfo),
        ("https://example.com/#part", "must not have a fragment"),
        ("https://example.com/#", "must not have a fragment"),
    ] {
        let fault = DestinationUrl::parse(text, AddressPolicy::PublicOnly).unwrap_err();
        assert_eq!(fault.to_string(), expected, "{text}");
    }
}

#[test]
fn a_private_host_is_refused_in_every_spelling() {
    for (host, seen_as) in [
        ("localhost", "localhost"),
        ("LOCALHOST:8080", "localhost"),
        ("localhost.", "localhost."),
        ("api.localhost", "api.localhost"),
        ("%6cocalhost", "localhost"),
        ("ｌｏｃａｌｈｏｓｔ", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("１２７.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("10.0.0.1", "10.0.0.1"),
        ("169.254.169.254", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("100.100.100.200", "100.100.100.200"),
        ("192.168.1.1:443", "192.168.1.1"),
        ("[::1]", "[::1]"),
        ("[::]", "[::]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        ("[::ffff:a9fe:a9fe]", "[::ffff:a9fe:a9fe]"),
        ("[fd00:ec2::254]", "[fd00:ec2::254]"),
        ("[fe80::1]", "[fe80::1]"),
        ("[64:ff9b::10.0.0.1]", "[64:ff9b::a00:1]"),
        ("[2002:7f00:1::]", "[2002:7f00:1::]"),
    ] {
        let text = format!("https://{host}/hook");
        assert_eq!(
            DestinationUrl::parse(&text, AddressPolicy::PublicOnly),
            Err(UrlFault::Private(seen_as.to_owned())),
            "{text}"
        );
        assert!(
            DestinationUrl::parse(&text, AddressPolicy::PrivateAllowed).is_ok(),
            "{text}"
        );
    }
}

#[test]
fn where_private_addresses_are_allowed_plain_http_is_too() {
    let parse = |text| DestinationUrl::parse(text, AddressPolicy::PrivateAllowed);
    assert!(parse("http://127.0.0.1:8080/hook").is_ok());
    assert!(parse("http://localhost/").is_ok());
    assert_eq!(parse("ftp://example.com/"), Err(UrlFault::NotHttp));
    assert_eq!(parse("http://a@localhost/"), Err(UrlFault::UserInfo));
}

#[test]
fn a_url_has_a_bound() {
    let long = |letter: &str, count| format!("https://example.com/{}", letter.repeat(count));
    let parse = |text: String| DestinationUrl::parse(&text, AddressPolicy::PublicOnly);
    let beginning = long("", 0).len();
    assert!(parse(long("x", 2_048 - beginning)).is_ok());
    let too_long = Err(UrlFault::TooLong { max: 2_048 });
    assert_eq!(parse(long("x", 2_049 - beginning)), too_long);
    assert_eq!(
        parse(long("ä", 400)),
        too_long,
        "each is six bytes of a URL"
    );
}

#[test]
fn placeholders_are_replaced_by_the_fields_of_the_device() {
    let template = "https://h.example/:iccid:/::imsi::/:ip:?d=:deviceId:&:other:&:iccid";
    let url = DestinationUrl::parse(template, AddressPolicy::PublicOnly).unwrap();
    assert_eq!(
        url.of(Some(&full())),
        "https://h.example/8988228066600000001/:001010000000001:/2001%3Adb8%3A%3A7\
         ?d=urn%3Adev%3A1&:other:&:iccid"
    );
    assert_eq!(
        url.of(Some(&sparse())),
        "https://h.example/a/:none:/none?d=a&:other:&:iccid"
    );
    assert_eq!(
        url.of(None),
        "https://h.example/none/:none:/none?d=none&:other:&:iccid"
    );
}

#[test]
fn the_fields_of_a_device_cannot_change_the_host_of_a_url() {
    let template = "https://h.example/:deviceId:?x=:deviceId:";
    let url = DestinationUrl::parse(template, AddressPolicy::PublicOnly).unwrap();
    for device in ["a@b:1", "a:b@evil.example", ":imsi:", "..a", "a+b=c"] {
        let info = DeviceInfo {
            device: DeviceId::parse(device).unwrap(),
            ..sparse()
        };
        let filled = admit(&url.of(Some(&info)), AddressPolicy::PublicOnly).unwrap();
        assert_eq!(filled.host_str(), Some("h.example"));
        let mut segments = filled.path_segments().unwrap();
        assert_eq!(segments.clone().count(), 1);
        assert!(!segments.any(|segment| segment.contains(['@', ':', '+', '='])));
        let pairs: Vec<_> = filled.query_pairs().collect();
        assert_eq!(pairs, [("x".into(), device.into())]);
    }
}

/// Names, addresses in unusual spellings, and neither.
const HOSTS: &str = "[a-z]{1,9}(\\.[a-z]{1,5}){0,2}|[a-z0-9.:@%x\\[\\]-]{0,20}|\
    127\\.[0-9.x]{1,10}|[0-9]{1,11}|0x[0-9a-f]{1,9}|\\[[0-9a-f:.]{2,30}\\]";

proptest! {
    #[test]
    fn an_accepted_url_parses_to_itself_and_points_to_one_public_host(
        scheme in "https://|HTTPS://|http://|https:/?",
        host in HOSTS,
        rest in "(/|\\?|#|@|:|\\\\)?(:deviceId:)?[!-~]{0,20}",
        device in "[A-Za-z0-9:@+=._-]{1,20}",
    ) {
        let text = format!("{scheme}{host}{rest}");
        let Ok(url) = DestinationUrl::parse(&text, AddressPolicy::PublicOnly) else {
            return Ok(());
        };
        let again = DestinationUrl::parse(url.as_str(), AddressPolicy::PublicOnly);
        prop_assert_eq!(again, Ok(url.clone()));
        let read = Url::parse(url.as_str()).unwrap();
        prop_assert_eq!(read.scheme(), "https");
        if let Some(ip) = ip_of(&read) {
            prop_assert!(AddressPolicy::PublicOnly.may_reach(ip), "{}", ip);
        }
        let Ok(device) = DeviceId::parse(&device) else {
            return Ok(());
        };
        let info = DeviceInfo { device, ..full() };
        let filled = Url::parse(&url.of(Some(&info))).unwrap();
        prop_assert_eq!(filled.origin(), read.origin());
    }
}

fn ip_of(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
    }
}

/// A device with all optional fields.
pub(super) fn full() -> DeviceInfo {
    DeviceInfo {
        device: DeviceId::parse("urn:dev:1").unwrap(),
        iccid: Iccid::parse("8988228066600000001").unwrap(),
        imsi: Some(Imsi::parse("001010000000001").unwrap()),
        ip: Some("2001:db8::7".parse().unwrap()),
    }
}

/// A device without optional fields.
pub(super) fn sparse() -> DeviceInfo {
    DeviceInfo {
        device: DeviceId::parse("a").unwrap(),
        iccid: Iccid::parse("a").unwrap(),
        imsi: None,
        ip: None,
    }
}
