//! Associations with real devices of DTLS, over a network without time.

use std::collections::{BTreeMap, VecDeque};

use dtls::{ClientConfig, SigningKey};
use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;
use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;
use crate::change::Change;
use crate::directory::credentials::{
    with_issued_keys, with_psk, with_public_key, without_psk, without_public_key,
};
use crate::directory::device::{NewDevice, draft_device};
use crate::firmware::image_key::ImageKey;
use crate::ids::{CampaignId, CustomerId, DeviceId};
use crate::moment::Moment;
use crate::sealed::Sealed;

const HOME: &str = "198.51.100.7:40000";
const ELSEWHERE: &str = "203.0.113.5:61000";
const KEY: u8 = 1;
const OTHER_KEY: u8 = 2;

#[test]
fn a_message_comes_from_the_device_that_proved_its_key() {
    let mut fixture = Fixture::of(1, &["meter", "pump"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    fixture.says(&mut meter, b"21.5");
    let [(device, peer, content)] = fixture.take_received().try_into().unwrap();
    assert_eq!((device, &content[..]), (fixture.key("meter"), &b"21.5"[..]));
    assert_eq!(
        peer.association,
        Some(crate::peer::AssociationId::of(device))
    );
    assert_eq!(peer.address, HOME.parse().unwrap());
    assert!(fixture.tell("meter", b"3.0"));
    fixture.run(&mut meter);
    assert_eq!(meter.heard, [b"3.0"]);
    assert!(!fixture.tell("pump", b"nothing"), "it has no session");
}

#[test]
fn a_record_goes_to_the_arbiter_that_its_connection_id_names() {
    let mut fixture = Fixture::of(3, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    for at in 0..3 {
        fixture.kernel = at;
        meter.address = SocketAddr::new(meter.address.ip(), 50_000 + at as u16);
        fixture.says(&mut meter, b"on");
    }
    assert_eq!(fixture.take_received().len(), 3);
    // The device also answers a challenge from each new address.
    assert_eq!(fixture.forwarded, 4, "those that arrived elsewhere");
    let session = fixture.arbiters[0].snapshot(fixture.key("meter")).unwrap();
    assert_eq!(session.address, meter.address);
    assert_eq!(session.address_changes, 3);
}

#[test]
fn a_hello_without_a_cookie_leaves_nothing() {
    let mut fixture = Fixture::of(1, &["meter"]);
    for port in 1..1_000 {
        let mut stranger = Client::new("meter", KEY, &format!("192.0.2.1:{port}"));
        stranger.connect(&mut fixture, None);
        let (from, hello) = stranger.outgoing.pop_front().unwrap();
        fixture.receives(from, &hello);
    }
    let counts = fixture.arbiters[0].counts();
    assert_eq!(counts.cookies_sent, 999);
    assert_eq!((counts.handshakes_open, counts.sessions), (0, 0));
    assert!(fixture.arbiters[0].local_by_address.is_empty());
    assert_eq!(fixture.look_ups, 0);
}

#[test]
fn a_wrong_key_is_refused_for_its_device_and_an_unknown_identity_for_nobody() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut impostor = Client::new("meter", OTHER_KEY, ELSEWHERE);
    impostor.connect(&mut fixture, None);
    fixture.run(&mut impostor);
    let mut nobody = Client::new("nobody", KEY, HOME);
    nobody.connect(&mut fixture, None);
    fixture.run(&mut nobody);
    fixture.give_up();
    let peer = Peer::secured(ELSEWHERE.parse().unwrap());
    let refused = [(fixture.key("meter"), peer, HandshakeFault::WrongKey)];
    assert_eq!(fixture.refused, refused);
    assert_eq!(
        fixture.outcomes(),
        [
            HandshakeOutcome::UnknownIdentity,
            HandshakeOutcome::Refused(HandshakeFault::WrongKey)
        ]
    );
}

#[test]
fn a_resumed_session_is_of_the_device_until_its_key_is_removed() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    let ticket = meter.resumption.take();
    // As after a crash: nothing is left but the key of tickets.
    fixture.arbiters = arbiters(1);
    meter.connect(&mut fixture, ticket);
    fixture.run(&mut meter);
    fixture.says(&mut meter, b"again");
    assert_eq!(fixture.take_received().len(), 1);
    assert_eq!(fixture.outcomes(), [HandshakeOutcome::Resumed]);
    let ticket = meter.resumption.take();
    let profile = fixture.profiles.get_mut("meter").unwrap();
    *profile = without_psk(profile).unwrap();
    fixture.arbiters = arbiters(1);
    meter.connect(&mut fixture, ticket);
    fixture.run(&mut meter);
    let refused = HandshakeOutcome::Refused(HandshakeFault::Revoked);
    assert_eq!(fixture.outcomes(), [refused]);
    assert_eq!(fixture.arbiters[0].counts().sessions, 0);
    assert!(!fixture.tell("meter", b"secret"));
    assert_eq!(meter.resumption, None, "it must not resume that again");
}

#[test]
fn a_session_is_resumed_within_the_time_of_the_setting() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let shard_map = ShardMap::among(1);
    let here = shard_map.arbiters().next().unwrap();
    let limits = AssociationLimits {
        resumption_s: 60,
        ..AssociationLimits::default()
    };
    let fresh = || vec![Associations::new(here, shard_map, limits, &secrets(), &[])];
    fixture.arbiters = fresh();
    let mut meter = fixture.connected("meter", KEY, HOME);
    for (after_s, outcome) in [
        (59, HandshakeOutcome::Resumed),
        (59, HandshakeOutcome::Resumed),
        (60, HandshakeOutcome::Completed),
    ] {
        fixture.arbiters = fresh();
        fixture.now = fixture.now.plus_ms(after_s * 1_000);
        let ticket = meter.resumption.take();
        meter.connect(&mut fixture, ticket);
        fixture.run(&mut meter);
        assert_eq!(fixture.outcomes(), [outcome], "after {after_s} s");
    }
}

