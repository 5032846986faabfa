//! Which nodes relay datagrams to this one? A node that stands by hands over what it receives, and
//! an answer leaves through the node that received the request, so that every NAT and load balancer
//! on the way lets it pass.
//!
//! The table is the one of the process, because an answer may leave through the socket of another
//! arbiter.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{PoisonError, RwLock};

use engine::effect::{SendOutcome, SendRefusal};
use engine::peer::{LocalAddressId, Peer};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::local_addresses::{RelayId, id_at_relay};

/// Datagrams that may wait for a relay; more are lost, as any datagram may be.
const WAITING_MAX: usize = 4_096;

/// The relays that are connected.
static RELAYS: RwLock<BTreeMap<RelayId, mpsc::Sender<DepartingDatagram>>> =
    RwLock::new(BTreeMap::new());

/// A datagram that leaves through a relay.
pub(crate) struct DepartingDatagram {
    /// The peer that it is sent to.
    pub(crate) to: Peer,
    /// The address of the relaying node that it leaves from.
    pub(crate) from: IpAddr,
    /// What is in it.
    pub(crate) datagram: Vec<u8>,
}

/// A relay that is connected, until this is dropped.
pub(crate) struct ConnectedRelay {
    id: RelayId,
    /// Tells it from one with the same id that connects later.
    sender: mpsc::WeakSender<DepartingDatagram>,
    /// The address used last, with its number: most nodes have one.
    latest: Cell<Option<(IpAddr, LocalAddressId)>>,
}

impl ConnectedRelay {
    /// Connects a relay, in place of one with this id. Returns what is to leave through it.
    pub(crate) fn connect(id: RelayId) -> (Self, mpsc::Receiver<DepartingDatagram>) {
        let (sender, departing) = mpsc::channel(WAITING_MAX);
        let relay = Self {
            id,
            sender: sender.downgrade(),
            latest: Cell::new(None),
        };
        let mut relays = RELAYS.write().unwrap_or_else(PoisonError::into_inner);
        relays.insert(id, sender);
        (relay, departing)
    }

    /// The peer whose datagram the relay received at this address.
    pub(crate) fn peer(&self, peer: Peer, at: IpAddr) -> Peer {
        let latest = self.latest.get().filter(|(address, _)| *address == at);
        let id = match latest {
            Some((_, id)) => Some(id),
            None => id_at_relay(self.id, at),
        };
        self.latest.set(id.map(|id| (at, id)));
        peer.sent_to(id)
    }
}

impl Drop for ConnectedRelay {
    fn drop(&mut self) {
        let mut relays = RELAYS.write().unwrap_or_else(PoisonError::into_inner);
        let sender = self.sender.upgrade();
        let is_same = |it: &mpsc::Sender<_>| sender.is_some_and(|own| own.same_channel(it));
        if relays.get(&self.id).is_some_and(is_same) {
            relays.remove(&self.id);
        }
    }
}

/// Disconnects all relays: nothing leaves through them any more.
pub(crate) fn disconnect_all() {
    let mut relays = RELAYS.write().unwrap_or_else(PoisonError::into_inner);
    relays.clear();
}

/// Sends a datagram through a relay; none, if it is not connected.
pub(super) fn send(relay: RelayId, to: Peer, from: IpAddr, datagram: &[u8]) -> Option<SendOutcome> {
    let relays = RELAYS.read().unwrap_or_else(PoisonError::into_inner);
    match relays.get(&relay)?.try_reserve() {
        Ok(permit) => {
            permit.send(DepartingDatagram {
                to,
                from,
                datagram: datagram.to_vec(),
            });
            Some(SendOutcome::Sent)
        }
        Err(TrySendError::Full(())) => Some(SendOutcome::Refused(SendRefusal::BufferFull)),
        Err(TrySendError::Closed(())) => None,
    }
}

#[cfg(test)]
mod tests {
    use engine::ids::NodeId;

    use super::*;

    const AT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn peer() -> Peer {
        Peer::plain("10.0.0.7:5683".parse().unwrap())
    }

    #[test]
    fn a_relay_that_connects_again_takes_the_place_of_the_former_one() {
        let id = RelayId {
            node: NodeId::from_bytes([7; 16]),
            stream: 1,
        };
        assert_eq!(send(id, peer(), AT, b"early"), None);
        let (first, mut to_first) = ConnectedRelay::connect(id);
        assert_eq!(send(id, peer(), AT, b"one"), Some(SendOutcome::Sent));
        let (second, mut to_second) = ConnectedRelay::connect(id);
        drop(first);
        assert_eq!(send(id, peer(), AT, b"two"), Some(SendOutcome::Sent));
        assert_eq!(to_first.try_recv().unwrap().datagram, b"one");
        assert_eq!(to_second.try_recv().unwrap().datagram, b"two");
        assert_eq!(second.peer(peer(), AT).local, id_at_relay(id, AT));
        drop(second);
        assert_eq!(send(id, peer(), AT, b"late"), None);
    }

    #[test]
    fn a_relay_that_takes_nothing_loses_what_is_too_much() {
        let id = RelayId {
            node: NodeId::from_bytes([8; 16]),
            stream: 1,
        };
        let (_relay, departing) = ConnectedRelay::connect(id);
        for _ in 0..WAITING_MAX {
            assert_eq!(send(id, peer(), AT, b"waits"), Some(SendOutcome::Sent));
        }
        let full = Some(SendOutcome::Refused(SendRefusal::BufferFull));
        assert_eq!(send(id, peer(), AT, b"lost"), full);
        assert_eq!(departing.len(), WAITING_MAX);
    }
}
