//! Which devices does the demo have, and what do they measure?

use harness::device::SimulatedDevice;
use harness::device::configuration::{Configuration, Reachability};
use harness::device::plain::PlainPath;
use harness::device::resource::{self, AnswerMode, Resource};
use harness::{ContentFormat, Path, Value};

/// The brightness of the lamp in percent: Light Control, Dimmer.
pub(super) const BRIGHTNESS: Path = Path::resource(3311, 0, 5851);
/// The temperature in the lamp: Temperature, Sensor Value.
pub(super) const TEMPERATURE: Path = Path::resource(3303, 0, 5700);
/// The volume of water that the meter counted: Water meter, Cumulated water volume.
pub(super) const VOLUME: Path = Path::resource(3424, 0, 1);
/// The position of the tracker: Location, Latitude
pub(super) const LATITUDE: Path = Path::resource(6, 0, 0);
/// and Longitude.
pub(super) const LONGITUDE: Path = Path::resource(6, 0, 1);
/// The path of the water level, in millimetres, at which the sensor raises an alarm.
pub(super) const ALARM: &str = "/alarm";

const LIGHT_IS_ON: Path = Path::resource(3311, 0, 5850);
const MODEL: Path = Path::resource(3, 0, 1);

/// The meter wakes early in the demo, to keep it short,
const METER_SLEEPS_FIRST_MS: u32 = 6_000;
/// and later often enough for trying it by hand, and seldom enough for reading the output.
pub(super) const METER_SLEEPS_LATER_MS: u32 = 30_000;
const TRACKER_SLEEPS_MS: u32 = 180_000;
const AWAKE_WINDOW_MS: u32 = 1_200;

/// The temperature in the lamp in each phase, in degrees Celsius,
const WARMTH: [f64; 6] = [41.5, 42.0, 42.6, 43.1, 42.4, 41.8];
/// and the duration of a phase: short enough to see it, long enough for reading the output.
const WARMTH_LASTS_S: u64 = 20;

/// The formats of the devices: the usual ones, and one for several values at once.
const FORMATS: [ContentFormat; 4] = [
    ContentFormat::TEXT,
    ContentFormat::OCTET_STREAM,
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
];

/// The meter measures first, which makes an attempt long enough to be seen.
const MEASURING_MS: u32 = 400;

/// One device of the demo.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum DeviceRole {
    /// Is always reachable.
    Lamp,
    /// Sleeps half a minute at a time.
    Meter,
    /// Sleeps for minutes.
    Tracker,
    /// Does not speak LwM2M: sends bare datagrams, and speaks CoAP.
    Sensor,
}

impl DeviceRole {
    /// Every device.
    pub(super) const ALL: [Self; 4] = [Self::Lamp, Self::Meter, Self::Tracker, Self::Sensor];

    /// Whether it registers, as every LwM2M device does.
    pub(super) fn registers(self) -> bool {
        match self {
            Self::Lamp | Self::Meter | Self::Tracker => true,
            Self::Sensor => false,
        }
    }

    /// Its device id and endpoint name.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Lamp => "street-lamp",
            Self::Meter => "water-meter",
            Self::Tracker => "tracker",
            Self::Sensor => "leak-sensor",
        }
    }

    /// The telephone number of its SIM, where it takes part in SMS.
    pub(super) fn msisdn(self) -> Option<&'static str> {
        match self {
            Self::Tracker => Some("882285100004711"),
            Self::Lamp | Self::Meter | Self::Sensor => None,
        }
    }

    /// Its display name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lamp => "Street lamp, Harbour Road 7",
            Self::Meter => "Water meter, Mill Lane 12",
            Self::Tracker => "Tracker, parcel 4711",
            Self::Sensor => "Leak sensor, cellar 3",
        }
    }

    /// Its configuration.
    pub(super) fn configuration(self) -> Configuration {
        let sleepy = Reachability::Queue {
            awake_window_ms: AWAKE_WINDOW_MS,
        };
        let (reachability, update_interval_ms) = match self {
            Self::Lamp => (Reachability::Always, None),
            Self::Meter => (sleepy, Some(METER_SLEEPS_FIRST_MS)),
            Self::Tracker => (sleepy, Some(TRACKER_SLEEPS_MS)),
            Self::Sensor => {
                let alarm = PlainPath::holding(ALARM, "5").in_format(ContentFormat::TEXT);
                return Configuration::plain(self.id(), vec![alarm]);
            }
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
                let measuring = AnswerMode::SeparateConfirmable {
                    after_ms: MEASURING_MS,
                };
                vec![Resource::holding(VOLUME, Value::Float(1834.207)).answering(measuring)]
            }
            Self::Tracker => vec![
                Resource::holding(LATITUDE, Value::Float(53.5459)),
                Resource::holding(LONGITUDE, Value::Float(9.9664)),
            ],
            Self::Sensor => return Vec::new(),
        };
        let model = Resource::holding(MODEL, Value::String(self.name().to_owned()));
        let account_and_device = |resource: &Resource| matches!(resource.path.object_id(), 1 | 3);
        let basics = resource::defaults().into_iter().filter(account_and_device);
        basics.chain([model]).chain(own).collect()
    }

    /// Simulates one second, with this number, around the device.
    pub(super) fn live(self, device: &mut SimulatedDevice, second: u64) {
        match self {
            Self::Lamp => {
                device.set(TEMPERATURE, Value::Float(warmth(second / WARMTH_LASTS_S)));
            }
            Self::Meter => grow(device, VOLUME, 0.003),
            Self::Tracker => {
                grow(device, LATITUDE, 0.0001);
                grow(device, LONGITUDE, 0.0002);
            }
            Self::Sensor => {}
        }
    }
}

/// The temperature in the lamp in a phase.
pub(super) fn warmth(turn: u64) -> f64 {
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
    fn the_meter_counts_without_rounding_noise() {
        let mut meter = SimulatedDevice::new(DeviceRole::Meter.configuration(), 1);
        for _ in 0..3 {
            DeviceRole::Meter.live(&mut meter, 0);
        }
        assert_eq!(meter.value(VOLUME), Some(&Value::Float(1834.216)));
    }

    #[test]
    fn the_temperature_of_the_lamp_rises_and_falls() {
        let mut lamp = SimulatedDevice::new(DeviceRole::Lamp.configuration(), 1);
        let mut warmth_after = |second| {
            DeviceRole::Lamp.live(&mut lamp, second);
            lamp.value(TEMPERATURE).cloned()
        };
        let expected = [41.5, 41.5, 42.0, 41.8, 41.5].map(|degrees| Some(Value::Float(degrees)));
        assert_eq!([0, 19, 20, 119, 120].map(&mut warmth_after), expected);
    }

    #[test]
    fn every_device_has_the_resources_of_the_demo() {
        for (role, path) in [
            (DeviceRole::Lamp, BRIGHTNESS),
            (DeviceRole::Lamp, TEMPERATURE),
            (DeviceRole::Meter, VOLUME),
            (DeviceRole::Tracker, LATITUDE),
        ] {
            let device = SimulatedDevice::new(role.configuration(), 1);
            assert!(device.value(path).is_some(), "{path}");
        }
        let sensor = SimulatedDevice::new(DeviceRole::Sensor.configuration(), 1);
        assert_eq!(sensor.content(ALARM), Some(b"5".as_slice()));
    }
}
