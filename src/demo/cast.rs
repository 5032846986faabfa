//! Who are the devices of the demo, where are they, and what do they tell?

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::task::Poll;

use harness::device::SimulatedDevice;
use harness::device::configuration::{Configuration, Reachability};
use harness::device::event::Event;
use harness::device::resource::{self, Answer, Resource};
use harness::socket::{self, Link, Loss, RunningDevice, Stopped};
use harness::{ContentFormat, Measured, Path, Sample, Value};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

/// How bright the lamp is, in percent: Light Control, Dimmer.
pub(super) const BRIGHTNESS: Path = Path::resource(3311, 0, 5851);
/// How warm it is inside the lamp: Temperature, Sensor Value.
pub(super) const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
/// How much water has gone through the meter: Water meter, Cumulated water volume.
pub(super) const VOLUME: Path = Path::resource(3424, 0, 1);
/// Where the tracker is: Location, Latitude.
pub(super) const LATITUDE: Path = Path::resource(6, 0, 0);

const LONGITUDE: Path = Path::resource(6, 0, 1);
const LIGHT_IS_ON: Path = Path::resource(3311, 0, 5850);
const MODEL: Path = Path::resource(3, 0, 1);

/// The meter wakes soon in the story, which nobody wants to wait for,
const METER_SLEEPS_FIRST_MS: u32 = 6_000;
/// and later often enough for whoever tries it by hand, and seldom enough to be read.
const METER_SLEEPS_LATER_MS: u32 = 30_000;
const TRACKER_SLEEPS_MS: u32 = 180_000;
const AWAKE_WINDOW_MS: u32 = 1_200;

/// What it is like inside the lamp by turns, in degrees Celsius,
const WARMTH: [f64; 6] = [41.5, 42.0, 42.6, 43.1, 42.4, 41.8];
/// and how long a turn is: often enough for whoever looks, and seldom enough to be read.
const WARMTH_LASTS_S: u64 = 20;

/// The formats the devices speak: those everybody has, and one for several values at once.
const FORMATS: [ContentFormat; 4] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
];

/// How long before it speaks the tracker took each place it tells, the earliest first.
const TRACK_MS: [i64; 2] = [-120_000, -60_000];

/// The meter has to measure first, which makes an attempt long enough to be seen.
const MEASURING_MS: u32 = 400;

/// One device of the demo.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Role {
    /// Listens always.
    Lamp,
    /// Sleeps half a minute at a time.
    Meter,
    /// Sleeps for minutes.
    Tracker,
}

/// A device and where it will be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Part {
    pub(super) role: Role,
    /// The address it sends from, where it is known before it sends.
    pub(super) ip: Option<IpAddr>,
    local: SocketAddr,
}

/// The devices at work.
pub(super) struct Cast {
    members: Vec<Member>,
}

struct Member {
    role: Role,
    device: RunningDevice,
    news: Receiver<Event>,
}

/// A device that ended by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the device {} has stopped", .0.id())]
pub(super) struct Gone(Role);

impl Role {
    /// Everyone.
    pub(super) const ALL: [Self; 3] = [Self::Lamp, Self::Meter, Self::Tracker];

