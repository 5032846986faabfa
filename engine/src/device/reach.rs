//! Where is the device, and where does what it is asked go? What its customer says goes before what
//! was heard: a device that has an address of its own is nowhere else.

use std::net::{IpAddr, SocketAddr};

use crate::action::Request;
use crate::device::Device;
use crate::device::snapshot::Presence;
use crate::moment::Timestamp;
use crate::peer::Peer;

impl Device {
    /// Where requests of this device come from: where it is registered, unless its customer gave it
    /// another address since. Somebody else may have the old one by now.
    pub fn found_at(&self) -> Option<Peer> {
        self.bound_peer().filter(|peer| self.may_speak(*peer))
    }

    /// Whether the peer is the device, which is registered.
    pub(super) fn is_registered_at(&self, peer: Peer, now: Timestamp) -> bool {
        let is_registered = self.presence(now) != Presence::Unregistered;
        is_registered && self.found_at() == Some(peer)
    }

    /// Whether data from a peer is the device's: it comes from the device's address, or from where
    /// the device is registered.
    pub(super) fn is_home(&self, peer: Peer) -> bool {
        self.found_at() == Some(peer) || self.own_address() == Some(peer.ip())
    }

    /// Whether the device may be at a peer.
    pub(super) fn may_be_at(&self, peer: Peer) -> bool {
        self.own_address().is_none_or(|own| own == peer.ip())
    }

    /// The address the device is at: its own, or else that of its registration.
    fn address(&self) -> Option<IpAddr> {
        let registered_at = || self.bound_peer().map(|peer| peer.ip());
        self.own_address().or_else(registered_at)
    }

    fn own_address(&self) -> Option<IpAddr> {
        self.identity.ip().map(|ip| ip.to_canonical())
    }

    /// Whether the device can be asked now where it is registered.
    pub(super) fn is_there(&self, now: Timestamp) -> bool {
        self.found_at().is_some() && self.presence(now) == Presence::Awake
    }

    /// Where a request goes; none while nobody knows.
    pub(super) fn peer_for(&self, request: &Request) -> Option<Peer> {
        let at = |port| Some(SocketAddr::new(self.address()?, port));
        match request {
            Request::Udp(request) => at(request.port.get()).map(Peer::bare),
            Request::Coap(request) => at(request.port.get()).map(Peer::plain),
            Request::Lwm2m(_) => self.found_at(),
        }
    }

    /// Whether a request could leave now: there is a peer for it, and the device listens as far as
    /// anyone can tell. Of a device without registration nobody can.
    pub(super) fn can_take(&self, request: &Request, now: Timestamp) -> bool {
        let listens = match (self.presence(now), request) {
            (Presence::Awake, _) => true,
            (Presence::Asleep, _) | (Presence::Unregistered, Request::Lwm2m(_)) => false,
            (Presence::Unregistered, Request::Udp(_) | Request::Coap(_)) => true,
        };
        listens && self.peer_for(request).is_some()
    }

    /// Whether nobody knows where to send a request.
    pub(super) fn is_out_of_reach(&self, request: &Request, now: Timestamp) -> bool {
        match request {
            Request::Udp(_) | Request::Coap(_) => self.address().is_none(),
            Request::Lwm2m(_) => self.presence(now) == Presence::Unregistered,
        }
    }
}
