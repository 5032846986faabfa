//! Which devices does the demo run, and what do they report?

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::task::Poll;

use harness::device::SimulatedDevice;
use harness::device::event::DeviceEvent;
use harness::socket::{self, DeviceLink, DeviceStopped, PacketLoss, RunningDevice};
use harness::{ContentFormat, Measured, MessageKind, Sample, Value};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::role::{DeviceRole, LATITUDE, LONGITUDE, METER_SLEEPS_LATER_MS, TEMPERATURE, warmth};

/// When the tracker was at each reported position before it sends, the earliest first.
const TRACK_MS: [i64; 2] = [-120_000, -60_000];

/// After the last step, the sensor sends this often
const SENSOR_SENDS_EVERY_S: u64 = 45;
/// these bytes.
const ALL_IS_WELL: &[u8] = b"dry";

/// A device and its address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct DeviceSpec {
    pub(super) role: DeviceRole,
    /// The source address, if it is known before the device sends.
    pub(super) ip: Option<IpAddr>,
    local: SocketAddr,
}

/// The running devices.
pub(super) struct DemoDevices {
    members: Vec<RunningDemoDevice>,
}

struct RunningDemoDevice {
    role: DeviceRole,
    device: RunningDevice,
    events: Receiver<DeviceEvent>,
}

/// A device that stopped by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the device {} has stopped", .0.id())]
pub(super) struct DemoDeviceStopped(DeviceRole);

/// The addresses of the service for devices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ServerAddresses {
    /// For devices that speak CoAP or LwM2M.
    pub(super) coap: SocketAddr,
    /// For devices that send bare datagrams.
    pub(super) udp: SocketAddr,
}

/// The address of every device: one of its own if the system has that many. A device that does not
/// register is identified only by its address, and is left out without one.
pub(super) fn parts(servers: ServerAddresses) -> Vec<DeviceSpec> {
    let numbered = (1..).zip(DeviceRole::ALL);
    let parts = numbered.map(|(number, role)| DeviceSpec::near(servers.coap, role, number));
    let parts: Vec<_> = parts.collect();
    let is_alone =
        |part: &DeviceSpec| parts.iter().filter(|other| other.ip == part.ip).count() == 1;
    let is_known = |part: &DeviceSpec| {
        let reaches_both = servers.udp.is_ipv4() == part.local.is_ipv4();
        part.role.registers() || (part.ip.is_some() && is_alone(part) && reaches_both)
    };
    parts.iter().copied().filter(is_known).collect()
}