#[test]
fn a_session_without_a_ticket_is_resumed_at_every_arbiter_and_after_a_crash() {
    let mut fixture = Fixture::of(2, &["meter"]);
    let mut meter = Client::new("meter", KEY, HOME);
    meter.accepts_tickets = false;
    meter.connect(&mut fixture, None);
    fixture.run(&mut meter);
    for (kernel, is_crashed) in [(1, false), (0, true), (1, true)] {
        let resumed = HandshakeOutcome::Resumed.index();
        if is_crashed {
            fixture.arbiters = arbiters(2);
            let records = std::mem::take(&mut fixture.cached);
            for arbiter in &mut fixture.arbiters {
                records.iter().for_each(|record| arbiter.cache(record));
            }
        }
        fixture.kernel = kernel;
        let resumption = meter.resumption.take();
        meter.connect(&mut fixture, resumption);
        fixture.run(&mut meter);
        let counts = fixture.arbiters[kernel].counts();
        assert_eq!(counts.handshakes[resumed], 1, "{kernel} {is_crashed}");
    }
}

#[test]
fn a_handshake_that_was_answered_ends_with_the_key_of_its_device() {
    let factory = Factory::new();
    for (kind, mut client) in [
        ("pre-shared key", Client::new("meter", KEY, HOME)),
        ("raw public key", Client::with_public_key("meter")),
        ("certificate", factory.client(&["meter"])),
    ] {
        for is_ended in [false, true] {
            let mut fixture = Fixture::of(1, &["meter"]);
            fixture.authorities = Some(factory.authorities(fixture.now));
            fixture.give_public_key("meter", &client);
            client.connect(&mut fixture, None);
            let finished = fixture.run_until_finished(&mut client);
            assert_eq!(fixture.arbiters[0].counts().handshakes_open, 1, "{kind}");
            if is_ended {
                fixture.take_keys("meter");
            }
            client.outgoing.extend(finished);
            fixture.run(&mut client);
            let (outcome, refused) = match is_ended {
                false => (HandshakeOutcome::Completed, vec![]),
                true => {
                    let fault = HandshakeFault::NoKey;
                    let peer = Peer::secured(HOME.parse().unwrap());
                    let refused = vec![(fixture.key("meter"), peer, fault)];
                    (HandshakeOutcome::Refused(fault), refused)
                }
            };
            assert_eq!(fixture.outcomes(), [outcome], "{kind}");
            assert_eq!(fixture.refused, refused, "{kind}");
            assert_eq!(fixture.tell("meter", b"secret"), !is_ended, "{kind}");
            let counts = fixture.arbiters[0].counts();
            assert_eq!(counts.sessions, usize::from(!is_ended), "{kind}");
        }
    }
}

#[test]
fn what_was_read_of_a_device_before_its_key_was_removed_admits_nobody() {
    check_read_before_removal(HandshakeFault::NoKey, |fixture, meter| {
        meter.connect(fixture, None);
    });
    check_read_before_removal(HandshakeFault::Revoked, |fixture, meter| {
        let ticket = meter.resumption.take();
        fixture.arbiters = arbiters(1);
        meter.connect(fixture, ticket);
    });
    check_read_before_removal(HandshakeFault::Revoked, |fixture, _| {
        fixture.restart();
    });
}

/// A device with a session begins another one, resumes it or goes on with it. While it is looked
/// up, its key is removed.
fn check_read_before_removal(fault: HandshakeFault, begin: impl Fn(&mut Fixture, &mut Client)) {
    for is_removed in [false, true] {
        let mut fixture = Fixture::of(1, &["meter", "pump"]);
        let mut meter = fixture.connected("meter", KEY, HOME);
        fixture.is_slow = true;
        begin(&mut fixture, &mut meter);
        fixture.run(&mut meter);
        fixture.says(&mut meter, b"early");
        assert_eq!(fixture.slow.len(), 1, "{fault}");
        fixture.take_keys("pump");
        if is_removed {
            fixture.take_keys("meter");
        }
        fixture.is_slow = false;
        fixture.answer_slow();
        fixture.run(&mut meter);
        fixture.says(&mut meter, b"late");
        fixture.give_up();
        assert_eq!(fixture.take_received().is_empty(), is_removed, "{fault}");
        let refused = HandshakeOutcome::Refused(fault);
        let outcomes = fixture.outcomes();
        assert_eq!(outcomes.contains(&refused), is_removed, "{outcomes:?}");
        assert_eq!(fixture.tell("meter", b"secret"), !is_removed, "{fault}");
        assert!(fixture.arbiters[0].changed_by_look_up.is_empty());
    }
}

#[test]
fn a_message_that_overtakes_the_look_up_of_a_resumed_session_waits() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    let ticket = meter.resumption.take();
    fixture.arbiters = arbiters(1);
    fixture.is_slow = true;
    meter.connect(&mut fixture, ticket);
    fixture.run(&mut meter);
    for _ in 0..EARLY_RECORDS_MAX + 1 {
        fixture.says(&mut meter, b"early");
    }
    assert_eq!(fixture.take_received(), []);
    fixture.answer_slow();
    assert_eq!(fixture.take_received().len(), EARLY_RECORDS_MAX);
}

