//! Where is the device, and does it listen? What its customer configured takes precedence over what
//! was received: a device that has an address of its own is nowhere else, except at an association
//! of its own.
//!
//! | question | answer |
//! |---|---|
//! | where it may register from | `admit` |
//! | where its requests are accepted from | `found_at`; plain data: `is_home` |
//! | where a request over LwM2M goes | `found_at` |
//! | where one over CoAP goes | its association, or else the port of the request at `address` |
//! | where one over UDP goes | the port of the request at `address` |
//! | where none goes | `forbidden` |

use std::net::{IpAddr, SocketAddr};

use crate::action::Request;
use crate::action::timeline::WaitReason;
use crate::device::activity::ListenWindow;
use crate::device::refusal::ForbiddenAddress;
use crate::device::registration::RegistrationState;
use crate::device::snapshot::Presence;
use crate::location::Location;
use crate::moment::Timestamp;
use crate::peer::Peer;
use crate::policy::Wanted;
use crate::rules::{EndpointTrust, Rules};

/// Why what a device sends without DTLS is refused.
pub(super) const DTLS_REQUIRED: &str =
    "it did not come over DTLS, and the device is accepted over DTLS alone (security DTLS)";

/// Where a device is, by the rules of the service.
#[derive(Clone, Copy)]
pub(super) struct Reachability<'a> {
    state: &'a RegistrationState,
    rules: &'a Rules,
}

impl<'a> Reachability<'a> {
    pub(super) fn of(state: &'a RegistrationState, rules: &'a Rules) -> Self {
        Self { state, rules }
    }

    /// Whether the device listens now.
    pub(super) fn presence(self, now: Timestamp) -> Presence {
        Presence::of(self.state.registration(), self.awake_until(), now)
    }

    /// Whether the device is taken to sleep: it is in queue mode and its awake window is over, or
    /// it has no registration and was not heard as lately.
    pub(super) fn sleeps(self, now: Timestamp) -> bool {
        match self.presence(now) {
            Presence::Awake => false,
            Presence::Asleep => true,
            Presence::Unregistered => self.awake_until() <= now,
        }
    }

    /// How long it listens if nothing happens.
    pub(super) fn listens(self) -> ListenWindow {
        match self.state.registration() {
            None => ListenWindow::Unregistered,
            Some(r) if r.binding.queue_mode() => ListenWindow::Until(self.awake_until()),
            Some(_) => ListenWindow::Always,
        }
    }

    /// The peer from which requests of this device are accepted: the one it registered from, unless
    /// its customer has changed its address since. Another device may have the old address now.
    pub(super) fn found_at(self) -> Option<Peer> {
        let bound_peer = self.state.bound_peer();
        bound_peer.filter(|peer| self.may_speak(*peer))
    }

