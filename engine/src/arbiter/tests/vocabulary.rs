//! The vocabulary of the arbiter's tests: its inputs, and its effects line by line.

use std::sync::Arc;

use protocol::coap::code::Code;
use protocol::coap::message::{Message, MessageId, MessageKind};
use protocol::coap::token::Token;

use crate::arbiter::admission::{CustomerSlot, RateLimits};
use crate::arbiter::effect::{ArbiterEffect, LookupId, StartupProgress, StoreLookup};
use crate::arbiter::input::{
    ActorExit, Conditions, DeviceCommand, DeviceInput, PendingCommand, Received, StartupPage,
    StoreUnavailable,
};
use crate::arbiter::{Arbiter, ArbiterEffects, ArbiterLimits, SETTLED_AFTER_MS};
use crate::associations::handshake::HandshakeFault;
use crate::credentials::DeviceCredentials;
use crate::datagram::Inbound;
use crate::device::record::{DeviceRecord, RestoredDevice};
use crate::dispatch::DevicesAtAddress;
use crate::dispatch::address_queues;
use crate::dispatch::peer_table::PeerBinding;
use crate::dispatch::router::{ForwardedDatagram, RouteHint};
use crate::dispatch::shard_map::{ArbiterId, ShardMap};
use crate::ids::{CustomerId, DeviceId, DeviceKey, Endpoint, Iccid};
use crate::known_devices::KnownDevices;
use crate::location::Location;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::profile::{Profile, SecurityRequirement};
use crate::supervision::Generation;
use crate::tags::Tags;

const START: Timestamp = Timestamp::from_ms(1_700_000_000_000);

/// Small limits, so that tests are short.
pub(super) const BOUNDS: ArbiterLimits = ArbiterLimits {
    lookups_max: 2,
    inputs_max: 2,
    unfinished_bytes_max: 100,
    address_queues: address_queues::AddressQueueLimits {
        queue_max: 2,
        bytes_max: 4_096,
    },
    rates: RateLimits {
        stranger: 1,
        device: 2,
        customer: 3,
    },
};

pub(super) const METER: &str = "meter-0";

pub(super) const NAMES: [&str; 6] = [METER, "meter-1", "meter-2", "meter-3", "meter-4", "meter-5"];

/// The device of another customer than the others.
pub(super) const OF_ANOTHER: &str = "meter-5";

pub(super) const NOTHING: [&str; 0] = [];

type Machine = Arbiter<(), &'static str>;

type Out = ArbiterEffects<(), &'static str>;

/// An arbiter whose commands have a name as their reply.
pub(super) struct ArbiterFixture {
    pub(super) here: ArbiterId,
    pub(super) shard_map: ShardMap,
    pub(super) arbiter: Machine,
    pub(super) at: Conditions,
    pub(super) known_devices: Arc<KnownDevices>,
    datagrams: u64,
    /// The last look-up by name or location.
    look_up: Option<LookupId>,
    /// The last actor to spawn.
    pub(super) generation: Option<Generation>,
    /// The customer of its device.
    customer: Option<CustomerSlot>,
    /// The last datagram to forward.
    forwarded: Option<ForwardedDatagram>,
    pub(super) hint: Option<RouteHint>,
}

impl ArbiterFixture {
    /// An arbiter that had no device to restore.
    pub(super) fn new() -> Self {
        let [mut only] = Self::starting();
        only.reads_page(&[]);
        only
    }

    /// Two arbiters that had no device to restore.
    pub(super) fn two() -> [Self; 2] {
        let mut both = Self::starting();
        both.iter_mut().for_each(|it| drop(it.reads_page(&[])));
        both
    }

    /// Arbiters that restore their devices.
    pub(super) fn starting<const COUNT: usize>() -> [Self; COUNT] {
        let shard_map = ShardMap::among(COUNT);
        let mut arbiters = shard_map.arbiters();
        [(); COUNT].map(|()| {
            let mut fixture = Self::of(arbiters.next().unwrap(), shard_map);
            fixture.starts();
            fixture
        })
    }