#[test]
fn a_device_has_one_session_the_newest() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut first = fixture.connected("meter", KEY, HOME);
    let mut second = fixture.connected("meter", KEY, ELSEWHERE);
    fixture.says(&mut second, b"here");
    assert_eq!(fixture.take_received().len(), 1);
    assert_eq!(fixture.arbiters[0].counts().sessions, 1);
    assert!(fixture.tell("meter", b"on"));
    fixture.run(&mut first);
    fixture.run(&mut second);
    assert_eq!((first.heard.len(), second.heard.len()), (0, 1));
    fixture.says(&mut first, b"late");
    assert_eq!(fixture.take_received(), []);
}

#[test]
fn a_device_that_downloads_over_another_session_is_reached_over_the_one_before() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut first = fixture.connected("meter", KEY, HOME);
    fixture.says(&mut first, b"here");
    let mut second = fixture.connected("meter", KEY, ELSEWHERE);
    let download = download();
    for _ in 0..2 {
        fixture.says(&mut second, &download);
        assert!(fixture.tell("meter", b"on"));
        assert!(fixture.replies("meter", ELSEWHERE, b"block"));
    }
    fixture.run(&mut first);
    fixture.run(&mut second);
    assert_eq!(first.heard, [b"on", b"on"]);
    assert_eq!(second.heard, [b"block", b"block"]);
    assert_eq!(fixture.take_received().len(), 3);

    // A third one takes the place of the second.
    let mut third = fixture.connected("meter", KEY, "203.0.113.5:61001");
    assert_eq!(fixture.arbiters[0].counts().sessions, 2);
    fixture.says(&mut second, &download);
    assert_eq!(fixture.take_received(), []);
    fixture.says(&mut third, b"here");
    assert_eq!(fixture.arbiters[0].counts().sessions, 1);
    assert!(fixture.tell("meter", b"off"));
    fixture.run(&mut third);
    assert_eq!(third.heard, [b"off"]);
}

#[test]
fn a_download_goes_on_when_the_device_has_another_session_for_the_rest() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut first = fixture.connected("meter", KEY, HOME);
    let download = download();
    fixture.says(&mut first, &download);
    let mut second = fixture.connected("meter", KEY, ELSEWHERE);
    fixture.says(&mut second, b"here");
    assert!(fixture.tell("meter", b"on"));
    fixture.run(&mut second);
    assert_eq!(second.heard, [b"on"]);
    fixture.take_received();
    fixture.says(&mut first, &download);
    assert!(fixture.replies("meter", HOME, b"block"));
    fixture.run(&mut first);
    assert_eq!(first.heard, [b"block"]);
    assert_eq!(fixture.take_received().len(), 1);
    let device = fixture.key("meter");
    fixture.call(0, |it, m, out| it.end(m, device, out));
    assert_eq!(fixture.arbiters[0].counts().sessions, 0);
}

#[test]
fn the_first_use_of_a_new_key_ends_the_previous_one() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let profile = fixture.profiles.get_mut("meter").unwrap();
    *profile = with_psk(profile, None, sealed(OTHER_KEY), Timestamp::from_ms(5));
    fixture.connected("meter", KEY, HOME);
    assert_eq!(fixture.commits, 0);
    fixture.connected("meter", OTHER_KEY, HOME);
    assert_eq!(fixture.commits, 1);
    let mut late = Client::new("meter", KEY, ELSEWHERE);
    late.connect(&mut fixture, None);
    fixture.run(&mut late);
    fixture.give_up();
    assert_eq!(fixture.refused.len(), 1);
}

#[test]
fn the_key_of_the_customer_is_for_bootstrap_alone_once_an_issued_key_was_used() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let profile = fixture.profiles.get_mut("meter").unwrap();
    *profile = with_issued_keys(
        profile,
        Some(sealed(OTHER_KEY)),
        None,
        Timestamp::from_ms(5),
    );
    let mut meter = fixture.connected("meter", KEY, HOME);
    fixture.says(&mut meter, b"before");
    assert_eq!(fixture.take_received().len(), 1);
    let mut meter = fixture.connected("meter", OTHER_KEY, HOME);
    assert_eq!(fixture.commits, 1);
    fixture.says(&mut meter, b"with the issued key");
    assert_eq!(fixture.take_received().len(), 1);
    assert_eq!(fixture.for_bootstrap, []);
    let mut meter = fixture.connected("meter", KEY, HOME);
    fixture.says(&mut meter, b"with the key before");
    assert_eq!(fixture.take_received().len(), 0);
    assert_eq!(fixture.for_bootstrap.len(), 1);

    fixture.restart();
    fixture.says(&mut meter, b"to the next process");
    assert_eq!(fixture.take_received().len(), 0);
    assert_eq!(fixture.for_bootstrap.len(), 2);
}

#[test]
fn sessions_and_handshakes_end_by_age() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    let due = fixture.arbiters[0].next_timeout().unwrap();
    fixture.now = due;
    fixture.passes();
    // The last flight is forgotten first.
    let due = fixture.arbiters[0].next_timeout().unwrap();
    fixture.now = due.max(fixture.now.plus_ms(8 * 86_400_000));
    fixture.passes();
    assert_eq!(fixture.arbiters[0].counts().sessions, 0);
    assert_eq!(fixture.arbiters[0].next_timeout(), None);
    fixture.says(&mut meter, b"late");
    assert_eq!(fixture.take_received(), []);
    assert_eq!(fixture.arbiters[0].counts().unknown_connection_ids, 1);
}

