//! Where are the Sends of a load looked for? In the history of every device, and at the webhook.
//!
//! Each Send of a load has a value of its own, so a value that was found is a Send that arrived.

use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::moment::Timestamp;
use harness::load::behaviour::SendValues;
use harness::load::tally::NumberedSend;
use harness::load::worker::ProgressCounts;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

use super::api::LoadApi;
use super::display::Display;
use super::interrupts::Interrupts;
use super::options::LoadOptions;
use super::report::books::{BooksFound, BooksReport};
use super::webhook::SendEndpoint;
use crate::rest_client::CallError;

/// Devices whose history is read at the same time.
const READERS: usize = 16;

/// The clock of the server may be behind ours by this much.
const CLOCK_DIFFERENCE_MS: i64 = 3_600_000;

/// If no Send arrives at the webhook for this long, the rest is missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// The interval at which the webhook is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What a load sent, and where to find it again.
pub(super) struct Books {
    sends: SendValues,
    since_ms: i64,
    acknowledged: Vec<NumberedSend>,
    webhook: Option<SendEndpoint>,
}

impl Books {
    /// Opens the books, and the webhook if one is requested.
    pub(super) fn open(
        api: &LoadApi,
        options: &LoadOptions,
        sends: SendValues,
        since_ms: i64,
    ) -> Result<Self, Box<dyn Error>> {
        let open = |address: SocketAddr| -> Result<_, Box<dyn Error>> {
            let pattern = options.endpoint_pattern.clone();
            let mut endpoint =
                SendEndpoint::listen(address, pattern, sends, options.webhook_refuse)
                    .map_err(|error| format!("--webhook {address}: {error}"))?;
            api.runtime
                .block_on(endpoint.create(&api.caller, options.webhook_batch))
                .map_err(|error| format!("the webhook cannot be created: {error}"))?;
            Ok(endpoint)
        };
        Ok(Self {
            sends,
            since_ms: since_ms.saturating_sub(CLOCK_DIFFERENCE_MS),
            acknowledged: Vec::new(),
            webhook: options.webhook.map(open).transpose()?,
        })
    }

    /// Adds acknowledged Sends, and looks for all so far.
    pub(super) fn check(
        &mut self,
        acknowledged: Vec<NumberedSend>,
        api: &LoadApi,
        options: &LoadOptions,
        interrupts: &Interrupts,
    ) -> Result<BooksReport, CallError> {
        self.acknowledged.extend(acknowledged);
        self.acknowledged.sort_unstable();
        let history = LocalSet::new().block_on(&api.runtime, self.history(api, options))?;
        let mut report = BooksReport {
            acknowledged: self.acknowledged.len() as u64,
            history: BooksFound::compare(&self.acknowledged, history),
            webhook: None,
            repeated: 0,
            disordered: 0,
        };
        if let Some(webhook) = &self.webhook {
            let arrivals = api
                .runtime
                .block_on(self.arrivals(webhook, options, interrupts));
            report.webhook = Some(arrivals);
            report.repeated = webhook.repeated();
            report.disordered = webhook.disordered();
        }
        Ok(report)
    }

    /// Closes the books: the webhook is deleted.
    pub(super) fn close(&self, api: &LoadApi) {
        if let Some(webhook) = &self.webhook
            && let Err(error) = api.runtime.block_on(webhook.delete(&api.caller))
        {
            eprintln!("signalbox: the webhook remains: {error}");
        }
    }

    /// The Sends of this load in the history of every device.
    async fn history(
        &self,
        api: &LoadApi,
        options: &LoadOptions,
    ) -> Result<Vec<NumberedSend>, CallError> {
        let mut display = Display::open("checking", options);
        let from = Timestamp::from_ms(self.since_ms).iso().to_string();
        let mut devices: Vec<u32> = self.acknowledged.iter().map(|send| send.device).collect();
        devices.dedup();
        let count = devices.len() as u64;
        let mut devices = devices.into_iter();
        let (sends, from) = (self.sends, Rc::<str>::from(from));
        let mut readers = JoinSet::new();
        let mut found = Vec::new();
        let mut read: u64 = 0;
        loop {
            while readers.len() < READERS
                && let Some(device) = devices.next()
            {
                let name = options.endpoint_pattern.name(device);
                let (caller, from) = (api.caller.clone(), Rc::clone(&from));
                readers.spawn_local(async move {
                    let values = caller.sent_by(&name, &from).await?;
                    let numbers = values.into_iter().filter_map(|value| sends.number(value));
                    let sends = numbers.map(|number| NumberedSend { device, number });
                    Ok::<Vec<_>, CallError>(sends.collect())
                });
            }
            let Some(outcome) = readers.join_next().await else {
                display.close();
                return Ok(found);
            };
            found.extend(outcome.expect("no reader panics")?);
            read += 1;
            display.show(ProgressCounts {
                begun: count,
                answered: read,
                failed: 0,
            });
        }
    }

    /// Waits until every acknowledged Send has arrived, or none arrives any more.
    async fn arrivals(
        &self,
        webhook: &SendEndpoint,
        options: &LoadOptions,
        interrupts: &Interrupts,
    ) -> BooksFound {
        let mut display = Display::open("awaiting", options);
        let (mut last, mut moved_at) = (usize::MAX, Instant::now());
        loop {
            let count = webhook.count();
            let is_over = moved_at.elapsed() >= PATIENCE || interrupts.is_stopping();
            let has_moved = count != last;
            if is_over || (has_moved && count >= self.acknowledged.len()) {
                let found = BooksFound::compare(&self.acknowledged, webhook.received());
                if is_over || found.missing == 0 {
                    display.close();
                    return found;
                }
            }
            if has_moved {
                (last, moved_at) = (count, Instant::now());
            }
            display.show(ProgressCounts {
                begun: self.acknowledged.len() as u64,
                answered: count as u64,
                failed: 0,
            });
            sleep(LOOK).await;
        }
    }
}