    fn of(here: ArbiterId, shard_map: ShardMap) -> Self {
        let known_devices = Arc::default();
        Self {
            here,
            shard_map,
            arbiter: Arbiter::new(here, shard_map, BOUNDS, Arc::clone(&known_devices)),
            at: Conditions {
                now: START,
                is_store_full: false,
            },
            known_devices,
            datagrams: 0,
            look_up: None,
            generation: None,
            customer: None,
            forwarded: None,
            hint: None,
        }
    }

    /// A device is restored at a start, and its actor runs.
    pub(super) fn runs(&mut self, name: &str) -> Generation {
        self.starts();
        self.reads_page(&[name]);
        self.spawned(name);
        self.passes(SETTLED_AFTER_MS);
        self.generation.expect("its actor was spawned")
    }

    /// Devices are restored at a start, and their actors run.
    pub(super) fn runs_all(&mut self, names: &[&str]) {
        self.starts();
        self.reads_page(&[]);
        for name in names {
            self.starts();
            self.reads_page(&[name]);
            self.spawned(name);
        }
        self.passes(SETTLED_AFTER_MS);
    }

    /// The unfinished bodies of a device occupy this many bytes now.
    pub(super) fn holds(&mut self, name: &str, bytes: usize) -> Vec<String> {
        let now = self.at.now;
        self.arbiter.note_unfinished(now, key(name), bytes);
        self.passes(0)
    }

    /// A device announces that it is at the peer.
    pub(super) fn announces_peer(&mut self, name: &str) {
        let (place, mut binding) = ((Some(peer()), Some(peer())), PeerBinding::default());
        self.arbiter.rebind(key(name), place, &mut binding);
    }

    pub(super) fn receives(&mut self, message: &Message) -> Vec<String> {
        self.datagrams += 1;
        let number = self.here.datagram_number(self.datagrams);
        let received = Received::decode(number, peer(), &message.encode());
        self.take(|arbiter, at, out| arbiter.handle_datagram(at, received, out))
    }

    /// A handshake is refused to a peer that claims to be a device.
    pub(super) fn refuses_handshake(&mut self, name: &str) -> Vec<String> {
        self.datagrams += 1;
        let number = self.here.datagram_number(self.datagrams);
        let why = HandshakeFault::WrongKey;
        let refused = Received::refused_handshake(number, key(name), peer(), why);
        self.take(|arbiter, at, out| arbiter.handle_datagram(at, refused, out))
    }

    /// Handles a datagram that the other arbiter forwarded.
    pub(super) fn receives_forwarded(&mut self, other: &mut Self) -> Vec<String> {
        let forwarded = other.forwarded.take().expect("it was forwarded");
        self.take(|arbiter, at, out| arbiter.handle_forwarded(at, forwarded, out))
    }

    /// The store answers the last look-up by name or location.
    pub(super) fn finds(
        &mut self,
        found: Result<Option<DeviceKey>, StoreUnavailable>,
    ) -> Vec<String> {
        let look_up = self.look_up.expect("a look-up was sent");
        self.take(|arbiter, at, out| arbiter.handle_found(at, look_up, found, out))
    }

    pub(super) fn finds_devices(&mut self, found: DevicesAtAddress) -> Vec<String> {
        self.take(|arbiter, at, out| arbiter.handle_address(at, peer().ip(), Ok(found), out))
    }

    pub(super) fn finds_device(
        &mut self,
        found: Result<Option<RestoredDevice>, StoreUnavailable>,
    ) -> Vec<String> {
        self.take(|arbiter, at, out| arbiter.handle_restored(at.now, key(METER), found, out))
    }

    pub(super) fn restored(&mut self) -> Vec<String> {
        self.finds_device(Ok(Some(restored(METER))))
    }