/// Devices move, make new handshakes, resume, and are impersonated; records are replayed from
/// anywhere. Whatever happens, a message for a device is read by a holder of its key or by nobody.
#[test]
fn what_a_device_is_told_reaches_the_holder_of_its_key_only() {
    let names = ["a", "b", "c"];
    for seed in 1..=40 {
        let mut fixture = Fixture::of(2, &names);
        fixture.seed = seed;
        let mut devices: Vec<Client> = names
            .iter()
            .zip(1..)
            .map(|(name, host)| fixture.connected(name, KEY, &format!("198.51.100.{host}:40000")))
            .collect();
        let mut impostor = Client::new("a", OTHER_KEY, ELSEWHERE);
        let mut overheard: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        for round in 0..60_u32 {
            let who = fixture.below(names.len());
            fixture.kernel = fixture.below(2);
            match fixture.below(6) {
                0 => devices[who].address = fixture.address(),
                1 => {
                    let ticket = devices[who].resumption.clone();
                    devices[who].connect(&mut fixture, ticket);
                }
                2 => {
                    impostor.address = devices[who].address;
                    impostor.identity = names[who];
                    impostor.connect(&mut fixture, None);
                }
                3 if !overheard.is_empty() => {
                    let (_, record) = overheard[fixture.below(overheard.len())].clone();
                    let from = fixture.address();
                    fixture.receives(from, &record);
                }
                _ => fixture.says(&mut devices[who], b"up"),
            }
            overheard.extend(devices[who].sent_lately());
            fixture.run(&mut devices[who]);
            fixture.run(&mut impostor);
            let message = format!("{} {round}", names[who]);
            fixture.tell(names[who], message.as_bytes());
            for device in devices.iter_mut().chain([&mut impostor]) {
                fixture.run(device);
            }
            fixture.network.clear();
        }
        assert_eq!(impostor.heard, [[0_u8; 0]; 0], "seed {seed}");
        for (name, device) in names.iter().zip(&devices) {
            let is_its = |message: &Vec<u8>| message.starts_with(name.as_bytes());
            assert!(device.heard.iter().all(is_its), "seed {seed}");
            assert!(!device.heard.is_empty(), "seed {seed}");
        }
        for (device, _, content) in fixture.take_received() {
            assert_eq!(content, b"up", "seed {seed}: {device}");
        }
    }
}

#[test]
fn a_certificate_is_of_the_device_whose_endpoint_name_it_has() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let factory = Factory::new();
    fixture.authorities = Some(factory.authorities(fixture.now));
    let mut meter = factory.client(&["a meter", "meter"]);
    meter.connect(&mut fixture, None);
    fixture.run(&mut meter);
    fixture.says(&mut meter, b"21.5");
    let [(device, _, _)] = fixture.take_received().try_into().unwrap();
    assert_eq!(device, fixture.key("meter"));
    assert_eq!(fixture.look_ups, 2, "each name is looked up");
    let session = fixture.arbiters[0].snapshot(device).unwrap();
    let identity = ClaimedIdentity::Certificate {
        endpoint: EndpointName::parse("meter").unwrap(),
        customer: Some(CustomerId::parse("acme").unwrap()),
    };
    assert_eq!(session.identity, identity);

    let ticket = meter.resumption.take();
    fixture.arbiters = arbiters(1);
    meter.connect(&mut fixture, ticket);
    fixture.run(&mut meter);
    assert_eq!(fixture.outcomes(), [HandshakeOutcome::Resumed]);
}

#[test]
fn a_certificate_that_the_customer_does_not_trust_is_refused_for_its_device() {
    let (factory, other) = (Factory::new(), Factory::new());
    let fault = HandshakeFault::UntrustedCertificate;
    for authorities in [None, Some(other.authorities(Timestamp::from_ms(1)))] {
        let mut fixture = Fixture::of(1, &["meter"]);
        fixture.authorities = authorities;
        for name in ["meter", "nobody"] {
            let mut client = factory.client(&[name]);
            client.connect(&mut fixture, None);
            fixture.run(&mut client);
            assert!(client.association.is_none());
        }
        let peer = Peer::secured(HOME.parse().unwrap());
        assert_eq!(fixture.refused, [(fixture.key("meter"), peer, fault)]);
        let outcomes = [
            HandshakeOutcome::UnknownIdentity,
            HandshakeOutcome::Refused(fault),
        ];
        assert_eq!(fixture.outcomes(), outcomes);
    }
}

#[test]
fn sessions_of_certificates_end_when_the_authorities_change() {
    let mut fixture = Fixture::of(1, &["meter", "pump"]);
    let factory = Factory::new();
    fixture.authorities = Some(factory.authorities(fixture.now));
    let mut meter = factory.client(&["meter"]);
    meter.connect(&mut fixture, None);
    fixture.run(&mut meter);
    let ticket = meter.resumption.take();
    let _pump = fixture.connected("pump", KEY, ELSEWHERE);
    let mut late = factory.client(&["meter"]);
    late.address = "192.0.2.9:7000".parse().unwrap();
    fixture.is_slow = true;
    late.connect(&mut fixture, None);
    fixture.run(&mut late);

    fixture.now = fixture.now.plus_ms(1);
    fixture.authorities = Some(factory.authorities(fixture.now));
    let other = CustomerId::parse("umbrella").unwrap();
    fixture.call(0, |it, m, out| it.end_certified(m, &other, out));
    assert!(fixture.tell("meter", b"it goes on"));
    let acme = CustomerId::parse("acme").unwrap();
    fixture.call(0, |it, m, out| it.end_certified(m, &acme, out));
    assert!(!fixture.tell("meter", b"secret"));
    assert!(fixture.tell("pump", b"with its own key"));
    fixture.is_slow = false;
    fixture.answer_slow();
    fixture.run(&mut late);
    assert!(late.resumption.is_none(), "it was admitted before");

    meter.connect(&mut fixture, ticket);
    fixture.run(&mut meter);
    let revoked = HandshakeOutcome::Refused(HandshakeFault::Revoked);
    assert!(fixture.outcomes().contains(&revoked));
    meter.connect(&mut fixture, None);
    fixture.run(&mut meter);
    assert!(fixture.tell("meter", b"on"));
}

