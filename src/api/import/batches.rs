//! How are the lines of an import made durable? In batches, a few of them on their way at a time.
//!
//! ```text
//!  entries -> decided as if all names were free -> on its way -> landed, in the order of lines
//!                 ^ once names were taken: read first    | conflict
//!                 '--------- read, decide anew <---------' three times, then line by line
//! ```
//!
//! A batch that names what one on its way names waits until that has landed, so the first line
//! that names a device wins whichever batch it is in.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use actix_web::web;

use engine::change::UniqueName;
use engine::directory::import::{ExistingDevices, LineOutcome, import_devices};
use engine::directory::{Decision, DirectoryRefusal};
use engine::ids::CustomerId;
use engine::profile::Profile;
use store::{CommitError, Pressure, Receipt};

use crate::api::Api;
use crate::api::error::{ApiError, ErrorDetail};

/// Lines of a batch: they keep the committer busy for some 25 ms, so that an fsync is a small part
/// of it on a good disk and does not rule on a slow one, and a device's own commit does not wait
/// long behind it.
pub(super) const BATCH_LINES: usize = 512;

/// Batches on their way at a time: one that is written, one that waits behind it, and one more
/// while the next is read and decided.
const FLIGHTS_MAX: usize = 3;

/// A batch is decided anew this often when other writers were faster.
const RETRIES: u32 = 3;

/// How often it is looked whether a full store has room again; together ten seconds.
const ROOM_LOOKS_MAX: u32 = 100;
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// One line that says something.
#[derive(Debug)]
pub(super) struct DraftLine {
    /// The line.
    pub(super) line: u64,
    /// The device it would make, or what is wrong with it.
    pub(super) draft: Result<Profile, Vec<ErrorDetail>>,
}

/// What became of one line, for good.
#[derive(Debug)]
pub(super) struct SettledLine {
    /// The line.
    pub(super) line: u64,
    /// What it did, or why it did nothing.
    pub(super) outcome: Result<LineEffect, Vec<ErrorDetail>>,
}

/// What a line did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LineEffect {
    /// It made its device.
    Created,
    /// Its device was there, just as it says.
    Unchanged,
}

/// The batches of an import on their way.
pub(super) struct Batches {
    api: web::Data<Api>,
    customer: CustomerId,
    outlook: NameAssumption,
    flights: VecDeque<BatchInFlight>,
}

/// What is assumed of the names of the next batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NameAssumption {
    /// They are free, as in most imports: the commit finds out, and nothing is read.
    Free,
    /// Some are taken, as they were in the last batch: reading first is cheaper than a conflict.
    Taken,
}

/// A batch on its way.
struct BatchInFlight {
    entries: Vec<DraftLine>,
    /// Every name its lines want, whatever becomes of them.
    names: HashSet<UniqueName>,
    fates: Vec<LineOutcome>,
    receipt: Receipt,
    verdict: Option<Result<(), CommitError>>,
}

impl Batches {
    /// The batches of an import that begins.
    pub(super) fn new(api: web::Data<Api>, customer: CustomerId) -> Self {
        Self {
            api,
            customer,
            outlook: NameAssumption::Free,
            flights: VecDeque::new(),
        }
    }

    /// Whether none is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Whether a batch with these names has to wait for another to land.
    pub(super) fn must_wait(&self, names: &HashSet<UniqueName>) -> bool {
        let shares = |flight: &BatchInFlight| !flight.names.is_disjoint(names);
        self.flights.len() >= FLIGHTS_MAX || self.flights.iter().any(shares)
    }

    /// Sends a batch on its way; none on its way may share a name with it.
    pub(super) async fn send(
        &mut self,
        entries: Vec<DraftLine>,
        names: HashSet<UniqueName>,
    ) -> Result<(), ApiError> {
        self.wait_for_room().await?;
        let known = match self.outlook {
            NameAssumption::Free => ExistingDevices::default(),
            NameAssumption::Taken => {
                self.api
                    .store
                    .existing_devices(names.iter().cloned().collect())
                    .await?
            }
        };
        self.outlook = NameAssumption::after(&known);
        let drafts = entries.iter().filter_map(DraftLine::profile);
        let Decision { batch, answer } = import_devices(&self.customer, drafts, &known);
        let receipt: Receipt = if batch.changes.is_empty() {
            Box::pin(std::future::ready(Ok(())))
        } else {
            self.api.commits.commit(batch)
        };
        self.flights.push_back(BatchInFlight {
            entries,
            names,
            fates: answer,
            receipt,
            verdict: None,
        });
        Ok(())
    }

    /// Waits until the oldest batch is decided. Whoever stops waiting loses nothing.
    pub(super) async fn arrival(&mut self) {
        if let Some(flight) = self.flights.front_mut() {
            // Landing it is what looks at the verdict.
            let _ = flight.arrive().await;
        }
    }

