//! How do nodes that deliver learn of new events? The active node, which stores them, has a stream
//! for each: a line for every partition of a customer that has some.
//!
//! What was stored while there was no stream is found when it begins.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use engine::ids::{CustomerId, Partition};
use engine::limits::PARTITIONS;
use futures_core::Stream;
use reqwest::Client;
use store::{DeliveryReads, EventNews};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::client_of;
use super::datagrams::ActiveNode;
use super::identity::NodeIdentity;

/// Where the active node has the stream.
pub const NEWS: &str = "/v1/news";

/// How long the active node may take to accept a stream.
const ACCEPT_FOR: Duration = Duration::from_secs(5);

/// The pause before it is tried again, and how often a node looks by itself meanwhile.
const RETRY: Duration = Duration::from_secs(1);

/// How often the active node says that it is there, and how long it may be silent.
const HEARTBEAT: Duration = Duration::from_secs(5);
const SILENT_MAX: Duration = Duration::from_secs(15);

/// The longest line: the id of a customer and a number.
const LINE_MAX: usize = 1_024;

/// How often the streams to all nodes were ended, and who waits for that.
static ENDED: AtomicU64 = AtomicU64::new(0);
static END: Notify = Notify::const_new();

/// Ends the streams to all nodes: this one stops.
pub fn end_all() {
    ENDED.fetch_add(1, Ordering::SeqCst);
    END.notify_waiters();
}

/// The stream of what this process stores from now on.
pub fn stream(store: &dyn DeliveryReads) -> HttpResponse {
    let begun_after = ENDED.load(Ordering::SeqCst);
    HttpResponse::Ok().streaming(NewsLines {
        reading: read(store.subscribe_to_all(), begun_after),
        begun_after,
    })
}

type ReadNews = Pin<Box<dyn Future<Output = Option<(Arc<EventNews>, Bytes)>>>>;

/// The body of the response.
struct NewsLines {
    reading: ReadNews,
    /// How often streams had been ended before it began.
    begun_after: u64,
}

fn read(news: Arc<EventNews>, begun_after: u64) -> ReadNews {
    Box::pin(async move {
        let mut end = pin!(END.notified());
        end.as_mut().enable();
        if ENDED.load(Ordering::SeqCst) > begun_after {
            return None;
        }
        let lines = tokio::select! {
            lines = news.read() => lines,
            () = end => return None,
            // An empty line says that the node is there.
            () = sleep(HEARTBEAT) => return Some((news, "\n".into())),
        };
        let lines = lines.into_iter();
        let lines = lines.map(|(customer, partition)| format!("{} {customer}\n", partition.0));
        let lines = lines.collect::<String>();
        Some((news, lines.into()))
    })
}

impl Stream for NewsLines {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.reading.as_mut().poll(cx));
        Poll::Ready(next.map(|(news, lines)| {
            self.reading = read(news, self.begun_after);
            Ok(lines)
        }))
    }
}

/// Notifies the forwarders of this process of what the active node stores, until it is dropped.
pub async fn follow(
    identity: NodeIdentity,
    mut active: ActiveNode,
    store: Arc<dyn DeliveryReads>,
) -> Result<Infallible, reqwest::Error> {
    let client = client_of(&identity)?;
    loop {
        let address = *active.borrow_and_update();
        tokio::select! {
            ended = follow_one(&client, address, &*store) => {
                if let Err(error) = ended {
                    warn!(%error, "the stream of new events from the active node has ended");
                }
                sleep(RETRY).await;
            }
            changed = active.changed() => {
                if changed.is_err() {
                    sleep(RETRY).await;
                }
            }
        }
        // Nobody says what is stored meanwhile.
        store.note_stored_elsewhere(None);
    }
}

/// Follows the node at this address until the stream ends.
async fn follow_one(
    client: &Client,
    address: Option<SocketAddr>,
    store: &dyn DeliveryReads,
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(address) = address else {
        return std::future::pending().await;
    };
    let accepted = client.get(format!("https://{address}{NEWS}")).send();
    let mut news = timeout(ACCEPT_FOR, accepted).await??.error_for_status()?;
    info!(%address, "the active node says which events are new");
    store.note_stored_elsewhere(None);
    let mut rest = VecDeque::new();
    while let Some(part) = timeout(SILENT_MAX, news.chunk()).await?? {
        rest.extend(part);
        let mut events = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            if end > 0 {
                events.push(event_of(&line).ok_or("a line cannot be read")?);
            }
        }
        if rest.len() > LINE_MAX {
            return Err("a line is too long".into());
        }
        store.note_stored_elsewhere(Some(events));
    }
    Ok(())
}

fn event_of(line: &[u8]) -> Option<(CustomerId, Partition)> {
    let line = str::from_utf8(line).ok()?.trim_end();
    let (partition, customer) = line.split_once(' ')?;
    let partition = partition.parse().ok().filter(|it| *it < PARTITIONS)?;
    Some((CustomerId::parse(customer).ok()?, Partition(partition)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_partition_and_a_customer() {
        let acme = CustomerId::parse("acme").unwrap();
        assert_eq!(event_of(b"15 acme\n"), Some((acme, Partition(15))));
        for line in [
            "16 acme\n",
            "acme\n",
            "-1 acme\n",
            "1 \n",
            "1 \u{7f}\n",
            "\n",
        ] {
            assert_eq!(event_of(line.as_bytes()), None, "{line}");
        }
    }
}