#[test]
fn a_session_goes_on_in_the_next_process_once_its_device_is_heard() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    let before = fixture.arbiters[0].snapshot(fixture.key("meter"));
    let kept = fixture.restart();
    assert!(!fixture.tell("meter", b"not known yet"));
    fixture.says(&mut meter, b"21.5");
    assert_eq!(fixture.take_received().len(), 1);
    assert_eq!(fixture.outcomes(), [], "there was no handshake");
    assert_eq!(fixture.arbiters[0].snapshot(fixture.key("meter")), before);
    assert!(fixture.tell("meter", b"on"));
    fixture.run(&mut meter);
    assert_eq!(meter.heard, [b"on"]);
    assert!(kept.iter().all(|record| !record.is_empty()));

    let profile = fixture.profiles.get_mut("meter").unwrap();
    *profile = without_psk(profile).unwrap();
    fixture.restart();
    fixture.says(&mut meter, b"22");
    assert!(fixture.take_received().is_empty());
    let revoked = HandshakeOutcome::Refused(HandshakeFault::Revoked);
    assert_eq!(fixture.outcomes(), [revoked]);
}

#[test]
fn records_of_sessions_are_read_or_left_out() {
    let mut fixture = Fixture::of(1, &["meter"]);
    let mut meter = fixture.connected("meter", KEY, HOME);
    let kept = fixture.restart();
    let counts = |fixture: &Fixture| fixture.arbiters[0].counts().sessions;
    for left_out in 0..kept.len() {
        let mut records = kept.clone();
        records.remove(left_out);
        fixture.go_on_with(&records);
        assert_eq!(counts(&fixture), 0, "without record {left_out}");
    }
    for record in &kept {
        for length in 0..record.len() {
            let cut = SessionRecord::new(record[..length].to_vec());
            fixture.go_on_with(&[cut]);
            assert_eq!(counts(&fixture), 0);
        }
    }
    fixture.go_on_with(&kept);
    assert_eq!(counts(&fixture), 1);
    fixture.says(&mut meter, b"on");
    assert_eq!(fixture.take_received().len(), 1);
}

#[test]
fn a_cipher_suite_is_found_by_its_name() {
    for suite in CipherSuite::ALL {
        let name = suite.name();
        assert_eq!(AssociationSnapshot::suite_named(name), Some(name));
    }
    let unknown = AssociationSnapshot::suite_named("TLS_NULL_WITH_NULL_NULL");
    assert_eq!(unknown, None);
}

#[test]
fn no_secret_is_printed() {
    const SECRET: u8 = 0xA7;
    let secrets = AssociationSecrets {
        cookies: [SECRET; 32],
        tickets: [SECRET; 32],
        server_key: ServerKey::from_scalar(&[SECRET; 32]).unwrap(),
    };
    let mut fixture = Fixture::of(1, &["meter", "pump"]);
    let shard_map = ShardMap::among(1);
    let here = shard_map.arbiters().next().unwrap();
    let limits = AssociationLimits::default();
    fixture.arbiters = vec![Associations::new(here, shard_map, limits, &secrets, &[])];
    for profile in fixture.profiles.values_mut() {
        *profile = with_psk(profile, None, sealed(SECRET), fixture.now);
    }
    let mut meter = fixture.connected("meter", SECRET, HOME);
    fixture.says(&mut meter, b"21.5");
    fixture.is_slow = true;
    let mut pump = Client::new("pump", SECRET, ELSEWHERE);
    pump.connect(&mut fixture, None);
    fixture.run(&mut pump);
    assert_eq!(fixture.slow.len(), 1);
    let config = ClientConfig::with_psk(b"meter", &[SECRET; 16]);
    let ticket_key = TicketKey::from_bytes([SECRET; 32]);
    let signing_key = SigningKey::from_scalar(&[SECRET; 32]).unwrap();
    let printed = [
        format!("{:?}", fixture.arbiters),
        format!("{:?}", fixture.slow),
        format!("{:?} {:?}", meter.endpoint, meter.resumption),
        format!("{secrets:?} {config:?} {ticket_key:?} {signing_key:?}"),
    ];
    let mut kept = Vec::new();
    meter
        .endpoint
        .export(|record| kept.extend_from_slice(record));
    // The format, the id, a time, an IPv4 address and the suite precede the keys.
    let (read, write) = (&kept[25..41], &kept[45..61]);
    for text in printed {
        assert!(text.contains("(..)"), "{text}");
        for secret in [&[SECRET; 4][..], read, write] {
            let decimal = format!("{secret:?}");
            let hexadecimal = secret.iter().map(|byte| format!("{byte:02x}"));
            let forms = [
                decimal.trim_matches(['[', ']']).to_owned(),
                hexadecimal.collect(),
                secret.escape_ascii().to_string(),
            ];
            for form in forms {
                assert!(!text.to_lowercase().contains(&form), "{form}: {text}");
            }
        }
    }
}

/// An authority that certifies devices.
struct Factory {
    issuer: Issuer<'static, KeyPair>,
    certificate: Vec<u8>,
}

impl Factory {
    fn new() -> Self {
        let mut params = named("factory");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().to_vec();
        let issuer = Issuer::new(params, key);
        Self {
            issuer,
            certificate,
        }
    }

    fn authorities(&self, set_at: Timestamp) -> CertificateAuthorities {
        let certificates = vec![self.certificate.clone().into()];
        CertificateAuthorities::new(certificates, set_at).unwrap()
    }

