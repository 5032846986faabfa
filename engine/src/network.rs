//! Which addresses belong to a network of a customer? Networks in CIDR notation (RFC 4632 section
//! 3.1, RFC 4291 section 2.3).

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A network: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// A text that names no network.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidNetwork {
    /// It is not an address and the length of a prefix.
    #[error("must be a network such as 10.20.0.0/16 or 2001:db8::/32")]
    NotCidr,
    /// Bits behind the prefix are set.
    #[error("has bits set behind its prefix; the network is {0}")]
    HostBits(Network),
}

impl Network {
    /// Reads a network.
    pub fn parse(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, length) = text.split_once('/').ok_or(InvalidNetwork::NotCidr)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork::NotCidr)?;
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length = length.parse().ok().filter(|_| is_number);
        let network = length.and_then(|length| Self::new(address, length));
        let network = network.ok_or(InvalidNetwork::NotCidr)?;
        match network.address == address {
            true => Ok(network),
            false => Err(InvalidNetwork::HostBits(network)),
        }
    }

    /// The network of an address with a prefix of this length, unless that is too long.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(address) => {
                let behind = u32::BITS.checked_sub(length.into())?;
                let mask = u32::MAX.checked_shl(behind).unwrap_or_default();
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let behind = u128::BITS.checked_sub(length.into())?;
                let mask = u128::MAX.checked_shl(behind).unwrap_or_default();
                IpAddr::V6((address.to_bits() & mask).into())
            }
        };
        Some(Self { address, length })
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// The length of its prefix.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether an address is in it.
    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && Self::new(address, self.length) == Some(self)
    }

    /// Whether some address is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// What counts as the address of one host: of IPv6 the network, because a host usually has a whole
/// /64 (RFC 4291 section 2.5.4).
pub fn network_of_host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        Network::parse(text).unwrap()
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_host() {
        let host = |text: &str| network_of_host(text.parse().unwrap());
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:1"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
    }

    #[test]
    fn a_network_is_written_as_it_was_read_and_other_texts_are_refused() {
        for text in [
            "10.20.0.0/16",
            "0.0.0.0/0",
            "10.0.0.1/32",
            "2001:db8::/32",
            "::/0",
        ] {
            assert_eq!(network(text).to_string(), text);
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0/8",
            "::/129",
            "x/8",
        ] {
            assert_eq!(Network::parse(text), Err(InvalidNetwork::NotCidr), "{text}");
        }
        let whole = network("10.0.0.0/8");
        assert_eq!(
            Network::parse("10.1.0.0/8"),
            Err(InvalidNetwork::HostBits(whole))
        );
    }

    #[test]
    fn a_network_contains_the_addresses_of_its_prefix() {
        for (text, inside, outside) in [
            ("10.20.0.0/16", "10.20.255.255", "10.21.0.0"),
            ("10.0.0.1/32", "10.0.0.1", "10.0.0.2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "::1", "10.0.0.1"),
        ] {
            assert!(network(text).contains(inside.parse().unwrap()), "{text}");
            assert!(!network(text).contains(outside.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn networks_overlap_if_one_contains_the_other() {
        for (one, other, overlap) in [
            ("10.0.0.0/8", "10.20.0.0/16", true),
            ("10.20.0.0/16", "10.21.0.0/16", false),
            ("0.0.0.0/0", "::/0", false),
            ("2001:db8::/32", "2001:db8::/32", true),
        ] {
            assert_eq!(network(one).overlaps(network(other)), overlap);
            assert_eq!(network(other).overlaps(network(one)), overlap);
        }
    }
}
