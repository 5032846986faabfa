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

use engine::change::Name;
use engine::directory::import::{Fate, Known, import_devices};
use engine::directory::{Decided, Refusal};
use engine::ids::CustomerId;
use engine::profile::Profile;
use store::{CommitError, Pressure, Receipt};

use crate::api::Api;
use crate::api::error::{Failure, Fault};

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
pub(super) struct Entry {
    /// The line.
    pub(super) line: u64,
    /// The device it would make, or what is wrong with it.
    pub(super) draft: Result<Profile, Vec<Fault>>,
}

/// What became of one line, for good.
#[derive(Debug)]
pub(super) struct Settled {
    /// The line.
    pub(super) line: u64,
    /// What it did, or why it did nothing.
    pub(super) outcome: Result<Made, Vec<Fault>>,
}

/// What a line did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Made {
    /// It made its device.
    Created,
    /// Its device was there, just as it says.
    Unchanged,
}

/// The batches of an import on their way.
pub(super) struct Batches {
    api: web::Data<Api>,
    customer: CustomerId,
    outlook: Outlook,
    flights: VecDeque<Flight>,
}

/// What is assumed of the names of the next batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outlook {
    /// They are free, as in most imports: the commit finds out, and nothing is read.
    Free,
    /// Some are taken, as they were in the last batch: reading first is cheaper than a conflict.
    Taken,
}

/// A batch on its way.
struct Flight {
    entries: Vec<Entry>,
    /// Every name its lines want, whatever becomes of them.
    names: HashSet<Name>,
    fates: Vec<Fate>,
    receipt: Receipt,
    verdict: Option<Result<(), CommitError>>,
}

impl Batches {
    /// The batches of an import that begins.
    pub(super) fn new(api: web::Data<Api>, customer: CustomerId) -> Self {
        Self {
            api,
            customer,
            outlook: Outlook::Free,
            flights: VecDeque::new(),
        }
    }

    /// Whether none is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Whether a batch with these names has to wait for another to land.
    pub(super) fn must_wait(&self, names: &HashSet<Name>) -> bool {
        let shares = |flight: &Flight| !flight.names.is_disjoint(names);
        self.flights.len() >= FLIGHTS_MAX || self.flights.iter().any(shares)
    }

    /// Sends a batch on its way; none on its way may share a name with it.
    pub(super) async fn send(
        &mut self,
        entries: Vec<Entry>,
        names: HashSet<Name>,
    ) -> Result<(), Failure> {
        self.wait_for_room().await?;
        let known = match self.outlook {
            Outlook::Free => Known::default(),
            Outlook::Taken => {
                self.api
                    .store
                    .known(names.iter().cloned().collect())
                    .await?
            }
        };
        self.outlook = Outlook::after(&known);
        let drafts = entries.iter().filter_map(Entry::profile);
        let Decided { batch, answer } = import_devices(&self.customer, drafts, &known);
        let receipt: Receipt = if batch.changes.is_empty() {
            Box::pin(std::future::ready(Ok(())))
        } else {
            self.api.commits.commit(batch)
        };
        self.flights.push_back(Flight {
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
    pub(super) async fn land(&mut self) -> Result<Vec<Settled>, Failure> {
        let Some(mut flight) = self.flights.pop_front() else {
            return Ok(Vec::new());
        };
        match flight.arrive().await {
            Ok(()) => Ok(flight.settled()),
            Err(CommitError::Conflict | CommitError::Full) => {
                self.outlook = Outlook::Taken;
                self.settle_anew(flight.entries).await
            }
            Err(error @ (CommitError::Fenced | CommitError::Unavailable)) => Err(error.into()),
        }
    }

    /// Lands the oldest batch if it is durable, and lets it go if it is not: nothing is decided
    /// anew for an import that has ended.
    pub(super) async fn land_as_it_is(&mut self) -> Option<Vec<Settled>> {
        let mut flight = self.flights.pop_front()?;
        match flight.arrive().await {
            Ok(()) => Some(flight.settled()),
            Err(_) => None,
        }
    }

    async fn settle_anew(&self, entries: Vec<Entry>) -> Result<Vec<Settled>, Failure> {
        let drafts: Vec<&Profile> = entries.iter().filter_map(Entry::profile).collect();
        let outcomes = match self.settle(&drafts).await? {
            Some(fates) => fates.into_iter().map(outcome_of).collect(),
            None => self.settle_each(&drafts).await?,
        };
        Ok(in_order(entries, outcomes))
    }

    async fn settle_each(
        &self,
        drafts: &[&Profile],
    ) -> Result<Vec<Result<Made, Vec<Fault>>>, Failure> {
        let mut outcomes = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let fate = self
                .settle(&[draft])
                .await?
                .and_then(|fates| fates.into_iter().next());
            outcomes.push(match fate {
                Some(fate) => outcome_of(fate),
                None => Err(Failure::busy().into_faults()),
            });
        }
        Ok(outcomes)
    }

    /// Reads, decides and commits until what was decided holds; nothing if others kept being
    /// faster.
    async fn settle(&self, drafts: &[&Profile]) -> Result<Option<Vec<Fate>>, Failure> {
        for _ in 0..RETRIES {
            self.wait_for_room().await?;
            let names = drafts.iter().flat_map(|draft| Name::all_of(draft));
            let known = self.api.store.known(names.collect()).await?;
            let drafts = drafts.iter().copied();
            let Decided { batch, answer } = import_devices(&self.customer, drafts, &known);
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

    async fn expect_customer(&self) -> Result<(), Failure> {
        match self.api.store.customer(self.customer.clone()).await? {
            Some(_) => Ok(()),
            None => Err(Refusal::CustomerUnknown.into()),
        }
    }

    /// An import is in no hurry: whoever waits for an answer goes first.
    async fn wait_for_room(&self) -> Result<(), Failure> {
        for _ in 0..ROOM_LOOKS_MAX {
            match self.api.commits.pressure() {
                Pressure::Open => return Ok(()),
                Pressure::Full => tokio::time::sleep(ROOM_PAUSE).await,
            }
        }
        Err(CommitError::Full.into())
    }
}

impl Outlook {
    fn after(known: &Known) -> Self {
        if known.borne.is_empty() {
            Self::Free
        } else {
            Self::Taken
        }
    }
}

impl Entry {
    /// The device it would make, if it can make one.
    pub(super) fn profile(&self) -> Option<&Profile> {
        self.draft.as_ref().ok()
    }
}

impl Flight {
    async fn arrive(&mut self) -> Result<(), CommitError> {
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        let verdict = self.receipt.as_mut().await;
        self.verdict = Some(verdict);
        verdict
    }

    fn settled(self) -> Vec<Settled> {
        in_order(
            self.entries,
            self.fates.into_iter().map(outcome_of).collect(),
        )
    }
}

fn outcome_of(fate: Fate) -> Result<Made, Vec<Fault>> {
    match fate {
        Fate::Created => Ok(Made::Created),
        Fate::Unchanged => Ok(Made::Unchanged),
        Fate::Refused(names) => Err(Failure::from(Refusal::DeviceExists(names)).into_faults()),
    }
}

/// Gives each line its outcome; there is one for each that had a draft.
fn in_order(entries: Vec<Entry>, outcomes: Vec<Result<Made, Vec<Fault>>>) -> Vec<Settled> {
    let mut outcomes = outcomes.into_iter();
    let settled = entries.into_iter().map(|Entry { line, draft }| Settled {
        line,
        outcome: match draft {
            Err(faults) => Err(faults),
            Ok(_) => outcomes.next().expect("every draft has its fate"),
        },
    });
    settled.collect()
}