    /// A device with a certificate of a common name and of further names.
    fn client(&self, names: &[&'static str]) -> Client {
        let mut params = named(names[0]);
        let others = names[1..].iter().map(|it| (*it).try_into().unwrap());
        params.subject_alt_names = others.map(rcgen::SanType::DnsName).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let chain = vec![certificate.der().to_vec().into()];
        let key = SigningKey::from_der(&key.serialize_der(), chain).unwrap();
        let mut client = Client::new(names[0], KEY, HOME);
        client.signing_key = Some(Arc::new(key));
        client
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

type Out = Vec<AssociationEffect>;

/// A service of several arbiters, and the network before it.
struct Fixture {
    arbiters: Vec<Associations>,
    profiles: BTreeMap<&'static str, Profile>,
    /// The arbiter whose socket receives.
    kernel: usize,
    now: Timestamp,
    seed: u64,
    /// Records on their way to devices.
    network: VecDeque<(SocketAddr, Vec<u8>)>,
    received: Vec<(DeviceKey, Peer, Vec<u8>)>,
    for_bootstrap: Vec<DeviceKey>,
    refused: Vec<(DeviceKey, Peer, HandshakeFault)>,
    forwarded: usize,
    look_ups: usize,
    commits: usize,
    /// The records with which sessions are resumed by their ids.
    cached: Vec<SessionRecord>,
    /// Who certifies devices.
    authorities: Option<CertificateAuthorities>,
    /// Whether look-ups wait for `answer_slow`.
    is_slow: bool,
    /// What was read for each.
    slow: Vec<(usize, ClaimId, Option<KnownCredentials>)>,
}

/// A device that speaks DTLS.
struct Client {
    endpoint: Endpoint,
    association: Option<dtls::AssociationId>,
    address: SocketAddr,
    identity: &'static str,
    key: u8,
    /// What it proves its identity with, if it has no pre-shared key.
    signing_key: Option<Arc<SigningKey>>,
    outgoing: VecDeque<(SocketAddr, Vec<u8>)>,
    sent: Vec<(SocketAddr, Vec<u8>)>,
    heard: Vec<Vec<u8>>,
    resumption: Option<dtls::Resumption>,
    accepts_tickets: bool,
}

/// Whether anything was sent.
#[derive(Eq, PartialEq)]
enum Exchange {
    Busy,
    Quiet,
}

impl Fixture {
    fn of(count: usize, names: &[&'static str]) -> Self {
        let customer = CustomerId::parse("acme").unwrap();
        let profile = |name: &&'static str| {
            let new = NewDevice {
                device: Some(DeviceId::parse(name).unwrap()),
                ..NewDevice::default()
            };
            let mut moment = Moment::new(Timestamp::from_ms(0), 7);
            let profile = draft_device(&mut moment, &customer, new).unwrap();
            let keyed = with_psk(&profile, None, sealed(KEY), Timestamp::from_ms(1));
            (*name, keyed)
        };
        Self {
            arbiters: arbiters(count),
            profiles: names.iter().map(profile).collect(),
            kernel: 0,
            now: Timestamp::from_ms(1_700_000_000_000),
            seed: 1,
            network: VecDeque::new(),
            received: Vec::new(),
            for_bootstrap: Vec::new(),
            refused: Vec::new(),
            forwarded: 0,
            look_ups: 0,
            commits: 0,
            cached: Vec::new(),
            authorities: None,
            is_slow: false,
            slow: Vec::new(),
        }
    }

    /// The arbiter ends in order, and the next process goes on with its sessions.
    fn restart(&mut self) -> Vec<SessionRecord> {
        let mut kept = Vec::new();
        self.arbiters[0].export(|record| kept.push(SessionRecord::new(record.to_vec())));
        self.go_on_with(&kept);
        kept
    }

    fn go_on_with(&mut self, kept: &[SessionRecord]) {
        let shard_map = ShardMap::among(1);
        let here = shard_map.arbiters().next().unwrap();
        let limits = AssociationLimits::default();
        self.arbiters = vec![Associations::new(here, shard_map, limits, &secrets(), kept)];
    }

    fn key(&self, name: &str) -> DeviceKey {
        self.profiles[name].key()
    }

    fn connected(&mut self, name: &'static str, key: u8, address: &str) -> Client {
        let mut client = Client::new(name, key, address);
        client.connect(self, None);
        self.run(&mut client);
        assert!(client.resumption.is_some(), "no session of {name}");
        client
    }

    /// The device sends a message, which arrives.
    fn says(&mut self, client: &mut Client, content: &[u8]) {
        let Some(association) = client.association else {
            return;
        };
        let mut out = Effects::new();
        if client.endpoint.send(association, content, &mut out).is_ok() {
            client.take(&out);
        }
        self.run(client);
    }

    /// Sends a message to a device. Returns whether there is a session.
    fn tell(&mut self, name: &str, message: &[u8]) -> bool {
        let (device, mut is_sent) = (self.key(name), false);
        for at in 0..self.arbiters.len() {
            is_sent |= self.call(at, |it, m, out| it.send(m, device, message, out));
        }
        is_sent
    }

    /// Answers a message of a device that came from this address.
    fn replies(&mut self, name: &str, address: &str, message: &[u8]) -> bool {
        let to = (self.key(name), address.parse().unwrap());
        self.call(0, |it, m, out| it.answer(m, to, message, out))
    }

    /// Exchanges records with a device until neither has any.
    fn run(&mut self, client: &mut Client) {
        while self.exchange(client) == Exchange::Busy {}
    }

    /// Exchanges the records that a device and the service have for each other.
    fn exchange(&mut self, client: &mut Client) -> Exchange {
        let mut exchange = Exchange::Quiet;
        while let Some((from, record)) = client.outgoing.pop_front() {
            self.receives(from, &record);
            exchange = Exchange::Busy;
        }
        let (own, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.network)
            .into_iter()
            .partition(|(to, _)| *to == client.address);
        self.network = others;
        for (_, record) in own {
            client.hears(self, &record);
            exchange = Exchange::Busy;
        }
        exchange
    }

    fn receives(&mut self, from: SocketAddr, record: &[u8]) {
        let peer = Peer::secured(from);
        self.call(self.kernel, |it, m, out| {
            it.handle_datagram(m, peer, record, out)
        });
    }

    fn passes(&mut self) {
        for at in 0..self.arbiters.len() {
            self.call(at, |it, m, out| it.handle_timeout(m, out));
        }
    }

    /// Handshakes whose peer is silent are given up.
    fn give_up(&mut self) {
        self.now = self.now.plus_ms(61_000);
        self.passes();
    }

    fn answer_slow(&mut self) {
        for (at, claim, found) in std::mem::take(&mut self.slow) {
            self.answer(at, claim, found);
        }
    }

    /// Exchanges records with a device, and returns its Finished, which is not received.
    fn run_until_finished(&mut self, client: &mut Client) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut finished = Vec::new();
        loop {
            for (from, datagram) in std::mem::take(&mut client.outgoing) {
                let (plain, sealed) = split_sealed(&datagram);
                if !plain.is_empty() {
                    client.outgoing.push_back((from, plain.to_vec()));
                }
                if !sealed.is_empty() {
                    finished.push((from, sealed.to_vec()));
                }
            }
            if self.exchange(client) == Exchange::Quiet {
                return finished;
            }
        }
    }

    /// A device has the public key that its client proves, if it proves one.
    fn give_public_key(&mut self, name: &'static str, client: &Client) {
        let Some(key) = client.signing_key.as_deref() else {
            return;
        };
        let key = RawPublicKey::from_spki(key.public_key()).unwrap();
        let profile = self.profiles.get_mut(name).unwrap();
        *profile = with_public_key(profile, key, Timestamp::from_ms(1));
    }

    /// The keys of a device are removed.
    fn take_keys(&mut self, name: &'static str) {
        let profile = self.profiles.get_mut(name).unwrap();
        *profile = without_psk(profile).unwrap();
        if let Ok(without) = without_public_key(profile) {
            *profile = without;
        }
        let device = self.key(name);
        self.call(0, |it, m, out| it.end(m, device, out));
    }

    fn call<T>(
        &mut self,
        at: usize,
        input: impl FnOnce(&mut Associations, &mut SecureMoment<'_>, &mut Out) -> T,
    ) -> T {
        let (mut out, mut seed) = (Vec::new(), self.seed);
        let mut entropy = |bytes: &mut [u8]| bytes.fill_with(|| next(&mut seed));
        let mut moment = SecureMoment {
            now: self.now,
            entropy: &mut entropy,
        };
        let returned = input(&mut self.arbiters[at], &mut moment, &mut out);
        self.seed = seed;
        for effect in out {
            self.perform(at, effect);
        }
        returned
    }

    fn perform(&mut self, at: usize, effect: AssociationEffect) {
        match effect {
            AssociationEffect::Send(to, record) => self.network.push_back((to.address, record)),
            AssociationEffect::Forward(to, peer, record) => {
                self.forwarded += 1;
                self.call(to.index(), |it, m, out| {
                    it.handle_forwarded(m, peer, &record, out)
                });
            }
            AssociationEffect::LookUp(claim, identity) => {
                let found = self.read(&identity);
                match self.is_slow {
                    true => self.slow.push((at, claim, found)),
                    false => self.answer(at, claim, found),
                }
            }
            AssociationEffect::Receive(device, peer, content) => {
                self.received.push((device, peer, content));
            }
            AssociationEffect::ReceiveForBootstrap(device, ..) => self.for_bootstrap.push(device),
            AssociationEffect::Commit(batch) => {
                self.commits += 1;
                for change in batch.changes {
                    let Change::PutDevice { profile, .. } = change else {
                        panic!("{change:?}");
                    };
                    let (mut kept, key) = (self.profiles.values_mut(), profile.key());
                    *kept.find(|it| it.key() == key).unwrap() = *profile;
                }
            }
            AssociationEffect::Cache(record) => {
                let arbiters = self.arbiters.iter_mut();
                arbiters.for_each(|arbiter| arbiter.cache(&record));
                self.cached.push(record);
            }
            AssociationEffect::Refuse(device, peer, fault) => {
                self.refused.push((device, peer, fault));
            }
        }
    }

    fn read(&mut self, identity: &ClaimedIdentity) -> Option<KnownCredentials> {
        self.look_ups += 1;
        let mut profiles = self.profiles.values();
        let profile = profiles.find(|profile| match identity {
            ClaimedIdentity::Psk(name) => **name == *profile.endpoint.as_str(),
            ClaimedIdentity::PublicKey(key) => profile.credentials.has_public_key(key),
            ClaimedIdentity::Certificate { endpoint, .. } => *endpoint == profile.endpoint,
        })?;
        Some(KnownCredentials {
            profile: Box::new(profile.clone()),
            authorities: self.authorities.clone(),
            psks: identity
                .psks_of(profile)
                .into_iter()
                .map(|psk| OpenPsk::new(psk, psk.key.as_bytes().to_vec().into()))
                .collect(),
        })
    }

    fn answer(&mut self, at: usize, claim: ClaimId, found: Option<KnownCredentials>) {
        self.call(at, |it, m, out| {
            it.handle_credentials(m, claim, Ok(found), out)
        });
    }

    fn take_received(&mut self) -> Vec<(DeviceKey, Peer, Vec<u8>)> {
        std::mem::take(&mut self.received)
    }

    /// The outcomes of handshakes, each once.
    fn outcomes(&self) -> Vec<HandshakeOutcome> {
        let counts = self.arbiters[0].counts().handshakes;
        let had = HandshakeOutcome::ALL.into_iter().zip(counts);
        had.filter(|(_, count)| *count > 0)
            .map(|(it, _)| it)
            .collect()
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(next(&mut self.seed)) % bound
    }

    fn address(&mut self) -> SocketAddr {
        let port = 1_024 + 256 * self.below(200) + self.below(256);
        SocketAddr::from(([203, 0, 113, 9], u16::try_from(port).unwrap()))
    }
}

impl Client {
    fn new(identity: &'static str, key: u8, address: &str) -> Self {
        let mut config = Config::new([0; 32]);
        config.accepts_clients = false;
        Self {
            endpoint: Endpoint::new(Arc::new(config)),
            association: None,
            address: address.parse().unwrap(),
            identity,
            key,
            signing_key: None,
            outgoing: VecDeque::new(),
            sent: Vec::new(),
            heard: Vec::new(),
            resumption: None,
            accepts_tickets: true,
        }
    }

    fn with_public_key(name: &'static str) -> Self {
        let key = SigningKey::from_scalar(&[5; 32]).unwrap();
        Self {
            signing_key: Some(Arc::new(key)),
            ..Self::new(name, KEY, HOME)
        }
    }

    fn connect(&mut self, fixture: &mut Fixture, ticket: Option<dtls::Resumption>) {
        if let Some(earlier) = self.association.take() {
            self.endpoint.forget(earlier);
        }
        let mut client = match &self.signing_key {
            Some(key) => {
                let server_key = secrets().server_key;
                ClientConfig::with_signing_key(Arc::clone(key), server_key.public_key())
            }
            None => ClientConfig::with_psk(self.identity.as_bytes(), &[self.key; 16]),
        };
        client.resumption = ticket;
        client.accepts_tickets = self.accepts_tickets;
        let mut out = Effects::new();
        let mut entropy = |bytes: &mut [u8]| bytes.fill_with(|| next(&mut fixture.seed));
        let mut moment = dtls::Moment {
            now: dtls::Timestamp::from_ms(1),
            entropy: &mut entropy,
        };
        let begun = self
            .endpoint
            .connect(&mut moment, server(), client, &mut out);
        self.association = begun.ok();
        self.take(&out);
    }

    fn hears(&mut self, fixture: &mut Fixture, record: &[u8]) {
        let mut out = Effects::new();
        let mut entropy = |bytes: &mut [u8]| bytes.fill_with(|| next(&mut fixture.seed));
        let mut moment = dtls::Moment {
            now: dtls::Timestamp::from_ms(1),
            entropy: &mut entropy,
        };
        self.endpoint
            .handle_datagram(&mut moment, server(), record, &mut out);
        self.take(&out);
    }

    fn take(&mut self, effects: &Effects) {
        for effect in effects.iter() {
            match effect {
                Effect::Send { datagram, .. } => {
                    self.outgoing.push_back((self.address, datagram.to_vec()));
                    self.sent.push((self.address, datagram.to_vec()));
                }
                Effect::Established { resumption, .. } => self.resumption = resumption.cloned(),
                Effect::Received { content, .. } => self.heard.push(content.to_vec()),
                Effect::Closed {
                    reason: CloseReason::Alert(_),
                    ..
                } => (self.association, self.resumption) = (None, None),
                Effect::Failed { .. } | Effect::Closed { .. } => self.association = None,
                Effect::LookUpPsk { .. }
                | Effect::AdmitPublicKey { .. }
                | Effect::AdmitCertificate { .. }
                | Effect::Moved { .. } => {}
            }
        }
    }

    fn sent_lately(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.sent)
    }
}

/// The records of a datagram that are not encrypted, and the rest: those of epoch 0 come first.
fn split_sealed(datagram: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while let Some([_, _, _, 0, 0, _, _, _, _, _, _, length @ ..]) = datagram.get(at..at + 13) {
        let length: [u8; 2] = length.try_into().unwrap();
        at += 13 + usize::from(u16::from_be_bytes(length));
    }
    datagram.split_at(at)
}

/// A request for a block of an image.
fn download() -> Vec<u8> {
    let (campaign, key) = (CampaignId::from_bytes([7; 16]), ImageKey::of(&[1; 16], 3));
    let path = format!("firmware/{campaign}/{key}");
    let (kind, token) = (MessageKind::Confirmable, Token::from_u64(1));
    Message::request(kind, Code::GET, MessageId(7), token)
        .with_uri_path(path.split('/'))
        .encode()
}

fn arbiters(count: usize) -> Vec<Associations> {
    let shard_map = ShardMap::among(count);
    let secrets = secrets();
    let limits = AssociationLimits::default();
    let ids = shard_map.arbiters();
    ids.map(|here| Associations::new(here, shard_map, limits, &secrets, &[]))
        .collect()
}

fn secrets() -> AssociationSecrets {
    AssociationSecrets {
        cookies: [1; 32],
        tickets: [2; 32],
        server_key: ServerKey::from_scalar(&[3; 32]).unwrap(),
    }
}

/// The bytes of a key stand for its sealed form.
fn sealed(key: u8) -> Sealed {
    Sealed::from_bytes([key; 16].into())
}

fn server() -> SocketAddr {
    "192.0.2.200:5684".parse().unwrap()
}

/// The next byte of a sequence (xorshift64).
fn next(seed: &mut u64) -> u8 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    seed.to_be_bytes()[3]
}
