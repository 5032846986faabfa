//! The simulated devices, each with its current address. A device that speaks LwM2M and plain CoAP
//! has a socket for each, the second as another member.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use dtls::ConnectionIdOffer;
use engine::credentials::{Credential, DeviceCredentials, Psk};
use engine::ids::{CustomerId, DeviceId, Endpoint, Iccid};
use engine::moment::Timestamp;
use engine::peer::Peer;
use engine::profile::{Profile, SecurityRequirement};
use engine::sealed::Sealed;
use engine::tags::Tags;
use harness::device::SimulatedDevice;
use harness::device::configuration::{
    Bootstrapping, CompositeRead, Configuration, Notify, Reachability, Retry,
};
use harness::device::plain::PlainPath;
use harness::device::resource::{Resource, firmware, firmware_by_push};
use harness::rng::Rng;
use protocol::coap::block::BlockSize;
use protocol::coap::code::Code;
use protocol::coap::content::ContentFormat;
use protocol::coap::token::Token;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Sample;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

use crate::secured::{ClientRole, FormerKey, SecuredClient};
use crate::settings::{Kinds, Shared, WorldSettings, pick};

/// How many ports the roaming devices share: few, so that one device takes over the port of
/// another.
const SHARED_PORTS: u32 = 12;

/// How many ports of a NAT the devices with DTLS share.
const NAT_PORTS: u32 = 3;

/// The two devices with one address, in a world where two devices share an address.
pub(crate) const SHARING: (usize, usize) = (2, 4);

/// The port at which devices of LwM2M receive plain requests.
pub(crate) const COAP_PORT: u16 = 5_683;

/// The resources of plain devices.
pub(crate) const PLAIN_PATHS: [&str; 2] = ["/sensors/temperature", "/log"];

/// The block sizes that devices choose from.
const BLOCKS: [BlockSize; 3] = [BlockSize::MIN, BlockSize::MAX, BlockSize::MAX];

/// The formats that devices have besides text and TLV.
const SPOKEN: [&[ContentFormat]; 4] = [
    &[],
    &[ContentFormat::SENML_CBOR],
    &[ContentFormat::SENML_JSON],
    &[ContentFormat::SENML_CBOR, ContentFormat::LWM2M_CBOR],
];

/// The objects that devices offer besides the common ones; the last one is unknown to the service.
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

/// All devices, followed by the second sockets of those that have one.
pub(crate) struct Fleet {
    members: Vec<SimulatedEndpoint>,
    who_by_address: HashMap<Peer, usize>,
}

/// One device, or the second socket of one.
pub(crate) struct SimulatedEndpoint {
    /// The device it belongs to.
    pub(crate) of: usize,
    pub(crate) speaks: DeviceProtocols,
    pub(crate) machine: SimulatedDevice,
    pub(crate) address: Peer,
    /// Its DTLS, if it speaks DTLS.
    pub(crate) secured: Option<SecuredClient>,
    /// The key that its customer set, as far as the device knows.
    pub(crate) set_key: Box<[u8]>,
    /// A newer one that it was not given yet.
    pub(crate) next_key: Option<Box<[u8]>>,
    /// What it used before.
    pub(crate) former_keys: Vec<FormerKey>,
    /// Keys that were valid and are not any more, which others have.
    pub(crate) ended_keys: Vec<FormerKey>,
    /// Somebody who has tried one of them.
    pub(crate) impostor: Option<SecuredClient>,
    /// Its DTLS for downloads, while it has a session for them.
    pub(crate) downloads: Option<SecuredClient>,
    /// The tokens of its requests for images.
    pub(crate) downloading: HashSet<Token>,
    /// How often it rebooted and lost its state.
    pub(crate) boot: u32,
    /// When it is woken next.
    pub(crate) armed_at_ms: Option<i64>,
    /// The samples to be stored of its last Send.
    pub(crate) sends: Vec<Sample>,
    /// The data it posted last.
    pub(crate) posts: Option<Vec<u8>>,
    /// How many of its operations the judge has seen.
    pub(crate) performed_seen: u64,
    /// How many of the plain requests it performed the judge has seen.
    pub(crate) plain_seen: u64,
}