    pub(super) fn spawned(&mut self, name: &str) -> Vec<String> {
        let generation = self.generation.expect("its actor is to be spawned");
        let customer = self.customer.expect("its actor is to be spawned");
        self.take(|arbiter, _, out| {
            arbiter.handle_spawned(key(name), (generation, customer), (), out);
        })
    }

    pub(super) fn ends(&mut self, generation: Generation, ending: ActorExit) -> Vec<String> {
        let report = (generation, ending);
        self.take(|arbiter, at, out| arbiter.handle_ended(at.now, key(METER), report, out))
    }

    pub(super) fn command(&mut self, reply: &'static str, command: DeviceCommand) -> Vec<String> {
        let pending = Box::new(PendingCommand { command, reply });
        self.take(|arbiter, at, out| arbiter.ask(at.now, key(METER), pending, out))
    }

    pub(super) fn starts(&mut self) -> Vec<String> {
        self.take(|arbiter, at, out| arbiter.start(at.now, out))
    }

    /// The store reads the last page of a start.
    pub(super) fn reads_page(&mut self, names: &[&str]) -> Vec<String> {
        let devices = names.iter().map(|name| (key(name), restored(name)));
        let (devices, next) = (devices.collect(), None);
        self.gets_page(Ok(StartupPage { devices, next }))
    }

    pub(super) fn gets_page(&mut self, page: Result<StartupPage, StoreUnavailable>) -> Vec<String> {
        let first = *self.shard_map.keys(self.here).start();
        self.take(|arbiter, at, out| arbiter.handle_page(at.now, first, page, out))
    }

    /// Time passes, and the arbiter does what is due.
    pub(super) fn passes(&mut self, ms: i64) -> Vec<String> {
        self.at.now = self.at.now.plus_ms(ms);
        self.take(|arbiter, at, out| arbiter.handle_timeout(at.now, out))
    }

    pub(super) fn take(
        &mut self,
        input: impl FnOnce(&mut Machine, &Conditions, &mut Out),
    ) -> Vec<String> {
        let mut out = Out::new();
        input(&mut self.arbiter, &self.at, &mut out);
        out.into_iter().map(|effect| self.line(effect)).collect()
    }

    fn line(&mut self, effect: ArbiterEffect<(), &'static str>) -> String {
        match effect {
            ArbiterEffect::Lookup(look_up) => self.look_up_line(look_up),
            ArbiterEffect::Spawn {
                key,
                generation,
                customer,
                ..
            } => {
                self.generation = Some(generation);
                self.customer = Some(customer);
                format!("spawn {}", name_of(key))
            }
            ArbiterEffect::Deliver(key, input) => {
                format!("deliver {} to {}", head(&input), name_of(key))
            }
            ArbiterEffect::Release(key, ()) => format!("release {}", name_of(key)),
            ArbiterEffect::Forward(to, forwarded) => {
                let numbers = forwarded.numbers();
                self.forwarded = Some(forwarded);
                format!("forward {numbers:?} to {}", to.index())
            }
            ArbiterEffect::SendRouteHint(hint) => {
                self.hint = Some(hint);
                let (to, home) = (hint.to.index(), hint.arbiter.index());
                format!("teach {to} that {} is at {home}", hint.peer)
            }
            ArbiterEffect::TellOfStranger(to, peer) => {
                format!("tell {} that {peer} is a stranger", to.index())
            }
            ArbiterEffect::ReadImage(request) => {
                format!("read an image for {}", request.datagram.number)
            }
            ArbiterEffect::Send(to, datagram) => {
                assert_eq!(to, peer());
                format!("send {}", Message::decode(&datagram).unwrap().code)
            }
            ArbiterEffect::SendSecured(device, _, message) => {
                let code = Message::decode(&message).unwrap().code;
                format!("send {code} to {}", name_of(device))
            }
            ArbiterEffect::Drop(number, reason) => format!("drop {number}: {reason:?}"),
            ArbiterEffect::Reply(reply, answer) => format!("reply to {reply}: {answer:?}"),
            ArbiterEffect::Failed(key, failure, verdict) => {
                format!("{} failed: {failure:?}, {verdict:?}", name_of(key))
            }
            ArbiterEffect::Log(entry, _) => format!("log {}", entry.message),
            ArbiterEffect::Progress(StartupProgress::Underway { restored, .. }) => {
                format!("restored {restored}")
            }
            ArbiterEffect::Progress(StartupProgress::Restored { restored, .. }) => {
                format!("restored all {restored}")
            }
        }
    }

