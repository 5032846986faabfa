//! What does the active node do with the datagrams that another node relays? Its arbiters receive
//! them as if they came from the network.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Payload};
use futures_core::Stream;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::devices::Devices;
use crate::socket::{self, ConnectedRelay, DepartingDatagram};

use super::frame::{Frame, FrameReader};

pub use crate::socket::RelayId;

/// Ends the streams of all nodes: nothing more is received from them, or leaves through them.
pub fn end_all() {
    socket::disconnect_all();
}

/// The bytes of a response that are written at once, unless the last frame is longer.
const PART_BYTES: usize = 16 * 1_024;

/// Receives the datagrams in the body of a request. The response has those that are to leave
/// through the relay.
pub fn receive(id: RelayId, body: Payload, devices: Devices) -> HttpResponse {
    let (relay, departing) = ConnectedRelay::connect(id);
    actix_rt::spawn(receive_all(id, relay, body, devices));
    HttpResponse::Ok().streaming(DepartingFrames(departing))
}

async fn receive_all(id: RelayId, relay: ConnectedRelay, mut body: Payload, devices: Devices) {
    let RelayId { node, stream } = id;
    info!(%node, stream, "a node relays datagrams");
    let mut reader = FrameReader::default();
    while let Some(part) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
        let part = match part {
            Ok(part) => part,
            Err(error) => {
                debug!(%error, "a stream of datagrams has failed");
                break;
            }
        };
        let mut datagrams = Vec::new();
        let read = reader.read(&part, |Frame { peer, at, datagram }| {
            datagrams.push((relay.peer(peer, at), datagram.to_vec()));
        });
        devices.receive_relayed(stream, datagrams);
        if let Err(error) = read {
            warn!(%error, %node, "a stream of datagrams cannot be read");
            break;
        }
    }
    info!(%node, stream, "a node relays no datagrams any more");
}

/// The body of the response.
struct DepartingFrames(mpsc::Receiver<DepartingDatagram>);

impl Stream for DepartingFrames {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut next = ready!(self.0.poll_recv(cx));
        if next.is_none() {
            return Poll::Ready(None);
        }
        let mut part = Vec::new();
        while let Some(departing) = next {
            let frame = Frame {
                peer: departing.to,
                at: departing.from,
                datagram: &departing.datagram,
            };
            frame.write(&mut part);
            if part.len() >= PART_BYTES {
                break;
            }
            next = self.0.try_recv().ok();
        }
        Poll::Ready(Some(Ok(part.into())))
    }
}
