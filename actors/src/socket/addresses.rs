//! At which addresses does a socket receive? One that is bound to every address receives at those
//! of all interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;

use super::inbox::address_of;

/// The addresses at which a socket with this local address receives; the address itself is among
/// them.
pub fn heard_at(bound: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    let mut heard_at = vec![bound];
    if bound.ip().is_unspecified() {
        let interfaces = getifaddrs()?.filter_map(|interface| interface.address);
        let hosts = interfaces.filter_map(address_of).map(|at| at.ip());
        let hosts = hosts.map(|host: IpAddr| host.to_canonical());
        heard_at.extend(hosts.map(|host| SocketAddr::new(host, bound.port())));
    }
    Ok(heard_at)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_socket_on_one_address_receives_only_there() {
        let bound = SocketAddr::from((Ipv4Addr::LOCALHOST, 5683));
        assert_eq!(heard_at(bound).unwrap(), [bound]);
    }

    #[test]
    fn a_socket_on_every_address_of_both_families_receives_on_those_of_ipv4() {
        let heard_at = heard_at(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 5683))).unwrap();
        assert!(heard_at.contains(&SocketAddr::from((Ipv4Addr::LOCALHOST, 5683))));
    }

    #[test]
    fn a_socket_on_every_address_receives_on_those_of_the_interfaces() {
        let heard_at = heard_at(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 5683))).unwrap();
        assert!(heard_at.contains(&SocketAddr::from((Ipv4Addr::LOCALHOST, 5683))));
    }
}