    /// Its device id and endpoint name.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Lamp => "street-lamp",
            Self::Meter => "water-meter",
            Self::Tracker => "tracker",
        }
    }

    /// What its owner calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lamp => "Street lamp, Harbour Road 7",
            Self::Meter => "Water meter, Mill Lane 12",
            Self::Tracker => "Tracker, parcel 4711",
        }
    }

    fn configuration(self) -> Configuration {
        let sleepy = Reachability::Queue {
            awake_window_ms: AWAKE_WINDOW_MS,
        };
        let (reachability, update_interval_ms) = match self {
            Self::Lamp => (Reachability::Always, None),
            Self::Meter => (sleepy, Some(METER_SLEEPS_FIRST_MS)),
            Self::Tracker => (sleepy, Some(TRACKER_SLEEPS_MS)),
        };
        Configuration {
            reachability,
            update_interval_ms,
            resources: self.resources(),
            ..Configuration::new(self.id()).speaking(&FORMATS)
        }
    }

    fn resources(self) -> Vec<Resource> {
        let own = match self {
            Self::Lamp => vec![
                Resource::holding(LIGHT_IS_ON, Value::Boolean(true)),
                Resource::holding(BRIGHTNESS, Value::Integer(60)),
                Resource::holding(TEMPERATURE, Value::Float(warmth(0))),
            ],
            Self::Meter => {
                let measuring = Answer::SeparateConfirmable {
                    after_ms: MEASURING_MS,
                };
                vec![Resource::holding(VOLUME, Value::Float(1834.207)).answering(measuring)]
            }
            Self::Tracker => vec![
                Resource::holding(LATITUDE, Value::Float(53.5459)),
                Resource::holding(LONGITUDE, Value::Float(9.9664)),
            ],
        };
        let model = Resource::holding(MODEL, Value::String(self.name().to_owned()));
        let account_and_device = |resource: &Resource| matches!(resource.path.object_id(), 1 | 3);
        let basics = resource::defaults().into_iter().filter(account_and_device);
        basics.chain([model]).chain(own).collect()
    }

    /// Lets the world around the device go on for a second, the given one.
    fn live(self, device: &mut SimulatedDevice, second: u64) {
        match self {
            Self::Lamp => {
                device.set(TEMPERATURE, Value::Float(warmth(second / WARMTH_LASTS_S)));
            }
            Self::Meter => grow(device, VOLUME, 0.003),
            Self::Tracker => {
                grow(device, LATITUDE, 0.0001);
                grow(device, LONGITUDE, 0.0002);
            }
        }
    }
}

/// Gives every device its place: an address of its own where the system has that many.
pub(super) fn parts(server: SocketAddr) -> Vec<Part> {
    let numbered = (1..).zip(Role::ALL);
    numbered
        .map(|(number, role)| Part::near(server, role, number))
        .collect()
}

impl Part {
    fn near(server: SocketAddr, role: Role, number: u8) -> Self {
        let own = IpAddr::V4(Ipv4Addr::new(127, 0, 1, number));
        let can_bind = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
        let ip = match server.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => Some(own).filter(can_bind).or(Some(ip.into())),
            ip if ip.is_loopback() => Some(ip),
            // The system decides which of its addresses it sends to a distant server from.
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        };
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self {
            role,
            ip,
            local: SocketAddr::new(ip.unwrap_or(any), 0),
        }
    }
}

impl Cast {
    /// Switches every device on.
    pub(super) async fn enter(parts: Vec<Part>, server: SocketAddr) -> io::Result<Self> {
        let mut members = Vec::new();
        for Part { role, local, .. } in parts {
            let seed = getrandom::u64().map_err(io::Error::other)?;
            let link = Link {
                local,
                server,
                bare: None,
                loss: Loss::default(),
                seed,
            };
            let (device, news) = socket::run(role.configuration(), link).await?;
            members.push(Member { role, device, news });
        }
        Ok(Self { members })
    }

