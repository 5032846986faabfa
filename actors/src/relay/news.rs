//! How do nodes learn of the events that others store? Each has a stream for each of the others: a
//! line for every partition of a customer that has new ones.
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
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::identity::NodeIdentity;
use super::{NodeTasks, Patience, client_of, reasons};
use crate::arbiters::OtherNodes;

/// Where a node has the stream.
pub const NEWS: &str = "/v1/news";

/// How long a node may take to accept a stream.
const ACCEPT_FOR: Duration = Duration::from_secs(5);

/// The pause before it is tried again, and how often a node looks by itself meanwhile.
const RETRY: Duration = Duration::from_secs(1);

/// How often a node says that it is there, and how long it may be silent.
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

/// Notifies the forwarders of this process of what the other nodes store, until it is dropped.
pub async fn follow(
    identity: NodeIdentity,
    mut others: watch::Receiver<OtherNodes>,
    store: Arc<dyn DeliveryReads>,
) -> Result<(), reqwest::Error> {
    let client = client_of(&identity)?;
    let mut tasks = NodeTasks::default();
    loop {
        let known = others.borrow_and_update().addresses.clone();
        tasks.follow(&known, |_, address| {
            actix_rt::spawn(follow_one(client.clone(), address, Arc::clone(&store)))
        });
        if others.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Follows the node at this address.
async fn follow_one(client: Client, address: SocketAddr, store: Arc<dyn DeliveryReads>) {
    let mut patience = Patience::default();
    loop {
        if let Err(fault) = read_from(&client, address, &*store, &mut patience).await
            && patience.is_over()
        {
            let fault = reasons(&*fault);
            warn!(%fault, %address, "a node does not say which events are new");
        }
        sleep(RETRY).await;
        // Nobody says what is stored meanwhile.
        store.note_stored_elsewhere(None);
    }
}

/// Reads the stream of a node until it ends.
async fn read_from(
    client: &Client,
    address: SocketAddr,
    store: &dyn DeliveryReads,
    patience: &mut Patience,
) -> Result<(), Box<dyn std::error::Error>> {
    let accepted = client.get(format!("https://{address}{NEWS}")).send();
    let mut news = timeout(ACCEPT_FOR, accepted).await??.error_for_status()?;
    info!(%address, "a node says which events are new");
    *patience = Patience::default();
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