impl Fleet {
    pub(crate) fn new(settings: &WorldSettings, rng: &mut Rng) -> Self {
        let mut members: Vec<SimulatedEndpoint> = Vec::new();
        for who in 0..settings.devices {
            let speaks = DeviceProtocols::of(who, settings.kinds);
            let configuration = match speaks {
                DeviceProtocols::Lwm2m | DeviceProtocols::Both => configuration(who, settings, rng),
                DeviceProtocols::Plain => plain(who, settings, rng),
            };
            let address = socket(ip_of(who, settings), port(5_001 + who as u32));
            let address = match is_secured(who, settings.kinds) {
                true => address.of_device(profile(who, settings).key()),
                false => address,
            };
            members.push(SimulatedEndpoint::new(
                who,
                speaks,
                configuration,
                address,
                rng,
            ));
        }
        for who in 0..settings.devices {
            if DeviceProtocols::of(who, settings.kinds) == DeviceProtocols::Both {
                let address = socket(ip_of(who, settings), COAP_PORT);
                let configuration = plain(who, settings, rng);
                let member = SimulatedEndpoint::new(
                    who,
                    DeviceProtocols::Plain,
                    configuration,
                    address,
                    rng,
                );
                members.push(member);
            }
        }
        let addresses = members.iter().map(|member| member.address);
        Self {
            who_by_address: addresses.zip(0..).collect(),
            members,
        }
    }

    /// Moves a device to another port of its own, or to one that devices share.
    pub(crate) fn roam(&mut self, who: usize, rng: &mut Rng) {
        if self.members[who].secured.is_some() {
            return self.rebind(who, rng);
        }
        let member = &mut self.members[who];
        let to = if has_own_ip(member.of, member.speaks) {
            Peer::plain(SocketAddr::new(
                member.address.ip(),
                port(7_000 + rng.below(1_000)),
            ))
        } else {
            let ip = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
            Peer::plain(SocketAddr::new(ip, port(6_000 + rng.below(SHARED_PORTS))))
        };
        if !self.who_by_address.contains_key(&to) {
            self.who_by_address.remove(&member.address);
            self.who_by_address.insert(to, who);
            member.address = to;
        }
    }

    /// A NAT gives a device with DTLS another port, which another one may have had until now.
    fn rebind(&mut self, who: usize, rng: &mut Rng) {
        let ip = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
        let to = SocketAddr::new(ip, port(6_000 + rng.below(NAT_PORTS)));
        if self.secured_at(to).is_none() {
            self.members[who].address.address = to;
        }
    }

    /// The client of DTLS that has an address now.
    pub(crate) fn secured_at(&self, address: SocketAddr) -> Option<(usize, ClientRole)> {
        let roles = [
            ClientRole::Device,
            ClientRole::Downloads,
            ClientRole::Impostor,
        ];
        let mut all = (0..self.members.len()).flat_map(|who| roles.map(|role| (who, role)));
        all.find(|(who, role)| {
            let member = &self.members[*who];
            member.client(*role).is_some() && self.address_of((*who, *role)) == address
        })
    }

    /// Where a client of DTLS is. That of a download has a port of its own.
    pub(crate) fn address_of(&self, (who, role): (usize, ClientRole)) -> SocketAddr {
        match role {
            ClientRole::Device => self.members[who].address.address,
            ClientRole::Downloads => client_address(4, who),
            ClientRole::Impostor => client_address(3, who),
        }
    }

    /// Moves a device with an address of its own to another one, and returns it.
    pub(crate) fn readdress(&mut self, who: usize, rng: &mut Rng) -> Option<IpAddr> {
        let member = &self.members[who];
        if !has_own_ip(who, member.speaks) || member.secured.is_some() {
            return None;
        }
        let net = u8::try_from(20 + rng.below(200)).expect("less than 256");
        let [high, low] = last_of(who);
        let ip = IpAddr::V4(Ipv4Addr::new(10, net, high, low));
        self.move_to(who, ip);
        Some(ip)
    }

    /// Moves all sockets of a device to another address.
    pub(crate) fn move_to(&mut self, who: usize, ip: IpAddr) {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if member.of == who {
                let to = socket(ip, member.address.address.port());
                self.who_by_address.remove(&member.address);
                self.who_by_address.insert(to, place);
                member.address = to;
            }
        }
    }

    /// The member through which a device speaks plain CoAP, if it does.
    pub(crate) fn plain_socket_of(&self, who: usize) -> Option<usize> {
        let is_it = |member: &SimulatedEndpoint| {
            member.of == who && member.speaks == DeviceProtocols::Plain
        };
        self.members.iter().position(is_it)
    }

    /// The member at an address, whatever the port.
    pub(crate) fn who_has(&self, ip: IpAddr) -> Option<usize> {
        let has_it = |member: &SimulatedEndpoint| member.address.ip() == ip;
        self.members.iter().position(has_it)
    }

    /// How many members there are.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// The member that is at a peer now.
    pub(crate) fn who_is_at(&self, address: Peer) -> Option<usize> {
        self.who_by_address.get(&address).copied()
    }

    pub(crate) fn member(&self, who: usize) -> &SimulatedEndpoint {
        &self.members[who]
    }

    pub(crate) fn member_mut(&mut self, who: usize) -> &mut SimulatedEndpoint {
        &mut self.members[who]
    }
}

