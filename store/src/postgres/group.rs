//! What becomes of each batch of a group: fenced, in conflict, or written with the others in one
//! transaction?
//!
//! ```text
//!  1. BEGIN, the number of the group, the epoch, every row that a batch expects something of
//!  2. each batch is decided in order, by these rows and by what those before it left of them
//!  3. all rows of the group, COMMIT
//! ```
//!
//! The statements of 1 and of 3 are sent without waiting for each. A removal of rows that only the
//! server knows is sent between, with everything before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use deadpool_postgres::ClientWrapper;
use engine::change::{Fence, Owner};
use engine::delivery::backlog::Sequence;
use engine::ids::{CustomerId, Partition};

use super::cell::{Cell, ColumnType};
use super::fault::PostgresFault;
use super::pipeline::Pipeline;
use super::plan::{Condition, Place, RowPlan, Step, Wanted};
use super::sql_types::SqlId;
use super::table::SqlTable;
use super::writes::Writes;
use crate::CommitError;

/// Which group of which process it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupId {
    /// The process.
    pub(super) committer: SqlId,
    /// The number of the group, from 1.
    pub(super) number: i64,
    /// The slot of the counts that the process adds to.
    pub(super) slot: u8,
}

/// What was decided.
#[derive(Default)]
pub(super) struct Decided {
    /// The verdict on each batch.
    pub(super) verdicts: Vec<Result<(), CommitError>>,
    /// The newest number of an event, if the group has events.
    pub(super) newest: Option<Sequence>,
    /// The events that it has: their customers and partitions.
    pub(super) events: Vec<(CustomerId, Partition)>,
    /// Whether another process has taken the store over: then nothing was written.
    pub(super) is_superseded: bool,
}

/// A group that is being decided.
pub(super) struct GroupTransaction<'a> {
    client: &'a ClientWrapper,
    id: GroupId,
    /// What is compared of rows, as the batches decided so far left it.
    rows: HashMap<Place, Option<Vec<u8>>>,
    /// Rows that were expected not to be there, and were not.
    absent: BTreeSet<Place>,
    /// A customer that has devices with an address.
    owners: HashMap<IpAddr, Option<String>>,
    newest: i64,
    writes: Writes,
    decided: Decided,
}

impl<'a> GroupTransaction<'a> {
    /// Begins the transaction of a group of a process that took the store over in an epoch.
    pub(super) async fn begin(
        id: GroupId,
        epoch: u64,
        plans: &[&RowPlan],
        client: &'a ClientWrapper,
    ) -> Result<Self, PostgresFault> {
        let mut group = Self {
            client,
            id,
            rows: HashMap::new(),
            absent: BTreeSet::new(),
            owners: HashMap::new(),
            newest: 0,
            writes: Writes::default(),
            decided: Decided::default(),
        };
        let mut pipeline = Pipeline::default();
        pipeline.add("BEGIN", vec![]);
        // Locks the row: whoever asks after the group waits for the end of the transaction.
        pipeline.add(
            "INSERT INTO committer (id, last_group) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET last_group = excluded.last_group",
            vec![Box::new(id.committer), Box::new(id.number)],
        );
        // Whoever takes the store over waits for the groups of the one before; those of nodes that
        // only have partitions have other fences.
        let begun = match epoch {
            0 => "SELECT epoch FROM store_state",
            1.. => "SELECT epoch FROM store_state FOR SHARE",
        };
        pipeline.add(begun, vec![]);
        let numbers = match plans.iter().any(|plan| plan.needs_numbers()) {
            true => "SELECT newest FROM event_sequence FOR UPDATE",
            false => "SELECT newest FROM event_sequence",
        };
        pipeline.add(numbers, vec![]);
        let answers = group.load(plans, pipeline).await?;
        let number = |place: usize| -> Option<i64> {
            let row = answers.get(place).and_then(|rows| rows.first());
            row.map(|row| row.get(0))
        };
        let newest_epoch = number(2).unwrap_or_default().cast_unsigned();
        group.newest = number(3).unwrap_or_default();
        group.decided.is_superseded = epoch > 0 && epoch < newest_epoch;
        Ok(group)
    }

    /// Decides each batch in order, and writes those that are accepted.
    pub(super) async fn decide(&mut self, plans: &[&RowPlan]) -> Result<(), PostgresFault> {
        for (place, plan) in plans.iter().enumerate() {
            if self.decided.is_superseded {
                self.decided.verdicts.push(Err(CommitError::Fenced));
                continue;
            }
            self.load_missing(&plans[place..]).await?;
            let verdict = match (self.is_fenced(plan.owner), self.all_hold(&plan.checks)) {
                (true, _) => Err(CommitError::Fenced),
                (false, false) => Err(CommitError::Conflict),
                (false, true) => Ok(()),
            };
            if verdict.is_ok() {
                self.apply(plan).await?;
            }
            self.decided.verdicts.push(verdict);
        }
        Ok(())
    }