    fn look_up_line(&mut self, look_up: StoreLookup) -> String {
        match look_up {
            StoreLookup::Endpoint(id, endpoint) => {
                self.look_up = Some(id);
                format!("look up the name {endpoint}")
            }
            StoreLookup::Location(id, _) => {
                self.look_up = Some(id);
                "look up a location".to_owned()
            }
            StoreLookup::Address(address) => format!("look up {address}"),
            StoreLookup::Device(key) => format!("look up {}", name_of(key)),
            StoreLookup::Page(_, max) => format!("read {max} devices"),
            StoreLookup::Parked(key) => format!("look up parked {}", name_of(key)),
        }
    }
}

fn head(input: &DeviceInput<&'static str>) -> String {
    match input {
        DeviceInput::Datagram(arrival) => match &**arrival {
            Inbound::Message(datagram) => format!("datagram {}", datagram.number),
            Inbound::Ambiguous(datagram) => format!("ambiguous datagram {}", datagram.number),
            Inbound::BootstrapOnly(datagram) => {
                format!("datagram {} with the key of bootstrap", datagram.number)
            }
            Inbound::Udp(_) | Inbound::UdpBurst(..) => "bare bytes".to_owned(),
            Inbound::RefusedHandshake(refused) => format!("refused handshake: {}", refused.why),
        },
        DeviceInput::Timeout => "a timeout".to_owned(),
        DeviceInput::DropUnfinished => "the end of its bodies".to_owned(),
        DeviceInput::Command(pending) => format!("the {} question", pending.reply),
    }
}

pub(super) fn key(name: &str) -> DeviceKey {
    profile(name).key()
}

fn name_of(device: DeviceKey) -> &'static str {
    let name = NAMES.into_iter().find(|name| key(name) == device);
    name.unwrap()
}

fn restored(name: &str) -> RestoredDevice {
    RestoredDevice {
        profile: profile(name),
        record: DeviceRecord::default(),
        pending: Vec::new(),
        recent_events: Box::default(),
    }
}

pub(in crate::arbiter) fn profile(name: &str) -> Profile {
    Profile {
        customer: CustomerId::parse(if name == OF_ANOTHER { "other" } else { "acme" }).unwrap(),
        device: DeviceId::parse(name).unwrap(),
        number: 1,
        iccid: Iccid::parse("8931").unwrap(),
        imsi: None,
        msisdn: None,
        ip: None,
        endpoint: Endpoint::parse("meter").unwrap(),
        name: None,
        credentials: DeviceCredentials::default(),
        security: SecurityRequirement::Any,
        created_at: START,
        tags: Tags::default(),
        wake_up: None,
        offline_after_s: None,
    }
}

pub(in crate::arbiter) fn peer() -> Peer {
    Peer::plain("10.0.0.1:5683".parse().unwrap())
}

pub(super) fn register() -> Message {
    request(&["rd"]).with_uri_query(["ep=meter", "lwm2m=1.1"])
}

pub(super) fn update() -> Message {
    request(&["rd", &Location::new(key(METER), 17).to_string()])
}

pub(super) fn data() -> Message {
    request(&[]).with_payload("on")
}

pub(super) fn send() -> Message {
    request(&["dp"])
}

fn request(path: &[&str]) -> Message {
    let (id, token) = (MessageId(7), Token::EMPTY);
    Message::request(MessageKind::Confirmable, Code::POST, id, token).with_uri_path(path)
}

/// An answer of a device belongs to the device at its peer.
pub(super) fn answer() -> Message {
    Message::acknowledgement(MessageId(7))
}
