//! Which addresses may the service call for a customer? Public ones only, unless the operator
//! allows private ones.
//!
//! The service runs inside the operator's network: a customer that could make it call addresses
//! there would reach hosts that are closed to the internet (SSRF). An address is public unless the
//! special-purpose registries of IANA (RFC 6890) list it.
//!
//! Devices are different: those of a private APN have private addresses. A request to a device goes
//! anywhere but to loopback, link-local and metadata addresses, where programs of the host listen.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses may be called.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AddressPolicy {
    /// Public ones, by HTTPS.
    #[default]
    PublicOnly,
    /// All, by HTTP too.
    PrivateAllowed,
}

/// A network: its address and the length of its prefix.
type Network<Address> = (Address, u32);

/// The IPv4 networks that are not public.
const SPECIAL_V4: [Network<Ipv4Addr>; 16] = [
    // This network, and the unspecified address (RFC 791).
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // Private use (RFC 1918).
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Carrier-grade NAT (RFC 6598); the metadata service of some clouds.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    // Loopback (RFC 1122).
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Metadata and agents of virtual machines on Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local (RFC 3927); the metadata service of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Private use (RFC 1918).
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    // Protocol assignments (RFC 6890); the metadata service of some clouds.
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation (RFC 5737).
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4, deprecated (RFC 7526).
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    // Private use (RFC 1918).
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks (RFC 2544).
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Documentation (RFC 5737).
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast (RFC 5771).
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    // Reserved (RFC 1112), and limited broadcast (RFC 919).
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The IPv4 networks that are local to the host of the service.
const LOCAL_V4: [Network<Ipv4Addr>; 6] = [
    // This network (RFC 791).
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    // The metadata service of Alibaba Cloud.
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    // Loopback (RFC 1122).
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Metadata and agents of virtual machines on Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local (RFC 3927); the metadata service of most clouds.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // The metadata service of Oracle Cloud.
    (Ipv4Addr::new(192, 0, 0, 192), 32),
];

/// The global unicast addresses of IPv6 assigned so far (RFC 4291 section 2.4).
const ASSIGNED_V6: Network<Ipv6Addr> = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The networks within it that are not public.
const SPECIAL_V6: [Network<Ipv6Addr>; 3] = [
    // Protocol assignments (RFC 2928), Teredo, benchmarks and identifiers among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation (RFC 3849, RFC 9637).
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The IPv6 networks that are local to the host of the service.
const LOCAL_V6: [Network<Ipv6Addr>; 4] = [
    // Loopback, the unspecified address, and IPv4-compatible ones (RFC 4291 section 2.5).
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96),
    // Link-local (RFC 4291 section 2.5.6).
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    // The metadata service of AWS.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
    // The metadata service of Google Cloud.
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
];

/// IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2).
const MAPPED: Network<Ipv6Addr> = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
/// IPv4 behind NAT64 (RFC 6052).
const NAT64: Network<Ipv6Addr> = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);
/// 6to4: IPv6 behind an IPv4 address (RFC 3056).
const SIX_TO_FOUR: Network<Ipv6Addr> = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);

impl AddressPolicy {
    /// Whether the address may be called.
    pub fn may_reach(self, ip: IpAddr) -> bool {
        match (self, ip) {
            (Self::PrivateAllowed, _) => true,
            (Self::PublicOnly, IpAddr::V4(ip)) => is_public_v4(ip),
            (Self::PublicOnly, IpAddr::V6(ip)) => is_public_v6(ip),
        }
    }

    /// Whether a request may go to a device at an address from which the device was not heard.
    pub fn may_reach_unheard(self, ip: IpAddr) -> bool {
        match self {
            Self::PrivateAllowed => true,
            Self::PublicOnly => !is_local(ip),
        }
    }
}

/// Whether an address is a loopback, link-local or metadata address.
fn is_local(ip: IpAddr) -> bool {
    let is_local_v4 = |ip| LOCAL_V4.iter().any(|network| is_in_v4(ip, *network));
    match ip {
        IpAddr::V4(ip) => is_local_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(embedded) => is_local_v4(embedded),
            None => LOCAL_V6.iter().any(|network| is_in(ip, *network)),
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|special| is_in_v4(ip, *special))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    match embedded_v4(ip) {
        Some(embedded) => is_public_v4(embedded),
        None => is_in(ip, ASSIGNED_V6) && !SPECIAL_V6.iter().any(|special| is_in(ip, *special)),
    }
}

/// The IPv4 address that this address embeds, where datagrams to it arrive.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [_, _, a, b, c, d, .., w, x, y, z] = ip.octets();
    if is_in(ip, SIX_TO_FOUR) {
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    let at_its_end = [MAPPED, NAT64].iter().any(|network| is_in(ip, *network));
    at_its_end.then(|| Ipv4Addr::new(w, x, y, z))
}

fn is_in_v4(ip: Ipv4Addr, (network, bits): Network<Ipv4Addr>) -> bool {
    (u32::from(ip) ^ u32::from(network)).leading_zeros() >= bits
}

fn is_in(ip: Ipv6Addr, (network, bits): Network<Ipv6Addr>) -> bool {
    (u128::from(ip) ^ u128::from(network)).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_PUBLIC: &[&str] = &[
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "2002:c0a8:1::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    const PUBLIC: &[&str] = &[
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2002:808:808::1",
        "2606:4700:4700::1111",
        "3ffe::1",
    ];

    #[test]
    fn only_public_addresses_are_called_unless_the_operator_allows_others() {
        for (addresses, is_public) in [(NOT_PUBLIC, false), (PUBLIC, true)] {
            for address in addresses {
                let ip: IpAddr = address.parse().unwrap();
                assert_eq!(
                    AddressPolicy::PublicOnly.may_reach(ip),
                    is_public,
                    "{address}"
                );
                assert!(AddressPolicy::PrivateAllowed.may_reach(ip), "{address}");
            }
        }
    }

    #[test]
    fn requests_to_devices_go_to_private_addresses_and_not_to_local_ones() {
        let local = [
            "0.1.2.3",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "192.0.0.192",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::1",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
        ];
        let others = [
            "1.1.1.1",
            "10.0.0.1",
            "100.64.0.1",
            "126.255.255.255",
            "128.0.0.0",
            "172.16.0.1",
            "192.168.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::253",
            "fec0::1",
        ];
        for (addresses, may_reach) in [(local.as_slice(), false), (others.as_slice(), true)] {
            for address in addresses {
                let ip: IpAddr = address.parse().unwrap();
                let (strict, lax) = (AddressPolicy::PublicOnly, AddressPolicy::PrivateAllowed);
                assert_eq!(strict.may_reach_unheard(ip), may_reach, "{address}");
                assert!(lax.may_reach_unheard(ip), "{address}");
            }
        }
    }
}
