//! Which devices have an address?

use std::net::{IpAddr, Ipv4Addr};

use engine::change::Change;
use engine::dispatch::DevicesAtAddress;
use engine::profile::Profile;

use super::samples::{acme, batch, customer, device, forgotten, known};
use super::{TestBed, commit, put, wait};
use crate::Store;

const SHARED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

pub(super) fn are_distinguished_from_shared_ones(ground: &TestBed<'_>) {
    let store = ground.open();
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::Nobody);
    // The customers do not matter: a datagram does not name its customer.
    let globex = customer("globex").id;
    let mut sharing = [device(&acme(), 1), device(&globex, 2), device(&acme(), 3)];
    sharing.sort_by_key(Profile::key);
    for (meter, count) in sharing.iter().zip(1..) {
        assert_eq!(commit(&*store, known(meter)), Ok(()));
        assert_eq!(at(&*store, SHARED), behind(&sharing[..count]));
        assert_eq!(at(&*store, OTHER), DevicesAtAddress::Nobody);
    }
    // One is removed, one moves: the remaining device has the address alone.
    assert_eq!(commit(&*store, forgotten(&sharing[0])), Ok(()));
    assert_eq!(at(&*store, SHARED), behind(&sharing[1..]));
    let moved = with(Some(OTHER), &sharing[1]);
    replace(&*store, &[(&sharing[1], &moved)]);
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(sharing[2].key()));
    assert_eq!(at(&*store, OTHER), DevicesAtAddress::One(moved.key()));
    drop(store);
    let store = ground.open();
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(sharing[2].key()));
    // Whoever removes a device need not know its current address.
    assert_eq!(commit(&*store, forgotten(&sharing[1])), Ok(()));
    assert_eq!(at(&*store, OTHER), DevicesAtAddress::Nobody);
    assert_eq!(commit(&*store, forgotten(&sharing[2])), Ok(()));
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::Nobody);
}

pub(super) fn follow_their_devices(ground: &TestBed<'_>) {
    let store = ground.open();
    let bare = with(None, &device(&acme(), 1));
    assert_eq!(commit(&*store, known(&bare)), Ok(()));
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::Nobody);
    let addressed = with(Some(SHARED), &bare);
    replace(&*store, &[(&bare, &addressed)]);
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(bare.key()));
    // A new name does not change the address.
    let renamed = Profile {
        name: Some("in the attic".into()),
        ..addressed.clone()
    };
    replace(&*store, &[(&addressed, &renamed)]);
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(bare.key()));
    // Two devices swap their addresses in one batch.
    let second = with(Some(OTHER), &device(&acme(), 2));
    assert_eq!(commit(&*store, known(&second)), Ok(()));
    let traded = [with(Some(OTHER), &renamed), with(Some(SHARED), &second)];
    replace(&*store, &[(&renamed, &traded[0]), (&second, &traded[1])]);
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(second.key()));
    assert_eq!(at(&*store, OTHER), DevicesAtAddress::One(bare.key()));
    // One device is added, moved and removed in one batch.
    let third = device(&acme(), 3);
    let change = |was: Option<&Profile>, is: &Profile| Change::PutDevice {
        was: was.cloned().map(Box::new),
        profile: Box::new(is.clone()),
    };
    let brief = vec![
        change(None, &third),
        change(Some(&third), &with(Some(OTHER), &third)),
        Change::RemoveDevice(third.key()),
    ];
    put(&*store, brief);
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(second.key()));
    assert_eq!(at(&*store, OTHER), DevicesAtAddress::One(bare.key()));
    replace(&*store, &[(&traded[0], &bare)]);
    assert_eq!(at(&*store, OTHER), DevicesAtAddress::Nobody);
}

pub(super) fn are_one_however_they_are_written(ground: &TestBed<'_>) {
    let store = ground.open();
    let mapped: IpAddr = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().into();
    let apart = ["10.0.1.1", "::10.0.0.1", "2001:db8::1", "2001:db8::1:0"]
        .map(|text| text.parse::<IpAddr>().expect("an address"));
    let one = with(Some(mapped), &device(&acme(), 1));
    assert_eq!(commit(&*store, known(&one)), Ok(()));
    for written in [SHARED, mapped] {
        assert_eq!(at(&*store, written), DevicesAtAddress::One(one.key()));
    }
    let rewritten = with(Some(SHARED), &one);
    replace(&*store, &[(&one, &rewritten)]);
    for written in [SHARED, mapped] {
        assert_eq!(at(&*store, written), DevicesAtAddress::One(one.key()));
    }
    for (ip, number) in apart.into_iter().zip(2..) {
        assert_eq!(at(&*store, ip), DevicesAtAddress::Nobody, "{ip}");
        let meter = with(Some(ip), &device(&acme(), number));
        assert_eq!(commit(&*store, known(&meter)), Ok(()));
        assert_eq!(at(&*store, ip), DevicesAtAddress::One(meter.key()), "{ip}");
    }
    assert_eq!(at(&*store, SHARED), DevicesAtAddress::One(one.key()));
}

/// The owners of an address that these devices have, by key.
pub(super) fn behind(sharing: &[Profile]) -> DevicesAtAddress {
    match sharing {
        [] => DevicesAtAddress::Nobody,
        [one] => DevicesAtAddress::One(one.key()),
        [first, ..] => DevicesAtAddress::Several(first.key()),
    }
}

fn at(store: &dyn Store, ip: IpAddr) -> DevicesAtAddress {
    wait(store.devices_at_address(ip)).expect("an answer")
}

fn with(ip: Option<IpAddr>, meter: &Profile) -> Profile {
    Profile {
        ip,
        ..meter.clone()
    }
}

fn replace(store: &dyn Store, changes: &[(&Profile, &Profile)]) {
    let change = |(was, is): &(&Profile, &Profile)| Change::PutDevice {
        was: Some(Box::new((*was).clone())),
        profile: Box::new((*is).clone()),
    };
    let changes = changes.iter().map(change).collect();
    assert_eq!(commit(store, batch(changes)), Ok(()));
}