impl DeviceSpec {
    fn near(server: SocketAddr, role: DeviceRole, number: u8) -> Self {
        let own = IpAddr::V4(Ipv4Addr::new(127, 0, 1, number));
        let can_bind = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
        let ip = match server.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => Some(own).filter(can_bind).or(Some(ip.into())),
            ip if ip.is_loopback() => Some(ip),
            // For a distant server, the system chooses the source address.
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

impl DemoDevices {
    /// Starts every device.
    pub(super) async fn enter(
        parts: Vec<DeviceSpec>,
        servers: ServerAddresses,
    ) -> io::Result<Self> {
        let mut members = Vec::new();
        for DeviceSpec { role, local, .. } in parts {
            let seed = getrandom::u64().map_err(io::Error::other)?;
            let link = DeviceLink {
                local,
                server: servers.coap,
                bare: Some(servers.udp),
                loss: PacketLoss::default(),
                seed,
            };
            let (device, events) = socket::run(role.configuration(), link).await?;
            members.push(RunningDemoDevice {
                role,
                device,
                events,
            });
        }
        Ok(Self { members })
    }

    /// Waits for the next event of a device.
    pub(super) async fn next(&mut self) -> Result<(DeviceRole, DeviceEvent), DemoDeviceStopped> {
        poll_fn(|context| {
            for member in &mut self.members {
                if let Poll::Ready(next) = member.events.poll_recv(context) {
                    let role = member.role;
                    return Poll::Ready(
                        next.map(|event| (role, event))
                            .ok_or(DemoDeviceStopped(role)),
                    );
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next event of a device that was received already, if there is one.
    pub(super) fn try_next(
        &mut self,
    ) -> Result<Option<(DeviceRole, DeviceEvent)>, DemoDeviceStopped> {
        for RunningDemoDevice { role, events, .. } in &mut self.members {
            match events.try_recv() {
                Ok(event) => return Ok(Some((*role, event))),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(DemoDeviceStopped(*role)),
            }
        }
        Ok(None)
    }

    /// The address of a device, if the device runs.
    pub(super) fn address(&self, role: DeviceRole) -> Option<SocketAddr> {
        let member = self.member(role).ok()?;
        Some(member.device.address())
    }

    /// Whether every device that registers is registered.
    pub(super) async fn is_registered(&self) -> Result<bool, DemoDeviceStopped> {
        for member in self.members.iter().filter(|member| member.role.registers()) {
            if !member.with(|device| device.location().is_some()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a device sleeps.
    pub(super) async fn is_asleep(&self, role: DeviceRole) -> Result<bool, DemoDeviceStopped> {
        self.member(role)?.with(|device| device.is_asleep()).await
    }

    /// Makes the meter sleep longer after it wakes next.
    pub(super) async fn calm_down(&self) -> Result<(), DemoDeviceStopped> {
        let longer = |device: &mut SimulatedDevice| device.update_every(METER_SLEEPS_LATER_MS);
        self.member(DeviceRole::Meter)?.with(longer).await
    }

    /// Raises the temperature in the lamp, and returns the new one.
    pub(super) async fn warm_up(&self, phase: u64) -> Result<f64, DemoDeviceStopped> {
        let warmer = warmth(phase);
        let warm = move |device: &mut SimulatedDevice| {
            device.set(TEMPERATURE, Value::Float(warmer));
        };
        self.member(DeviceRole::Lamp)?.with(warm).await?;
        Ok(warmer)
    }

    /// Makes the tracker send its positions, and returns their number; None while another exchange
    /// is in progress.
    pub(super) async fn send_track(&self) -> Result<Option<usize>, DemoDeviceStopped> {
        let tracker = self.member(DeviceRole::Tracker)?;
        let track = tracker.with(track).await?;
        let sent = tracker.device.send(ContentFormat::SENML_CBOR, track).await;
        let sent = sent.map_err(|DeviceStopped| DemoDeviceStopped(DeviceRole::Tracker))?;
        Ok(sent.ok().map(|()| TRACK_MS.len()))
    }

    /// Makes the sensor send a datagram; None if it cannot.
    pub(super) async fn throw(&self, bytes: &[u8]) -> Result<Option<()>, DemoDeviceStopped> {
        let sensor = self.member(DeviceRole::Sensor)?;
        let thrown = sensor.device.throw(bytes.to_vec()).await;
        let thrown = thrown.map_err(|DeviceStopped| DemoDeviceStopped(DeviceRole::Sensor))?;
        Ok(thrown.ok())
    }

    /// Makes the sensor post data under a topic; None while another exchange is in progress.
    pub(super) async fn post(
        &self,
        topic: &str,
        data: &[u8],
    ) -> Result<Option<()>, DemoDeviceStopped> {
        let sensor = self.member(DeviceRole::Sensor)?;
        let posted = sensor
            .device
            .tell(MessageKind::Confirmable, topic, data.to_vec());
        let posted = posted
            .await
            .map_err(|DeviceStopped| DemoDeviceStopped(DeviceRole::Sensor))?;
        Ok(posted.ok())
    }

    /// Simulates one second, with this number, around the devices.
    pub(super) async fn live(&self, second: u64) -> Result<(), DemoDeviceStopped> {
        for member in &self.members {
            let role = member.role;
            member.with(move |device| role.live(device, second)).await?;
        }
        let is_time = second % SENSOR_SENDS_EVERY_S == SENSOR_SENDS_EVERY_S - 1;
        if is_time && self.address(DeviceRole::Sensor).is_some() {
            self.throw(ALL_IS_WELL).await?;
        }
        Ok(())
    }

    fn member(&self, role: DeviceRole) -> Result<&RunningDemoDevice, DemoDeviceStopped> {
        let mut members = self.members.iter();
        members
            .find(|member| member.role == role)
            .ok_or(DemoDeviceStopped(role))
    }
}

impl RunningDemoDevice {
    async fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut SimulatedDevice) -> T + Send + 'static,
    ) -> Result<T, DemoDeviceStopped> {
        self.device
            .with(look)
            .await
            .map_err(|DeviceStopped| DemoDeviceStopped(self.role))
    }
}

/// The position of the tracker at each reported time: it moves between them.
fn track(tracker: &mut SimulatedDevice) -> Vec<Sample> {
    let mut track = Vec::new();
    for measured in TRACK_MS {
        DeviceRole::Tracker.live(tracker, 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_a_service_on_loopback_have_addresses() {
        let places = parts(at("127.0.0.1:5683", "127.0.0.1:4445"));
        assert_eq!(places.len(), DeviceRole::ALL.len());
        for part in places {
            assert!(part.ip.unwrap().is_loopback());
            assert_eq!(Some(part.local.ip()), part.ip);
        }
    }

    #[test]
    fn the_system_chooses_the_address_of_devices_of_a_distant_service() {
        for part in parts(at("192.0.2.7:5683", "192.0.2.7:4445")) {
            assert_eq!((part.ip, part.local), (None, "0.0.0.0:0".parse().unwrap()));
        }
        for part in parts(at("[2001:db8::7]:5683", "[2001:db8::7]:4445")) {
            assert_eq!((part.ip, part.local), (None, "[::]:0".parse().unwrap()));
        }
    }

    #[test]
    fn a_device_that_does_not_register_is_left_out_without_its_own_address() {
        for (servers, is_there) in [
            (at("127.0.0.1:5683", "127.0.0.1:4445"), true),
            (at("127.0.0.1:5683", "[::1]:4445"), false),
            (at("[::1]:5683", "[::1]:4445"), false),
            (at("192.0.2.7:5683", "192.0.2.7:4445"), false),
        ] {
            let roles: Vec<_> = parts(servers).iter().map(|part| part.role).collect();
            assert_eq!(roles.contains(&DeviceRole::Sensor), is_there, "{servers:?}");
            assert!(roles.contains(&DeviceRole::Tracker));
        }
    }

    fn at(coap: &str, udp: &str) -> ServerAddresses {
        ServerAddresses {
            coap: coap.parse().unwrap(),
            udp: udp.parse().unwrap(),
        }
    }
}