    /// Lands the oldest batch: what became of each of its lines.
    pub(super) async fn land(&mut self) -> Result<Vec<SettledLine>, ApiError> {
        let Some(mut flight) = self.flights.pop_front() else {
            return Ok(Vec::new());
        };
        match flight.arrive().await {
            Ok(()) => Ok(flight.settled()),
            Err(CommitError::Conflict | CommitError::Full) => {
                self.outlook = NameAssumption::Taken;
                self.settle_anew(flight.entries).await
            }
            Err(error @ (CommitError::Fenced | CommitError::Unavailable)) => Err(error.into()),
        }
    }

    /// Lands the oldest batch if it is durable, and lets it go if it is not: nothing is decided
    /// anew for an import that has ended.
    pub(super) async fn land_as_it_is(&mut self) -> Option<Vec<SettledLine>> {
        let mut flight = self.flights.pop_front()?;
        match flight.arrive().await {
            Ok(()) => Some(flight.settled()),
            Err(_) => None,
        }
    }

    async fn settle_anew(&self, entries: Vec<DraftLine>) -> Result<Vec<SettledLine>, ApiError> {
        let drafts: Vec<&Profile> = entries.iter().filter_map(DraftLine::profile).collect();
        let outcomes = match self.settle(&drafts).await? {
            Some(fates) => fates.into_iter().map(outcome_of).collect(),
            None => self.settle_each(&drafts).await?,
        };
        Ok(in_order(entries, outcomes))
    }

    async fn settle_each(
        &self,
        drafts: &[&Profile],
    ) -> Result<Vec<Result<LineEffect, Vec<ErrorDetail>>>, ApiError> {
        let mut outcomes = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let fate = self
                .settle(&[draft])
                .await?
                .and_then(|fates| fates.into_iter().next());
            outcomes.push(match fate {
                Some(fate) => outcome_of(fate),
                None => Err(ApiError::busy().into_faults()),
            });
        }
        Ok(outcomes)
    }

    /// Reads, decides and commits until what was decided holds; nothing if others kept being
    /// faster.
    async fn settle(&self, drafts: &[&Profile]) -> Result<Option<Vec<LineOutcome>>, ApiError> {
        for _ in 0..RETRIES {
            self.wait_for_room().await?;
            let names = drafts.iter().flat_map(|draft| UniqueName::all_of(draft));
            let known = self.api.store.existing_devices(names.collect()).await?;
            let drafts = drafts.iter().copied();
            let Decision { batch, answer } = import_devices(&self.customer, drafts, &known);
            if batch.changes.is_empty() {
                return Ok(Some(answer));
            }
            match self.api.commits.commit(batch).await {
                Ok(()) => return Ok(Some(answer)),
                Err(CommitError::Conflict) => self.expect_customer().await?,
                Err(CommitError::Full) => {}
                Err(error @ (CommitError::Fenced | CommitError::Unavailable)) => {
                    return Err(error.into());
                }
            }
        }
        Ok(None)
    }

    async fn expect_customer(&self) -> Result<(), ApiError> {
        match self.api.store.customer(self.customer.clone()).await? {
            Some(_) => Ok(()),
            None => Err(DirectoryRefusal::CustomerUnknown.into()),
        }
    }

    /// An import is in no hurry: whoever waits for an answer goes first.
    async fn wait_for_room(&self) -> Result<(), ApiError> {
        for _ in 0..ROOM_LOOKS_MAX {
            match self.api.commits.pressure() {
                Pressure::Open => return Ok(()),
                Pressure::Full => tokio::time::sleep(ROOM_PAUSE).await,
            }
        }
        Err(CommitError::Full.into())
    }
}

impl NameAssumption {
    fn after(known: &ExistingDevices) -> Self {
        if known.key_by_name.is_empty() {
            Self::Free
        } else {
            Self::Taken
        }
    }
}

impl DraftLine {
    /// The device it would make, if it can make one.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.draft.as_ref().ok()
    }
}

impl BatchInFlight {
    async fn arrive(&mut self) -> Result<(), CommitError> {
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        let verdict = self.receipt.as_mut().await;
        self.verdict = Some(verdict);
        verdict
    }

    fn settled(self) -> Vec<SettledLine> {
        in_order(
            self.entries,
            self.fates.into_iter().map(outcome_of).collect(),
        )
    }
}

fn outcome_of(fate: LineOutcome) -> Result<LineEffect, Vec<ErrorDetail>> {
    match fate {
        LineOutcome::Created => Ok(LineEffect::Created),
        LineOutcome::Unchanged => Ok(LineEffect::Unchanged),
        LineOutcome::Refused(names) => {
            Err(ApiError::from(DirectoryRefusal::DeviceExists(names)).into_faults())
        }
    }
}

/// Gives each line its outcome; there is one for each that had a draft.
fn in_order(
    entries: Vec<DraftLine>,
    outcomes: Vec<Result<LineEffect, Vec<ErrorDetail>>>,
) -> Vec<SettledLine> {
    let mut outcomes = outcomes.into_iter();
    let settled = entries
        .into_iter()
        .map(|DraftLine { line, draft }| SettledLine {
            line,
            outcome: match draft {
                Err(faults) => Err(faults),
                Ok(_) => outcomes.next().expect("every draft has its fate"),
            },
        });
    settled.collect()
}
