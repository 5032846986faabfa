//! How are the lines of an import made durable? In batches, a few of them in flight at a time.
//!
//! ```text
//!  entries -> decided as if all names were free -> in flight -> landed, in the order of lines
//!                 ^ once names were taken: read first   | conflict
//!                 '-------- read, decide again <--------' three times, then line by line
//! ```
//!
//! A batch that shares a name with one in flight waits until that one has landed, so the first
//! line with a name wins whichever batch it is in.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use actix_web::{rt, web};
use tokio::task::JoinHandle;

use engine::change::UniqueName;
use engine::directory::device::names_wanted;
use engine::directory::import::{ExistingDevices, LineOutcome, import_devices};
use engine::directory::{Decision, DirectoryRefusal};
use engine::ids::CustomerId;
use engine::profile::Profile;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;
use store::{CommitError, Pressure, Receipt};

use crate::api::Api;
use crate::api::error::{ApiError, ErrorDetail};

/// Lines per batch. A batch keeps the committer busy for some 25 ms: an fsync is a small part of
/// that on a good disk and does not dominate on a slow one, and the commit of a device does not
/// wait long behind a batch.
pub(super) const BATCH_LINES: usize = 512;

/// Batches in flight: one is written, one waits behind it, and one is committed while the next is
/// read and decided.
const FLIGHTS_MAX: usize = 3;

/// The number of times a batch is decided again after conflicting commits.
const RETRIES: u32 = 3;

/// The number of times the committer's queue is checked while it is full; together ten seconds.
const ROOM_LOOKS_MAX: u32 = 100;
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// A line with a record.
#[derive(Debug)]
pub(super) struct DraftLine {
    /// The line number.
    pub(super) line: u64,
    /// The device to create, or the faults of the line.
    pub(super) draft: Result<Profile, Vec<ErrorDetail>>,
}

/// The final result of a line.
#[derive(Debug)]
pub(super) struct SettledLine {
    /// The line number.
    pub(super) line: u64,
    /// The effect of the line, or its faults.
    pub(super) outcome: Result<LineEffect, Vec<ErrorDetail>>,
}

/// The effect of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LineEffect {
    /// The device was created.
    Created,
    /// The device existed with the same values.
    Unchanged,
}

/// The batches of an import that are in flight.
pub(super) struct Batches {
    api: web::Data<Api>,
    customer: CustomerId,
    outlook: NameAssumption,
    flights: VecDeque<BatchInFlight>,
}

/// What is assumed about the names in the next batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NameAssumption {
    /// They are free, as in most imports: nothing is read, and the commit detects a conflict.
    Free,
    /// Some are taken, as in the previous batch: reading first is cheaper than a conflict.
    Taken,
}

/// A batch in flight.
struct BatchInFlight {
    entries: Vec<DraftLine>,
    /// Every name in its lines, whether or not the line takes effect.
    names: HashSet<UniqueName>,
    fates: Vec<LineOutcome>,
    receipt: JoinHandle<Result<(), CommitError>>,
    verdict: Option<Result<(), CommitError>>,
}

impl Batches {
    /// The batches of a new import.
    pub(super) fn new(api: web::Data<Api>, customer: CustomerId) -> Self {
        Self {
            api,
            customer,
            outlook: NameAssumption::Free,
            flights: VecDeque::new(),
        }
    }

    /// Whether no batch is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Whether a batch with these names must wait until another one is settled.
    pub(super) fn must_wait(&self, names: &HashSet<UniqueName>) -> bool {
        let shares = |flight: &BatchInFlight| !flight.names.is_disjoint(names);
        self.flights.len() >= FLIGHTS_MAX || self.flights.iter().any(shares)
    }

    /// Commits a batch. It must not share a name with a batch in flight.
    pub(super) async fn send(
        &mut self,
        entries: Vec<DraftLine>,
        names: HashSet<UniqueName>,
    ) -> Result<(), ApiError> {
        let slot = self.api.imports.batch_slot().await;
        self.wait_for_room().await?;
        let known = match self.outlook {
            NameAssumption::Free => ExistingDevices::default(),
            NameAssumption::Taken => {
                let drafts = entries.iter().filter_map(DraftLine::profile);
                let wanted = drafts.flat_map(names_wanted).collect();
                self.api.store.existing_devices(wanted).await?
            }
        };
        self.outlook = NameAssumption::after(&known);
        let drafts = entries.iter().filter_map(DraftLine::profile);
        let Decision { batch, answer } = self.decide(drafts, &known);
        let receipt: Receipt = if batch.changes.is_empty() {
            Box::pin(std::future::ready(Ok(())))
        } else {
            self.api.commits.commit(batch)
        };
        // The slot is free once the batch is committed, also while a caller that does not read its
        // report delays the import.
        let receipt = rt::spawn(async move {
            let _slot = slot;
            receipt.await
        });
        self.flights.push_back(BatchInFlight {
            entries,
            names,
            fates: answer,
            receipt,
            verdict: None,
        });
        Ok(())
    }

    /// Waits until the oldest batch is committed or rejected. Cancel-safe.
    pub(super) async fn arrival(&mut self) {
        if let Some(flight) = self.flights.front_mut() {
            // `land` handles the verdict.
            let _ = flight.arrive().await;
        }
    }

    /// Settles the oldest batch and returns the result of each of its lines.
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

    /// Settles the oldest batch if it is durable, and drops it if it is not: after an import has
    /// stopped, nothing is decided again.
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

    /// Reads, decides and commits until a commit succeeds; None after too many conflicts.
    async fn settle(&self, drafts: &[&Profile]) -> Result<Option<Vec<LineOutcome>>, ApiError> {
        for _ in 0..RETRIES {
            self.wait_for_room().await?;
            let names = drafts.iter().flat_map(|draft| names_wanted(draft));
            let known = self.api.store.existing_devices(names.collect()).await?;
            let drafts = drafts.iter().copied();
            let Decision { batch, answer } = self.decide(drafts, &known);
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

    fn decide<'a>(
        &self,
        drafts: impl IntoIterator<Item = &'a Profile>,
        known: &ExistingDevices,
    ) -> Decision<Vec<LineOutcome>> {
        let same = |owner: SecretOwner<'_>, one: &Sealed, other: &Sealed| {
            self.api.is_same_secret(owner, one, other)
        };
        import_devices(&self.customer, drafts, (known, &same))
    }

    async fn expect_customer(&self) -> Result<(), ApiError> {
        match self.api.store.customer(self.customer.clone()).await? {
            Some(_) => Ok(()),
            None => Err(DirectoryRefusal::CustomerUnknown.into()),
        }
    }

    /// Waits while the committer's queue is full: callers and devices that await an answer go
    /// first.
    async fn wait_for_room(&self) -> Result<(), ApiError> {
        for _ in 0..ROOM_LOOKS_MAX {
            match self.api.commits.pressure() {
                Pressure::Open => return Ok(()),
                Pressure::Full | Pressure::DiskFull | Pressure::Unreachable | Pressure::Failed => {
                    tokio::time::sleep(ROOM_PAUSE).await;
                }
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
    /// The device to create, if the line is valid.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.draft.as_ref().ok()
    }
}

impl BatchInFlight {
    async fn arrive(&mut self) -> Result<(), CommitError> {
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        let verdict = (&mut self.receipt).await;
        let verdict = verdict.unwrap_or(Err(CommitError::Unavailable));
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

/// Gives each line its outcome; `outcomes` has one for each line with a draft.
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