/// The protocols of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DeviceProtocols {
    Lwm2m,
    /// CoAP without LwM2M, and bare UDP.
    Plain,
    /// All of them, with a second socket for plain CoAP.
    Both,
}

impl DeviceProtocols {
    pub(crate) fn of(who: usize, kinds: Kinds) -> Self {
        match (kinds, who % 5) {
            (Kinds::One | Kinds::Secured, _) | (Kinds::Many, 0 | 3) => Self::Lwm2m,
            (Kinds::Many, 1) => Self::Both,
            (Kinds::Many, _) => Self::Plain,
        }
    }
}

impl SimulatedEndpoint {
    fn new(
        of: usize,
        speaks: DeviceProtocols,
        configuration: Configuration,
        address: Peer,
        rng: &mut Rng,
    ) -> Self {
        Self {
            of,
            speaks,
            machine: SimulatedDevice::new(configuration, rng.number()),
            secured: address.association.map(|_| client(of)),
            set_key: key_of(of).into(),
            next_key: None,
            former_keys: Vec::new(),
            ended_keys: Vec::new(),
            impostor: None,
            downloads: None,
            downloading: HashSet::new(),
            address,
            boot: 0,
            armed_at_ms: None,
            sends: Vec::new(),
            posts: None,
            performed_seen: 0,
            plain_seen: 0,
        }
    }
}

impl SimulatedEndpoint {
    pub(crate) fn client(&self, role: ClientRole) -> Option<&SecuredClient> {
        match role {
            ClientRole::Device => self.secured.as_ref(),
            ClientRole::Downloads => self.downloads.as_ref(),
            ClientRole::Impostor => self.impostor.as_ref(),
        }
    }

    pub(crate) fn client_mut(&mut self, role: ClientRole) -> Option<&mut SecuredClient> {
        match role {
            ClientRole::Device => self.secured.as_mut(),
            ClientRole::Downloads => self.downloads.as_mut(),
            ClientRole::Impostor => self.impostor.as_mut(),
        }
    }

    /// The device uses a key from now on, for its next sessions.
    pub(crate) fn use_key(&mut self, key: &[u8]) {
        let former = self.secured.as_mut().and_then(|client| client.use_key(key));
        if let Some(former) = former {
            self.former_keys.push(former);
            self.downloads = None;
        }
    }
}

/// The profiles that the customer gave the devices.
pub(crate) fn profiles(settings: &WorldSettings) -> Vec<Profile> {
    let profile = |who| profile(who, settings);
    (0..settings.devices).map(profile).collect()
}

fn profile(who: usize, settings: &WorldSettings) -> Profile {
    let speaks = DeviceProtocols::of(who, settings.kinds);
    let is_secured = is_secured(who, settings.kinds);
    Profile {
        customer: CustomerId::parse("acme").unwrap(),
        device: DeviceId::parse(&format!("89{who}")).unwrap(),
        number: who as u64,
        iccid: Iccid::parse(&format!("89{who}")).unwrap(),
        imsi: None,
        msisdn: None,
        ip: (has_own_ip(who, speaks) && !is_secured).then(|| ip_of(who, settings)),
        endpoint: Endpoint::parse(&format!("device-{who}")).unwrap(),
        name: None,
        credentials: match is_secured {
            true => credentials(who),
            false => DeviceCredentials::default(),
        },
        security: SecurityRequirement::Any,
        created_at: Timestamp::default(),
        tags: Tags::default(),
        wake_up: None,
        // Longer and shorter than lifetimes.
        offline_after_s: NonZeroU32::new([0, 600, 90_000][who % 3]),
    }
}

fn has_own_ip(who: usize, speaks: DeviceProtocols) -> bool {
    match speaks {
        DeviceProtocols::Lwm2m => who % 3 == 2,
        DeviceProtocols::Plain | DeviceProtocols::Both => true,
    }
}

/// Whether a device speaks over DTLS.
pub(crate) fn is_secured(who: usize, kinds: Kinds) -> bool {
    match kinds {
        Kinds::One => false,
        Kinds::Secured => true,
        Kinds::Many => who % 5 == 3,
    }
}

fn client_address(host: u8, who: usize) -> SocketAddr {
    SocketAddr::new([10, 9, 0, host].into(), port(6_000 + who as u32))
}

/// The first pre-shared key of a device.
fn key_of(who: usize) -> [u8; 16] {
    (0x0123_4567_89ab_cdef_u128 + who as u128).to_be_bytes()
}

fn identity_of(who: usize) -> String {
    format!("device-{who}")
}