    /// Whether the device is registered, and at this peer; if not, why.
    pub(super) fn is_registered_at(self, peer: Peer, now: Timestamp) -> Result<(), &'static str> {
        if self.lacks_dtls(peer) {
            return Err(DTLS_REQUIRED);
        }
        if self.presence(now) == Presence::Unregistered {
            return Err("the device is not registered; it has to register first");
        }
        match self.found_at() {
            Some(found_at) if found_at == peer => Ok(()),
            Some(found_at) if found_at.ip() == peer.ip() => Err(
                "the device is registered at another port; it is accepted at this one after \
                     the next update of the registration",
            ),
            Some(_) | None => Err("the device is registered at another address"),
        }
    }

    /// Whether the location is that of the registration, and the peer may act for it; if not, why.
    pub(super) fn speaks_for(self, location: Location, peer: Peer) -> Result<(), &'static str> {
        match self.state.location() {
            _ if self.lacks_dtls(peer) => Err(DTLS_REQUIRED),
            None => Err("the device is not registered; it has to register again"),
            Some(own) if own != location => {
                Err("it names another registration than the present one of the device")
            }
            Some(_) if self.is_still_at(peer) => Ok(()),
            Some(_) => self.admit(peer),
        }
    }

    /// Whether data from a peer belongs to the device: it comes from the device's address, or from
    /// where the device is registered.
    pub(super) fn is_home(self, peer: Peer) -> bool {
        self.found_at() == Some(peer) || self.identifies(peer) == Some(true)
    }

    /// Whether the device may be at a peer.
    pub(super) fn may_be_at(self, peer: Peer) -> bool {
        self.identifies(peer) != Some(false)
    }

    /// Whether a peer may register as this device: without security, a name alone proves nothing.
    pub(super) fn admit(self, peer: Peer) -> Result<(), &'static str> {
        match (self.identifies(peer), self.rules.names) {
            _ if self.lacks_dtls(peer) => Err(DTLS_REQUIRED),
            (Some(true), _) => Ok(()),
            (Some(false), _) => Err("it did not come from the IP address of the device"),
            (None, EndpointTrust::NameSuffices) => Ok(()),
            (None, EndpointTrust::AddressRequired) => {
                Err("the device has no IP address to verify the sender by; set its ip")
            }
        }
    }

    /// Whether a request can be sent now to where the device is registered.
    pub(super) fn is_reachable(self, now: Timestamp) -> bool {
        let found_at = self.found_at().filter(|peer| self.has_session(*peer));
        found_at.is_some() && self.presence(now) == Presence::Awake
    }

    /// Where a request goes; none while that is unknown.
    pub(super) fn peer_for(self, request: &Request) -> Option<Peer> {
        let at = |port| Some(SocketAddr::new(self.address()?, port));
        match request {
            Request::Udp(_) if self.state.requires_dtls() => None,
            Request::Udp(request) => at(request.port.get()).map(|at| self.path_to(Peer::bare(at))),
            Request::Coap(_) if self.state.requires_dtls() => self.associated(),
            Request::Coap(request) => {
                let plain = || at(request.port.get()).map(|at| self.path_to(Peer::plain(at)));
                self.associated().or_else(plain)
            }
            Request::Lwm2m(_) => self.found_at(),
        }
    }

    /// The peer, reached from the address that its host last sent to.
    fn path_to(self, peer: Peer) -> Peer {
        let heard_at = self.state.peer().filter(|it| it.ip() == peer.ip());
        peer.sent_to(heard_at.and_then(|it| it.local))
    }

    /// Why a request must not go where the device is, if it must not: a customer may give a device
    /// any address, also one where programs beside the service listen.
    pub(super) fn forbidden(self, request: &Request) -> Option<ForbiddenAddress> {
        if let Request::Udp(_) = request
            && self.state.requires_dtls()
        {
            return Some(ForbiddenAddress::WithoutDtls);
        }
        let to = self.peer_for(request)?.address;
        if self.rules.is_own(to) {
            return Some(ForbiddenAddress::Own(to));
        }
        let ip = to.ip();
        let is_heard = || self.state.peer().is_some_and(|peer| peer.ip() == ip);
        let may_go = self.rules.addresses.may_reach_unheard(ip) || is_heard();
        (!may_go).then_some(ForbiddenAddress::Unheard(ip))
    }

    /// Whether a request could be sent now: it has a peer, and the device listens as far as is
    /// known. For a device without registration, that is not known.
    pub(super) fn can_take(self, request: &Request, now: Timestamp) -> bool {
        let listens = match (self.presence(now), request) {
            (Presence::Awake, _) => true,
            (Presence::Asleep, _) | (Presence::Unregistered, Request::Lwm2m(_)) => false,
            (Presence::Unregistered, Request::Udp(_) | Request::Coap(_)) => true,
        };
        let peer = self.peer_for(request);
        listens && peer.is_some_and(|peer| self.has_session(peer))
    }

    /// Why the device cannot be sent a request now, as far as that is known.
    pub(super) fn obstacle(self, request: &Request, now: Timestamp) -> Option<WaitReason> {
        match (self.presence(now), request) {
            (Presence::Asleep, _) => Some(WaitReason::Asleep),
            (Presence::Unregistered, Request::Lwm2m(_)) => Some(WaitReason::Unregistered),
            (Presence::Unregistered, Request::Udp(_) | Request::Coap(_)) | (Presence::Awake, _) => {
                None
            }
        }
    }

    /// Whether there is no address to send a request to.
    pub(super) fn is_out_of_reach(self, request: &Request, now: Timestamp) -> bool {
        match request {
            Request::Coap(_) if self.associated().is_some() => false,
            Request::Coap(_) if self.state.requires_dtls() => true,
            Request::Udp(_) | Request::Coap(_) => self.address().is_none(),
            Request::Lwm2m(_) => self.presence(now) == Presence::Unregistered,
        }
    }

    /// When a device in queue mode falls asleep whose customer was told that it is awake, and wants
    /// to know.
    pub(super) fn asleep_at(self, wanted: Wanted) -> Option<Timestamp> {
        let is_due = wanted == Wanted::Yes && self.state.is_published_awake();
        is_due.then(|| self.awake_until())
    }

    fn awake_until(self) -> Timestamp {
        self.state.awake_until(self.rules.limits.awake_window_ms)
    }

    /// Whether a peer may act for the registration. A device that has an address must send from
    /// that address, even if it was assigned after the registration.
    fn may_speak(self, peer: Peer) -> bool {
        self.is_still_at(peer) || self.admit(peer).is_ok()
    }

    /// Whether a device without an address of its own was last heard at the peer.
    fn is_still_at(self, peer: Peer) -> bool {
        self.state.peer() == Some(peer) && self.identifies(peer).is_none()
    }

    /// Whether a peer has no security, and the device needs it.
    pub(super) fn lacks_dtls(self, peer: Peer) -> bool {
        self.state.requires_dtls() && peer.association.is_none()
    }

    /// Whether something that is sent to a peer can be protected, where that is needed.
    fn has_session(self, peer: Peer) -> bool {
        peer.association.is_none() || !self.state.awaits_session()
    }

    /// Whether a peer is this device's; none if the device has nothing to compare.
    fn identifies(self, peer: Peer) -> Option<bool> {
        match peer.association {
            // The arbiter routes datagrams of an association to the device whose keys it was made
            // with.
            Some(_) => Some(true),
            None if self.state.requires_dtls() => Some(false),
            None => self.own_address().map(|own| own == peer.ip()),
        }
    }

    /// The peer of the device's association, if its last message came over one.
    fn associated(self) -> Option<Peer> {
        self.state.peer().filter(|it| it.association.is_some())
    }

    /// The address of the device: its own, or else that of its registration.
    fn address(self) -> Option<IpAddr> {
        let registered_at = || self.state.bound_peer().map(|peer| peer.ip());
        self.own_address().or_else(registered_at)
    }

    fn own_address(self) -> Option<IpAddr> {
        self.state.identity().ip().map(|ip| ip.to_canonical())
    }
}