    /// Waits for what a device tells next.
    pub(super) async fn next(&mut self) -> Result<(Role, Event), Gone> {
        poll_fn(|context| {
            for member in &mut self.members {
                if let Poll::Ready(told) = member.news.poll_recv(context) {
                    let role = member.role;
                    return Poll::Ready(told.map(|event| (role, event)).ok_or(Gone(role)));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Takes what a device has told already, if any has.
    pub(super) fn told(&mut self) -> Result<Option<(Role, Event)>, Gone> {
        for Member { role, news, .. } in &mut self.members {
            match news.try_recv() {
                Ok(event) => return Ok(Some((*role, event))),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(Gone(*role)),
            }
        }
        Ok(None)
    }

    /// Tells whether every device knows itself registered.
    pub(super) async fn is_registered(&self) -> Result<bool, Gone> {
        for member in &self.members {
            if !member.with(|device| device.location().is_some()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Tells whether a device sleeps.
    pub(super) async fn is_asleep(&self, role: Role) -> Result<bool, Gone> {
        self.member(role)?.with(|device| device.is_asleep()).await
    }

    /// Has the meter sleep longer from its next waking on.
    pub(super) async fn calm_down(&self) -> Result<(), Gone> {
        let longer = |device: &mut SimulatedDevice| device.update_every(METER_SLEEPS_LATER_MS);
        self.member(Role::Meter)?.with(longer).await
    }

    /// Has it get warmer in the lamp, and returns how warm.
    pub(super) async fn warm_up(&self) -> Result<f64, Gone> {
        let warmer = warmth(1);
        let warm = move |device: &mut SimulatedDevice| {
            device.set(TEMPERATURE, Value::Float(warmer));
        };
        self.member(Role::Lamp)?.with(warm).await?;
        Ok(warmer)
    }

    /// Has the tracker send where it is and was, and returns how many times it tells of; nothing if
    /// it has to say something else first.
    pub(super) async fn send_track(&self) -> Result<Option<usize>, Gone> {
        let tracker = self.member(Role::Tracker)?;
        let track = tracker.with(track).await?;
        let sent = tracker.device.send(ContentFormat::SENML_CBOR, track).await;
        let sent = sent.map_err(|Stopped| Gone(Role::Tracker))?;
        Ok(sent.ok().map(|()| TRACK_MS.len()))
    }

    /// Lets the world around the devices go on for a second, the given one.
    pub(super) async fn live(&self, second: u64) -> Result<(), Gone> {
        for member in &self.members {
            let role = member.role;
            member.with(move |device| role.live(device, second)).await?;
        }
        Ok(())
    }

    fn member(&self, role: Role) -> Result<&Member, Gone> {
        let mut members = self.members.iter();
        members.find(|member| member.role == role).ok_or(Gone(role))
    }
}

impl Member {
    async fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut SimulatedDevice) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        self.device
            .with(look)
            .await
            .map_err(|Stopped| Gone(self.role))
    }
}

/// Where the tracker was at each time it tells of: it moves on between them.
fn track(tracker: &mut SimulatedDevice) -> Vec<Sample> {
    let mut track = Vec::new();
    for measured in TRACK_MS {
        Role::Tracker.live(tracker, 0);
        for path in [LATITUDE, LONGITUDE] {
            track.extend(tracker.value(path).map(|value| Sample {
                path,
                value: value.clone(),
                measured: Some(Measured::Relative(measured)),
            }));
        }
    }
    track
}

fn warmth(turn: u64) -> f64 {
    let turn = usize::try_from(turn).unwrap_or_default() % WARMTH.len();
    WARMTH[turn]
}

fn grow(device: &mut SimulatedDevice, path: Path, step: f64) {
    if let Some(Value::Float(held)) = device.value(path) {
        let grown = ((held + step) * 10_000.0).round() / 10_000.0;
        device.set(path, Value::Float(grown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_a_service_on_loopback_have_addresses() {
        let places = parts("127.0.0.1:5683".parse().unwrap());
        assert_eq!(places.len(), Role::ALL.len());
        for part in places {
            assert!(part.ip.unwrap().is_loopback());
            assert_eq!(Some(part.local.ip()), part.ip);
        }
    }

    #[test]
    fn devices_of_a_distant_service_leave_their_address_to_the_system() {
        for part in parts("192.0.2.7:5683".parse().unwrap()) {
            assert_eq!((part.ip, part.local), (None, "0.0.0.0:0".parse().unwrap()));
        }
        for part in parts("[2001:db8::7]:5683".parse().unwrap()) {
            assert_eq!((part.ip, part.local), (None, "[::]:0".parse().unwrap()));
        }
    }

    #[test]
    fn what_is_measured_grows_without_noise() {
        let mut meter = SimulatedDevice::new(Role::Meter.configuration(), 1);
        for _ in 0..3 {
            Role::Meter.live(&mut meter, 0);
        }
        assert_eq!(meter.value(VOLUME), Some(&Value::Float(1834.216)));
    }

    #[test]
    fn the_lamp_gets_warmer_and_cooler_by_turns() {
        let mut lamp = SimulatedDevice::new(Role::Lamp.configuration(), 1);
        let mut warmth_after = |second| {
            Role::Lamp.live(&mut lamp, second);
            lamp.value(TEMPERATURE).cloned()
        };
        let expected = [41.5, 41.5, 42.0, 41.8, 41.5].map(|degrees| Some(Value::Float(degrees)));
        assert_eq!([0, 19, 20, 119, 120].map(&mut warmth_after), expected);
    }

    #[test]
    fn every_device_offers_what_the_story_asks_of_it() {
        for (role, path) in [
            (Role::Lamp, BRIGHTNESS),
            (Role::Lamp, TEMPERATURE),
            (Role::Meter, VOLUME),
            (Role::Tracker, LATITUDE),
        ] {
            let device = SimulatedDevice::new(role.configuration(), 1);
            assert!(device.value(path).is_some(), "{path}");
        }
    }
}