fn credentials(who: usize) -> DeviceCredentials {
    let psk = Psk {
        identity: identity_of(who).into(),
        // The simulation has no master key.
        key: Sealed::from_bytes(key_of(who).into()),
    };
    DeviceCredentials {
        psk: Some(Credential::replacing(None, psk, Timestamp::default())),
        ..DeviceCredentials::default()
    }
}

/// The DTLS of a device; some have no Connection ID.
fn client(who: usize) -> SecuredClient {
    let connection_id = match who % 8 {
        0 => ConnectionIdOffer::None,
        _ => ConnectionIdOffer::Empty,
    };
    SecuredClient::new(&identity_of(who), &key_of(who), connection_id)
}

/// The initial address of a device.
fn ip_of(who: usize, settings: &WorldSettings) -> IpAddr {
    let shares = settings.shared == Shared::Yes && who == SHARING.1;
    let who = if shares { SHARING.0 } else { who };
    let [high, low] = last_of(who);
    IpAddr::V4(Ipv4Addr::new(10, 0, high, low))
}

fn last_of(who: usize) -> [u8; 2] {
    let place = u16::try_from(who + 1).expect("a world has no more devices than a network");
    place.to_be_bytes()
}

fn socket(ip: IpAddr, port: u16) -> Peer {
    Peer::plain(SocketAddr::new(ip, port))
}

fn port(number: u32) -> u16 {
    u16::try_from(number).expect("a port has 16 bits")
}

/// A device, or the second socket of one, that speaks plain CoAP only.
fn plain(who: usize, settings: &WorldSettings, rng: &mut Rng) -> Configuration {
    let long = "a long line of a log that takes more than one small block".repeat(3);
    let paths = vec![
        PlainPath::holding(PLAIN_PATHS[0], "21.5").in_format(ContentFormat::TEXT),
        PlainPath::holding(PLAIN_PATHS[1], long),
    ];
    Configuration {
        transmission: settings.rules.transmission,
        block: pick(rng, BLOCKS),
        ..Configuration::plain(format!("device-{who}"), paths)
    }
}

fn configuration(who: usize, settings: &WorldSettings, rng: &mut Rng) -> Configuration {
    let (shortest_s, longest_s) = settings.lifetime_s;
    let awake_window_ms = u32::try_from(settings.rules.limits.awake_window_ms).unwrap_or(u32::MAX);
    let reachability = match rng.hits(settings.queue_mode_percent) {
        true => Reachability::Queue { awake_window_ms },
        false => Reachability::Always,
    };
    let plain = Configuration::new(format!("device-{who}"));
    let mut kind = match settings.kinds {
        Kinds::One | Kinds::Secured => plain,
        Kinds::Many => of_some_kind(plain, rng),
    };
    if rng.hits(settings.bootstrap_percent) {
        kind.bootstrap = Some(bootstrapping(settings, rng));
    }
    if rng.hits(settings.firmware_percent) {
        kind.resources.extend(match who % 3 {
            2 => firmware_by_push(0, 1),
            _ => firmware(0, 1),
        });
    }
    Configuration {
        lifetime_s: shortest_s + rng.below(longest_s - shortest_s + 1),
        version: pick(
            rng,
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
        transmission: settings.rules.transmission,
        retry: Retry {
            first_ms: 2_000,
            most_ms: 60_000,
        },
        ..kind
    }
}

/// How a device asks for its bootstrap. One that refuses requests does so now and then.
fn bootstrapping(settings: &WorldSettings, rng: &mut Rng) -> Bootstrapping {
    match settings.kinds {
        Kinds::One | Kinds::Secured => Bootstrapping {
            hold_off_ms: 0,
            preferred: None,
            refused_percent: 0,
        },
        Kinds::Many => Bootstrapping {
            hold_off_ms: pick(rng, [0, 1_000, 10_000]),
            preferred: pick(rng, [None, Some(ContentFormat::SENML_CBOR)]),
            refused_percent: pick(rng, [0, 0, 10]),
        },
    }
}

/// A device that offers more or less than others, and has or refuses other formats.
fn of_some_kind(plain: Configuration, rng: &mut Rng) -> Configuration {
    let mut formats = plain.formats.clone();
    formats.extend(pick(rng, SPOKEN));
    let mut announced = formats.clone();
    // Some devices announce formats that they refuse.
    if rng.below(3) == 0 {
        announced.extend(pick(rng, SPOKEN));
    }
    let mut resources = plain.resources;
    for path in pick(rng, OFFERED) {
        resources.push(Resource::holding(*path, Value::Float(20.5)));
    }
    Configuration {
        formats,
        announced,
        block: pick(rng, BLOCKS),
        composite: pick(
            rng,
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
