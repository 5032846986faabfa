//! Which datagrams are to be sent? They are gathered while devices have their turn, and passed to
//! the kernel in batches once every actor that was woken has run.

use std::array;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Poll, Waker};

use engine::dispatch::datagram_form::DatagramForm;
use engine::peer::Peer;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
use tracing::debug;

use crate::lease;
use crate::meters::sent::SentMeters;

use super::bound_socket::{BoundSocket, SourceAddress};

/// Datagrams passed at once; when this many wait they are sent immediately.
const BATCH: usize = 32;

/// The datagrams that wait to be sent through a socket.
#[derive(Clone)]
pub(super) struct Outbox(Rc<RefCell<WaitingDatagrams>>);

struct WaitingDatagrams {
    socket: Rc<BoundSocket>,
    headers: MultiHeaders<SockaddrStorage>,
    /// Where each datagram goes, in the order of the datagrams; the kernel takes them so.
    destinations: Vec<Option<SockaddrStorage>>,
    datagrams: Vec<WaitingDatagram>,
    waker: Option<Waker>,
    meters: Rc<SentMeters>,
}

struct WaitingDatagram {
    bytes: Vec<u8>,
    from: Option<SourceAddress>,
    form: DatagramForm,
}

impl Outbox {
    /// The outbox of a socket, emptied by a task of its own on the arbiter that creates it.
    pub(super) fn new(socket: Rc<BoundSocket>, meters: Rc<SentMeters>) -> Self {
        let outbox = Self(Rc::new(RefCell::new(WaitingDatagrams {
            headers: socket.headers(BATCH),
            socket,
            destinations: Vec::with_capacity(BATCH),
            datagrams: Vec::with_capacity(BATCH),
            waker: None,
            meters,
        })));
        actix_rt::spawn(outbox.clone().empty_for_ever());
        outbox
    }

    /// Queues a datagram until the end of the round. If the kernel does not accept it at once, it
    /// is lost, as any datagram may be, and counted.
    pub(super) fn put(&self, to: Peer, bytes: Vec<u8>, form: DatagramForm) {
        let mut waiting = self.0.borrow_mut();
        let (to, from) = waiting.socket.path_to(to);
        waiting.destinations.push(Some(to));
        waiting
            .datagrams
            .push(WaitingDatagram { bytes, from, form });
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
        if !self.datagrams.is_empty() && !lease::is_held() {
            self.datagrams.iter().for_each(|_| self.meters.unsent.one());
            self.destinations.clear();
            self.datagrams.clear();
            return;
        }
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
        self.destinations.clear();
        self.datagrams.clear();
    }

    /// Passes the next datagrams that leave from one address to the kernel, at most a batch; it
    /// accepts as many as it can, in order.
    fn send_from(&mut self, first: usize) -> io::Result<usize> {
        let Self {
            socket,
            headers,
            destinations,
            datagrams,
            ..
        } = self;
        let waiting = datagrams.get(first..).unwrap_or_default();
        let from = waiting.first().and_then(|it| it.from);
        let batch = || waiting.iter().take_while(|it| it.from == from).take(BATCH);
        let mut parts = batch().map(|it| IoSlice::new(&it.bytes));
        let slices: [_; BATCH] =
            array::from_fn(|_| [parts.next().unwrap_or_else(|| IoSlice::new(&[]))]);
        let slices = slices.iter().take(batch().count());
        let to = destinations.get(first..).unwrap_or_default();
        let control = from.as_ref().map(SourceAddress::control_message);
        let flags = MsgFlags::MSG_DONTWAIT;
        let control = control.as_slice();
        let sent = sendmmsg(socket.descriptor(), headers, slices, to, control, flags)?;
        Ok(sent.count())
    }

    fn count(&self, first: usize, sent: usize) {
        for datagram in self.datagrams.iter().skip(first).take(sent) {
            self.meters.sent.one(datagram.form);
        }
    }

    /// Drops the first datagram of a batch, which was not accepted; the others may be.
    fn lose(&mut self, error: io::Error) -> usize {
        self.meters.unsent.one();
        debug!(%error, "a datagram could not be sent");
        1
    }
}
