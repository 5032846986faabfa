//! Does the admission of datagrams hold each rate, and leave others alone?

use std::net::SocketAddr;

use super::*;

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

const RATES: RateLimits = RateLimits {
    stranger: 10,
    device: 20,
    customer: 0,
};

#[test]
fn an_address_of_strangers_is_not_read_beyond_its_rate_and_others_are() {
    let mut admission = admission(RATES);
    let stranger = peer("10.0.0.1:40000");
    for _ in 0..10 * STRANGER_RATE_BURST_S {
        assert_eq!(admission.admit(START, stranger, nobody), Ok(()));
        admission.note_stranger(START, stranger);
    }
    let other_port = peer("10.0.0.1:40001");
    assert_eq!(
        admission.admit(START, other_port, nobody),
        Err(RateScope::Stranger)
    );
    assert_eq!(
        admission.admit(START, peer("10.0.0.2:40000"), nobody),
        Ok(())
    );
    assert_eq!(
        admission.admit(START.plus_ms(200), stranger, nobody),
        Ok(())
    );
}

#[test]
fn a_device_is_read_whatever_strangers_at_its_address_send() {
    let mut admission = admission(RATES);
    let device = peer("10.0.0.1:5683");
    use_up(&mut admission, device);
    assert_eq!(
        admission.admit(START, device, nobody),
        Err(RateScope::Stranger)
    );
    assert_eq!(admission.admit(START, device, || true), Ok(()));
    let address = DeviceMark::Address(device.ip());
    admission.known_devices.add(address);
    assert_eq!(admission.admit(START, device, nobody), Ok(()));
}

#[test]
fn the_addresses_of_an_ipv6_host_are_one() {
    let mut admission = admission(RATES);
    use_up(&mut admission, peer("[2001:db8::1]:5683"));
    let same = admission.admit(START, peer("[2001:db8::ffff:2]:5683"), nobody);
    assert_eq!(same, Err(RateScope::Stranger));
    assert_eq!(
        admission.admit(START, peer("[2001:db8:0:1::1]:5683"), nobody),
        Ok(())
    );
}

#[test]
fn no_look_up_begins_for_strangers_and_none_is_answered_beyond_the_rate_of_all() {
    let mut admission = admission(RATES);
    let stranger = peer("10.1.0.1:5683");
    for _ in 0..10 * STRANGERS_RATE_FACTOR {
        assert_eq!(
            admission.admit_handling(StrangerHandling::LookUp, START, stranger, nobody),
            Ok(())
        );
        assert_eq!(
            admission.admit_handling(StrangerHandling::Answer, START, stranger, nobody),
            Ok(())
        );
    }
    let over = Err(RateScope::Strangers);
    assert_eq!(
        admission.admit_handling(StrangerHandling::LookUp, START, stranger, nobody),
        over
    );
    assert_eq!(
        admission.admit_handling(StrangerHandling::LookUp, START, stranger, || true),
        Ok(())
    );
    assert_eq!(
        admission.admit_handling(StrangerHandling::Answer, START, stranger, nobody),
        over
    );
    assert_eq!(
        admission.admit_handling(StrangerHandling::Answer, START, stranger, || true),
        Ok(())
    );
    let later = START.plus_ms(100);
    assert_eq!(
        admission.admit_handling(StrangerHandling::LookUp, later, stranger, nobody),
        Ok(())
    );
    assert_eq!(
        admission.admit_handling(StrangerHandling::Answer, later, stranger, nobody),
        Ok(())
    );
    let address = DeviceMark::Address(stranger.ip());
    admission.known_devices.add(address);
    assert_eq!(
        admission.admit_handling(StrangerHandling::LookUp, START, stranger, nobody),
        Ok(())
    );
}

#[test]
fn one_device_is_not_read_beyond_its_rate() {
    let mut admission = admission(RATES);
    let (device, other) = (peer("10.0.0.1:5683"), peer("10.0.0.1:5684"));
    let read = (0..1_000).filter(|_| admission.admit(START, device, || true).is_ok());
    assert_eq!(read.count() as i64, 20 * DEVICE_RATE_BURST_S);
    assert_eq!(
        admission.admit(START, device, || true),
        Err(RateScope::Device)
    );
    assert_eq!(admission.admit(START, other, || true), Ok(()));
}

#[test]
fn without_rates_everything_is_read() {
    let mut admission = admission(RateLimits::NONE);
    let stranger = peer("10.0.0.1:5683");
    for _ in 0..100_000 {
        admission.note_stranger(START, stranger);
    }
    assert_eq!(admission.admit(START, stranger, nobody), Ok(()));
    assert_eq!(
        admission.admit_handling(StrangerHandling::LookUp, START, stranger, nobody),
        Ok(())
    );
}

fn use_up(admission: &mut Admission, peer: Peer) {
    for _ in 0..10 * STRANGER_RATE_BURST_S {
        admission.note_stranger(START, peer);
    }
}

/// Without devices.
fn admission(rates: RateLimits) -> Admission {
    let known_devices = KnownDevices::default();
    known_devices.complete();
    Admission::within(rates, Arc::new(known_devices))
}

fn nobody() -> bool {
    false
}

fn peer(address: &str) -> Peer {
    let address: SocketAddr = address.parse().unwrap();
    Peer::plain(address)
}
