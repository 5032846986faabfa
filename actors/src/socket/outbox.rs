//! Which datagrams are to be sent? They are gathered while devices have their turn, and passed to
//! the kernel in batches once every actor that was woken has run.

use std::array;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::task::{Poll, Waker};

use engine::dispatch::datagram_form::DatagramForm;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendto};
use tokio::net::UdpSocket;
use tracing::debug;

use crate::meters::ArbiterMeters;

/// Datagrams passed at once; when this many wait they are sent immediately.
const BATCH: usize = 32;

/// The datagrams that wait to be sent through a socket.
#[derive(Clone)]
pub(super) struct Outbox(Rc<RefCell<WaitingDatagrams>>);

struct WaitingDatagrams {
    socket: Rc<UdpSocket>,
    headers: MultiHeaders<SockaddrStorage>,
    peers: Vec<Option<SockaddrStorage>>,
    datagrams: Vec<Vec<u8>>,
    forms: Vec<DatagramForm>,
    waker: Option<Waker>,
    meters: Rc<ArbiterMeters>,
}

impl Outbox {
    /// The outbox of a socket, emptied by a task of its own on the arbiter that creates it.
    pub(super) fn new(socket: Rc<UdpSocket>, meters: Rc<ArbiterMeters>) -> Self {
        let outbox = Self(Rc::new(RefCell::new(WaitingDatagrams {
            socket,
            headers: MultiHeaders::preallocate(BATCH, None),
            peers: Vec::with_capacity(BATCH),
            datagrams: Vec::with_capacity(BATCH),
            forms: Vec::with_capacity(BATCH),
            waker: None,
            meters,
        })));
        actix_rt::spawn(outbox.clone().empty_for_ever());
        outbox
    }

    /// Queues a datagram until the end of the round. If the kernel does not accept it at once, it
    /// is lost, as any datagram may be, and counted.
    pub(super) fn put(&self, to: SocketAddr, datagram: Vec<u8>, form: DatagramForm) {
        let mut waiting = self.0.borrow_mut();
        waiting.peers.push(Some(SockaddrStorage::from(to)));
        waiting.datagrams.push(datagram);
        waiting.forms.push(form);
        if waiting.datagrams.len() >= BATCH {
            waiting.empty();
        } else if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// Sends everything now.
    pub(super) fn empty(&self) {
        self.0.borrow_mut().empty();
    }

    /// Runs after every task that was woken before it: by then a round of devices has sent.
    async fn empty_for_ever(self) {
        poll_fn(|cx| {
            let mut waiting = self.0.borrow_mut();
            waiting.empty();
            waiting.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl WaitingDatagrams {
    fn empty(&mut self) {
        let mut first = 0;
        while first < self.datagrams.len() {
            first += match self.send_from(first) {
                Ok(0) => self.lose(io::ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.count(first, sent);
                    sent
                }
                Err(error) => self.lose(error),
            };
        }
        self.peers.clear();
        self.datagrams.clear();
        self.forms.clear();
    }

    /// Passes a batch to the kernel, which accepts as many as it can, in order.
    fn send_from(&mut self, first: usize) -> io::Result<usize> {
        let Self {
            socket,
            headers,
            peers,
            datagrams,
            ..
        } = self;
        let batch = datagrams.get(first..).unwrap_or_default();
        let peers = peers.get(first..).unwrap_or_default();
        let bytes = |index| batch.get(index).map_or(&[][..], Vec::as_slice);
        let slices: [_; BATCH] = array::from_fn(|index| [IoSlice::new(bytes(index))]);
        let slices = slices.iter().take(batch.len());
        // Not through the runtime: it refuses on behalf of the kernel until it has its first event
        // from the kernel, which on an arbiter that has just started may be after the first
        // answers.
        let socket = socket.as_raw_fd();
        let sent = sendmmsg(socket, headers, slices, peers, [], MsgFlags::MSG_DONTWAIT)?;
        Ok(sent.count())
    }

    fn count(&self, first: usize, sent: usize) {
        for form in self.forms.iter().skip(first).take(sent) {
            self.meters.sent.one(*form);
        }
    }

    /// Drops the first datagram of a batch, which was not accepted; the others may be.
    fn lose(&mut self, error: io::Error) -> usize {
        self.meters.unsent.one();
        debug!(%error, "a datagram could not be sent");
        1
    }
}

/// Passes a datagram to the kernel now.
pub(super) fn send_now(socket: &UdpSocket, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
    let to = SockaddrStorage::from(to);
    // Not through the runtime, for the same reason.
    sendto(socket.as_raw_fd(), datagram, &to, MsgFlags::MSG_DONTWAIT)?;
    Ok(())
}
