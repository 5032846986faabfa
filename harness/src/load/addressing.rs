//! Which name and address does device number n have? A name from a pattern, and an address counted
//! from the first of a network.

use std::net::Ipv4Addr;
use std::str::FromStr;

use thiserror::Error;

use super::arrivals::ArrivalShare;

/// A network whose addresses all belong to this machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Network {
    first: u32,
    prefix: u8,
}

/// The pattern of endpoint names: text around one number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EndpointPattern {
    before: String,
    width: usize,
    after: String,
}

/// The text is no network of addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Error)]
#[error("must be the first address of a network and its prefix, like 127.64.0.0/10")]
pub struct NoNetwork;

/// The text is no pattern with a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Error)]
#[error("must hold one {{}} or {{:0N}} where the number stands, like meter-{{:07}}")]
pub struct NoPattern;

/// The maximum width of the number: LwM2M does not limit names, but servers do.
const WIDTH_MAX: usize = 64;

impl Network {
    /// The number of devices that can have an address of their own.
    pub fn size(&self) -> u64 {
        1 << (32 - self.prefix)
    }

    /// The source address of a device; numbers are below the size.
    pub fn address(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.wrapping_add(number))
    }

    /// The number of the device with this address.
    pub fn number(&self, address: Ipv4Addr) -> Option<u32> {
        let number = address.to_bits().checked_sub(self.first)?;
        (u64::from(number) < self.size()).then_some(number)
    }
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, prefix) = text.split_once('/').ok_or(NoNetwork)?;
        let address: Ipv4Addr = address.parse().map_err(|_| NoNetwork)?;
        let prefix: u8 = prefix.parse().map_err(|_| NoNetwork)?;
        // A network larger than a /1 cannot belong to this machine.
        if !(1..=32).contains(&prefix) {
            return Err(NoNetwork);
        }
        let first = address.to_bits();
        let network = Self { first, prefix };
        let is_first = u64::from(first) % network.size() == 0;
        is_first.then_some(network).ok_or(NoNetwork)
    }
}

impl EndpointPattern {
    /// The endpoint name of a device.
    pub fn name(&self, number: u32) -> String {
        let Self {
            before,
            width,
            after,
        } = self;
        format!("{before}{number:0width$}{after}")
    }

    /// The number of the device with this endpoint name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(self.before.as_str())?;
        let number = digits.strip_suffix(self.after.as_str())?.parse().ok()?;
        (self.name(number) == name).then_some(number)
    }
}

impl FromStr for EndpointPattern {
    type Err = NoPattern;

    fn from_str(text: &str) -> Result<Self, NoPattern> {
        let (before, rest) = text.split_once('{').ok_or(NoPattern)?;
        let (number, after) = rest.split_once('}').ok_or(NoPattern)?;
        let width = match number.strip_prefix(":0") {
            None if number.is_empty() => 0,
            None => return Err(NoPattern),
            Some(width) => width.parse().map_err(|_| NoPattern)?,
        };
        let is_one = !before.contains('}') && !after.contains(['{', '}']);
        if !is_one || width > WIDTH_MAX {
            return Err(NoPattern);
        }
        Ok(Self {
            before: before.to_owned(),
            width,
            after: after.to_owned(),
        })
    }
}

/// The devices of a worker: this many from a number on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DeviceRange {
    /// The number of the first.
    pub first: u32,
    /// Their number.
    pub count: u32,
}

impl DeviceRange {
    /// The devices of one worker's share of all devices.
    pub fn of_share(count: u32, share: ArrivalShare) -> Self {
        let begin = |index: u32| {
            let at = u64::from(count) * u64::from(index) / u64::from(share.of.max(1));
            u32::try_from(at).unwrap_or(count)
        };
        let first = begin(share.index);
        Self {
            first,
            count: begin(share.index + 1) - first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_addresses_of_a_network_in_order() {
        let network: Network = "127.64.0.0/10".parse().unwrap();
        assert_eq!(network.size(), 4_194_304);
        for (number, address) in [
            (0, [127, 64, 0, 0]),
            (256, [127, 64, 1, 0]),
            (4_194_303, [127, 127, 255, 255]),
        ] {
            let address = Ipv4Addr::from(address);
            assert_eq!(network.address(number), address);
            assert_eq!(network.number(address), Some(number));
        }
        for stranger in [[127, 63, 255, 255], [127, 128, 0, 0]] {
            assert_eq!(network.number(stranger.into()), None);
        }
    }

    #[test]
    fn a_network_must_begin_with_its_first_address() {
        let bad = [
            "127.64.0.1/10",
            "127.64.0.0",
            "127.64.0.0/33",
            "0.0.0.0/0",
            "::1/128",
            "",
        ];
        for text in bad {
            assert_eq!(text.parse::<Network>(), Err(NoNetwork), "{text}");
        }
        let one: Network = "10.0.0.7/32".parse().unwrap();
        assert_eq!(one.size(), 1);
    }

    #[test]
    fn a_pattern_gives_every_device_a_name() {
        for (pattern, name) in [
            ("{:019}", "0000000000000000042"),
            ("{}", "42"),
            ("urn:imei:{:05}-x", "urn:imei:00042-x"),
            ("{:01}", "42"),
        ] {
            let pattern: EndpointPattern = pattern.parse().unwrap();
            assert_eq!(pattern.name(42), name);
            assert_eq!(pattern.number(name), Some(42));
            for stranger in ["", "meter", "+42", &format!("{name}0x")] {
                assert_eq!(pattern.number(stranger), None, "{stranger}");
            }
        }
        for text in [
            "meter", "{", "{}{}", "{:5}", "{:0x}", "}{}", "{:0999}", "{{}}",
        ] {
            assert_eq!(text.parse::<EndpointPattern>(), Err(NoPattern), "{text}");
        }
    }

    #[test]
    fn every_device_has_one_worker() {
        for (count, of) in [(10, 3), (1, 2), (1_000_000, 7), (5, 5)] {
            let parts =
                (0..of).map(|index| DeviceRange::of_share(count, ArrivalShare { index, of }));
            let mut next = 0;
            for DeviceRange { first, count } in parts {
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, count);
        }
    }
}
