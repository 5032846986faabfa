//! What does a node do with what another one sends over a stream? Its arbiters receive datagrams as
//! if they came from the network, and batches as if they came from arbiters of this process.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix::{Handler, Message};
use actix_web::HttpResponse;
use actix_web::web::{Bytes, Payload};
use engine::dispatch::shard_map::ArbiterId;
use futures_core::Stream;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use crate::arbiters::ArbiterInlet;
use crate::arbiters::datagrams::SortedDatagrams;
use crate::arbiters::peer_choice::PeerChoice;
use crate::arbiters::places::{ArbiterPlace, ArbiterPlaces};
use crate::lease;
use crate::registry::forward_batch::ForwardBatch;
use crate::registry::{ReceivedDatagrams, Registry};
use crate::socket::{self, ConnectedRelay, DepartingDatagram};

use super::frame::{BatchContext, Frame, FrameReader, StreamFrame};

pub use crate::socket::RelayId;

/// Ends the streams of all nodes: nothing more is received from them, or leaves through them.
pub fn end_all() {
    socket::disconnect_all();
}

/// The bytes of a response that are written at once, unless the last frame is longer.
const PART_BYTES: usize = 16 * 1_024;

/// Receives what is in the body of a request. The response has what is to leave through the sockets
/// of the node that makes it.
pub fn receive(id: RelayId, body: Payload, inlet: &ArbiterInlet) -> HttpResponse {
    let (relay, departing) = ConnectedRelay::connect(id);
    actix_rt::spawn(receive_all(id, relay, body, inlet.0.clone()));
    HttpResponse::Ok().streaming(DepartingFrames(departing))
}

async fn receive_all(
    id: RelayId,
    relay: ConnectedRelay,
    mut body: Payload,
    mut places: ArbiterPlaces,
) {
    let RelayId { node, stream } = id;
    info!(%node, stream, "a node sends to the arbiters of this one");
    let (mut reader, mut choice) = (FrameReader::default(), choice_among(&places));
    while let Some(part) = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
        let part = match part {
            Ok(part) => part,
            Err(error) => {
                debug!(%error, "a stream of datagrams has failed");
                break;
            }
        };
        if places.has_changed() {
            choice = choice_among(&places);
        }
        let mut datagrams = SortedDatagrams::default();
        let mut batches = Vec::new();
        let context = BatchContext {
            shard_map: places.shard_map(),
            local_at: &|relay, at| places.nodes().local_at(relay, at),
        };
        let read = reader.read(&part, &context, |frame| match frame {
            StreamFrame::Datagram(Frame { peer, at, datagram }) => {
                if let Some(arbiter) = choice.of(peer) {
                    datagrams.put(arbiter, relay.peer(peer, at), datagram);
                }
            }
            StreamFrame::Batch(arbiter, batch) => batches.push((arbiter, batch)),
        });
        for (arbiter, datagrams) in datagrams {
            give(&places, arbiter, ReceivedDatagrams(datagrams));
        }
        for (arbiter, batch) in batches {
            give::<ForwardBatch>(&places, arbiter, batch);
        }
        if let Err(error) = read {
            warn!(%error, %node, "a stream of datagrams cannot be read");
            break;
        }
    }
    info!(%node, stream, "a node sends nothing to the arbiters of this one any more");
}

fn choice_among(places: &ArbiterPlaces) -> PeerChoice {
    let here: Vec<ArbiterId> = places.here().keys().copied().collect();
    PeerChoice::among(&here)
}

/// Gives a message to an arbiter of this process. Without it, and without the lease, it is lost, as
/// it may be in the network.
fn give<M>(places: &ArbiterPlaces, arbiter: ArbiterId, message: M)
where
    M: Message<Result = ()> + Send + 'static,
    Registry: Handler<M>,
{
    let ArbiterPlace::Here(registry) = places.place(arbiter) else {
        return;
    };
    if !lease::is_held() || registry.try_send(message).is_err() {
        debug!("an arbiter has no room for what another node sends");
    }
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