    /// Ends the transaction. What was decided is put into `sent` before the commit is sent: it
    /// holds if the commit succeeds.
    pub(super) async fn commit(mut self, sent: &mut Option<Decided>) -> Result<(), PostgresFault> {
        let mut pipeline = Pipeline::default();
        self.writes.add_to(&mut pipeline, &self.absent);
        if !self.decided.events.is_empty() {
            pipeline.add(
                "UPDATE event_sequence SET newest = $1",
                vec![Box::new(self.newest)],
            );
            self.decided.newest = Some(Sequence(self.newest.cast_unsigned()));
        }
        // The server commits although it does not wait for its standby if a commit is cancelled.
        pipeline.add("SET LOCAL statement_timeout = 0", vec![]);
        pipeline.add("COMMIT", vec![]);
        *sent = Some(std::mem::take(&mut self.decided));
        pipeline.run(self.client).await?;
        Ok(())
    }

    async fn apply(&mut self, plan: &RowPlan) -> Result<(), PostgresFault> {
        self.record_epoch(plan.owner);
        for step in &plan.steps {
            match step {
                Step::Put(table, row) => {
                    if self.writes.is_before(*table, row) {
                        self.flush(Pipeline::default()).await?;
                    }
                    self.put(*table, row.clone());
                }
                Step::Raise(table, row) => self.writes.raise(*table, row.clone()),
                Step::Remove(table, key) => {
                    if table.layout().compared().is_some() {
                        self.rows.insert((*table, key.clone()), None);
                    }
                    self.writes.remove(*table, key.clone());
                }
                Step::Add(table, row) => self.writes.add(*table, row.clone()),
                Step::AppendEvent(customer, cells) => self.append_event(customer, cells),
                Step::PutDestination(cells) => {
                    let mut row = cells.clone();
                    row.insert(2, self.newest.into());
                    self.put(SqlTable::Destination, row);
                }
                Step::MoveAddress(customer, was, is) => {
                    // Whether another device has the former one, only the server knows.
                    if was.is_some() {
                        self.flush(Pipeline::default()).await?;
                        self.owners.clear();
                    }
                    if let Some(is) = is {
                        let customer = customer.as_str().to_owned();
                        self.owners.insert(is.to_canonical(), Some(customer));
                    }
                }
                Step::RemoveMany(removal) => {
                    let mut pipeline = Pipeline::default();
                    removal.add_to(&mut pipeline, self.id.slot, self.newest);
                    self.flush(pipeline).await?;
                    self.rows.clear();
                    self.owners.clear();
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, table: SqlTable, row: Vec<Cell>) {
        let layout = table.layout();
        if let Some(compared) = layout.compared().and_then(|place| row.get(place)) {
            let place = (table, row[..layout.keys].to_vec());
            self.rows.insert(place, Some(compared.compared()));
        }
        self.writes.put(table, row);
    }

    /// Gives an event the next number.
    fn append_event(&mut self, customer: &CustomerId, cells: &[Cell]) {
        self.newest += 1;
        let mut row = cells.to_vec();
        row.insert(1, self.newest.into());
        if let Some(Cell::Number(partition)) = row.get(3) {
            let partition = Partition(u8::try_from(*partition).unwrap_or_default());
            self.decided.events.push((customer.clone(), partition));
        }
        self.writes.put(SqlTable::Event, row);
    }

    /// Whether an owner of a later epoch is known.
    fn is_fenced(&self, owner: Owner) -> bool {
        let Some((fence, epoch)) = owner.fence() else {
            return false;
        };
        let written = self.rows.get(&epoch_at(fence)).and_then(Option::as_ref);
        let written = written.and_then(|bytes| bytes.as_slice().try_into().ok());
        let written = written.map_or(0, u64::from_be_bytes);
        epoch < written
    }

    /// Records the epoch of an owner that writes.
    fn record_epoch(&mut self, owner: Owner) {
        if let Some((fence, epoch)) = owner.fence() {
            let (table, mut row) = epoch_at(fence);
            let known = self.rows.get(&(table, row.clone()));
            if known != Some(&Some(epoch.to_be_bytes().to_vec())) {
                row.push(epoch.into());
                self.put(table, row);
            }
        }
    }

    fn all_hold(&self, checks: &[Condition]) -> bool {
        checks.iter().all(|check| match check {
            Condition::Row(place, wanted) => {
                let found = self.rows.get(place).and_then(Option::as_ref);
                match wanted {
                    Wanted::Absent => found.is_none(),
                    Wanted::Present => found.is_some(),
                    Wanted::Bytes(bytes) => found == Some(bytes),
                }
            }
            Condition::OnlyOf(ip, customer) => {
                let owner = self.owners.get(ip).and_then(Option::as_ref);
                owner.is_none_or(|owner| *owner == *customer.as_str())
            }
        })
    }

    /// Sends what is to be written, and statements behind it.
    async fn flush(&mut self, behind: Pipeline<'static>) -> Result<(), PostgresFault> {
        let writes = std::mem::take(&mut self.writes);
        let absent = std::mem::take(&mut self.absent);
        let mut pipeline = Pipeline::default();
        writes.add_to(&mut pipeline, &absent);
        pipeline.append(behind);
        pipeline.run(self.client).await?;
        Ok(())
    }

    /// Reads what the first of some batches needs and is not known, and the same of all others.
    async fn load_missing(&mut self, plans: &[&RowPlan]) -> Result<(), PostgresFault> {
        let is_missing = plans.first().is_some_and(|plan| {
            let owner = self.place_of(plan.owner);
            let checks = plan.checks.iter().any(|check| match check {
                Condition::Row(place, _) => !self.rows.contains_key(place),
                Condition::OnlyOf(ip, _) => !self.owners.contains_key(ip),
            });
            checks || owner.is_some_and(|place| !self.rows.contains_key(&place))
        });
        if !is_missing {
            return Ok(());
        }
        self.flush(Pipeline::default()).await?;
        self.rows.clear();
        self.load(plans, Pipeline::default()).await.map(drop)
    }

    /// Reads and locks the rows of which batches expect something; returns the answers to the
    /// statements before.
    async fn load(
        &mut self,
        plans: &[&RowPlan],
        before: Pipeline<'static>,
    ) -> Result<Vec<Vec<tokio_postgres::Row>>, PostgresFault> {
        let mut wanted: BTreeMap<SqlTable, BTreeSet<Vec<Cell>>> = BTreeMap::new();
        let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
        for plan in plans {
            if let Some((table, key)) = self.place_of(plan.owner) {
                wanted.entry(table).or_default().insert(key);
            }
            for check in &plan.checks {
                match check {
                    Condition::Row((table, key), _) => {
                        wanted.entry(*table).or_default().insert(key.clone());
                    }
                    Condition::OnlyOf(ip, _) => drop(addresses.insert(*ip)),
                }
            }
        }
        let ips: Vec<Cell> = addresses.iter().map(|ip| Cell::Ip(*ip)).collect();
        let mut pipeline: Pipeline<'_> = before;
        let before = pipeline.len();
        for (table, keys) in &wanted {
            let layout = table.layout();
            let Some(sql) = layout.compare() else {
                continue;
            };
            let columns = (0..).zip(&layout.columns[..layout.keys]);
            let arrays = columns.map(|(place, (_, column))| {
                column.array(keys.iter().filter_map(move |key| key.get(place)))
            });
            pipeline.add(sql, arrays.collect());
        }
        if !ips.is_empty() {
            pipeline.add(
                "SELECT DISTINCT ON (address) address, customer FROM device \
                 WHERE address = ANY ($1) ORDER BY address, key",
                vec![ColumnType::Ip.array(ips.iter())],
            );
        }
        let mut answers = pipeline.run(self.client).await?;
        let mut found = answers.split_off(before).into_iter();
        for (table, keys) in &wanted {
            let mut compared: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
            for row in found.next().unwrap_or_default() {
                let place: i64 = row.get(0);
                let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
                if let Some(compared) = compared.get_mut(place) {
                    *compared = Some(row.get(1));
                }
            }
            for (key, compared) in keys.iter().zip(compared) {
                self.rows.insert((*table, key.clone()), compared);
            }
        }
        if !ips.is_empty() {
            self.owners
                .extend(addresses.into_iter().map(|ip| (ip, None)));
            for row in found.next().unwrap_or_default() {
                self.owners.insert(row.get(0), Some(row.get(1)));
            }
        }
        self.note_absent(plans);
        Ok(answers)
    }

    /// Notes which rows are not there although another process could put them.
    fn note_absent(&mut self, plans: &[&RowPlan]) {
        for check in plans.iter().flat_map(|plan| &plan.checks) {
            if let Condition::Row(place, Wanted::Absent) = check
                && self.rows.get(place) == Some(&None)
            {
                self.absent.insert(place.clone());
            }
        }
    }

    fn place_of(&self, owner: Owner) -> Option<Place> {
        owner.fence().map(|(fence, _)| epoch_at(fence))
    }
}

/// The row with the newest epoch of an owner.
fn epoch_at(Fence(number): Fence) -> Place {
    (SqlTable::ShardEpoch, vec![number.into()])
}
