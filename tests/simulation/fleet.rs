//! The simulated devices, each with the address it has at the moment.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid};
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::profile::Profile;
use harness::chance::Chance;
use harness::device::SimulatedDevice;
use harness::device::configuration::{CompositeRead, Configuration, Notify, Reachability, Retry};
use harness::device::resource::Resource;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Sample;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

use crate::nature::{Kinds, Nature, pick};

/// How many ports the roaming devices share: few, so that one takes over what another left.
const SHARED_PORTS: u32 = 12;

/// What devices speak beside text and TLV.
const SPOKEN: [&[ContentFormat]; 4] = [
    &[],
    &[ContentFormat::SENML_CBOR],
    &[ContentFormat::SENML_JSON],
    &[ContentFormat::SENML_CBOR, ContentFormat::LWM2M_CBOR],
];

/// What devices offer beside what all of them do; nobody knows the last of these objects.
const OFFERED: [&[Path]; 3] = [
    &[],
    &[Path::resource(3304, 0, 5700)],
    &[
        Path::resource(3304, 0, 5700),
        Path::resource(3304, 1, 5700),
        Path::resource(3315, 0, 5700),
        Path::resource(33_999, 0, 1),
    ],
];

/// All devices.
pub(crate) struct Fleet {
    members: Vec<Member>,
    who_by_address: HashMap<Peer, usize>,
}

/// One device.
pub(crate) struct Member {
    pub(crate) machine: SimulatedDevice,
    pub(crate) address: Peer,
    /// How often it rebooted and forgot.
    pub(crate) boot: u32,
    /// When it is woken next.
    pub(crate) armed_at_ms: Option<i64>,
    /// What is to be kept of what it sent last.
    pub(crate) sends: Vec<Sample>,
    /// How many of its deeds were seen.
    pub(crate) seen: u64,
    has_own_ip: bool,
}

impl Fleet {
    pub(crate) fn new(nature: &Nature, chance: &mut Chance) -> Self {
        let members: Vec<Member> = (0..nature.devices)
            .map(|who| Member {
                machine: SimulatedDevice::new(configuration(who, nature, chance), chance.number()),
                address: home(who),
                boot: 0,
                armed_at_ms: None,
                sends: Vec::new(),
                seen: 0,
                has_own_ip: has_own_ip(who),
            })
            .collect();
        let addresses = members.iter().map(|member| member.address);
        Self {
            who_by_address: addresses.zip(0..).collect(),
            members,
        }
    }

    /// Gives a device another address: another port of its own, or one that devices share.
    pub(crate) fn roam(&mut self, who: usize, chance: &mut Chance) {
        let member = &mut self.members[who];
        let to = if member.has_own_ip {
            Peer::plain(SocketAddr::new(
                member.address.ip(),
                port(7_000 + chance.below(1_000)),
            ))
        } else {
            let ip = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
            Peer::plain(SocketAddr::new(
                ip,
                port(6_000 + chance.below(SHARED_PORTS)),
            ))
        };
        if !self.who_by_address.contains_key(&to) {
            self.who_by_address.remove(&member.address);
            self.who_by_address.insert(to, who);
            member.address = to;
        }
    }

    /// Gives a device that has an address of its own another one, and returns it.
    pub(crate) fn readdress(&mut self, who: usize, chance: &mut Chance) -> Option<IpAddr> {
        let member = &mut self.members[who];
        if !member.has_own_ip {
            return None;
        }
        let IpAddr::V4(before) = member.address.ip() else {
            return None;
        };
        let [ten, _, zero, last] = before.octets();
        let net = u8::try_from(20 + chance.below(200)).expect("less than 256");
        let ip = IpAddr::V4(Ipv4Addr::new(ten, net, zero, last));
        let to = Peer::plain(SocketAddr::new(ip, member.address.address.port()));
        self.who_by_address.remove(&member.address);
        self.who_by_address.insert(to, who);
        member.address = to;
        Some(ip)
    }

    /// Who is at an address now.
    pub(crate) fn who_is_at(&self, address: Peer) -> Option<usize> {
        self.who_by_address.get(&address).copied()
    }

    pub(crate) fn member(&self, who: usize) -> &Member {
        &self.members[who]
    }

    pub(crate) fn member_mut(&mut self, who: usize) -> &mut Member {
        &mut self.members[who]
    }
}

/// What the customer said of the devices.
pub(crate) fn profiles(count: usize) -> Vec<Profile> {
    (0..count).map(profile).collect()
}

fn profile(who: usize) -> Profile {
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse(&format!("89{who}")).unwrap(),
        number: who as u64,
        iccid: Iccid::parse(&format!("89{who}")).unwrap(),
        imsi: None,
        msisdn: None,
        ip: has_own_ip(who).then(|| home(who).ip()),
        endpoint: Endpoint::parse(&format!("device-{who}")).unwrap(),
        name: None,
        psk: None,
        created_at: Timestamp::default(),
    }
}

fn has_own_ip(who: usize) -> bool {
    who % 3 == 2
}

fn home(who: usize) -> Peer {
    let last = u8::try_from(who + 1).expect("a world has few devices");
    let ip = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    Peer::plain(SocketAddr::new(ip, port(5_000 + u32::from(last))))
}

fn port(number: u32) -> u16 {
    u16::try_from(number).expect("a port has 16 bits")
}

fn configuration(who: usize, nature: &Nature, chance: &mut Chance) -> Configuration {
    let (shortest_s, longest_s) = nature.lifetime_s;
    let awake_window_ms = u32::try_from(nature.rules.limits.awake_window_ms).unwrap_or(u32::MAX);
    let reachability = match chance.hits(nature.queue_mode_percent) {
        true => Reachability::Queue { awake_window_ms },
        false => Reachability::Always,
    };
    let plain = Configuration::new(format!("device-{who}"));
    let kind = match nature.kinds {
        Kinds::One => plain,
        Kinds::Many => of_some_kind(plain, chance),
    };
    Configuration {
        lifetime_s: shortest_s + chance.below(longest_s - shortest_s + 1),
        version: pick(
            chance,
            [
                EnablerVersion::V1_0,
                EnablerVersion::V1_1,
                EnablerVersion::V1_2,
            ],
        ),
        reachability,
        notify: match who % 2 {
            0 => Notify::Confirmable,
            _ => Notify::NonConfirmable,
        },
        transmission: nature.rules.transmission,
        retry: Retry {
            first_ms: 2_000,
            most_ms: 60_000,
        },
        ..kind
    }
}

/// A device that offers more or less than others, and speaks or refuses other formats.
fn of_some_kind(plain: Configuration, chance: &mut Chance) -> Configuration {
    let mut formats = plain.formats.clone();
    formats.extend(pick(chance, SPOKEN));
    let mut announced = formats.clone();
    // Some announce what they refuse.
    if chance.below(3) == 0 {
        announced.extend(pick(chance, SPOKEN));
    }
    let mut resources = plain.resources;
    for path in pick(chance, OFFERED) {
        resources.push(Resource::holding(*path, Value::Float(20.5)));
    }
    Configuration {
        formats,
        announced,
        composite: pick(
            chance,
            [
                CompositeRead::Answered,
                CompositeRead::Answered,
                CompositeRead::AcknowledgedOnly,
                CompositeRead::Refused(Code::METHOD_NOT_ALLOWED),
                CompositeRead::Refused(Code::NOT_ACCEPTABLE),
                CompositeRead::Refused(Code::INTERNAL_SERVER_ERROR),
            ],
        ),
        resources,
        ..plain
    }
}
