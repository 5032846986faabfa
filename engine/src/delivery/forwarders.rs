//! Which forwarders run? Each destination has one forwarder, which is restored from the store when
//! the service starts, when the destination is created, and after a failure.
//!
//! ```text
//!            handle_restored          handle_ended
//!  Restoring ---------------> Running ------------> Restoring, after a pause
//!   |     ^                      |
//!   +-----+                      | panicked too often within a window
//!   not read: after a pause      v
//!                              Parked: can be removed, and nothing else
//! ```

use std::collections::BTreeMap;
use std::mem;

use crate::change::{Batch, Change, Expect, UniqueName};
use crate::delivery::command::DestinationCommand;
use crate::delivery::destination::Destination;
use crate::ids::{CustomerId, DestinationId, Partition};
use crate::limits::STORE_RETRY_MS;
use crate::moment::Timestamp;
use crate::supervision::Unserved;
use crate::supervision::{ActorFailure, Child, Generation, Supervisor, Verdict};

/// All forwarders; `H` is the handle of a running one.
#[derive(Debug)]
pub struct Forwarders<H> {
    by_destination: BTreeMap<DestinationId, (CustomerId, Child<H, ()>)>,
    supervisor: Supervisor<DestinationId>,
}

/// An effect of the supervisor; `F` is what was read from the store for a destination.
#[derive(Debug, Eq, PartialEq)]
pub enum SupervisorEffect<F> {
    /// Start a forwarder from what was read, and pass its handle to [`Forwarders::handle_spawned`].
    Spawn(Generation, F),
    /// Call [`Forwarders::handle_timeout`] at this time.
    RestoreAt(Timestamp),
    /// Log for the operator that a forwarder failed and is restored.
    LogRestore(ActorFailure),
    /// Log for the operator and the customer that a forwarder panicked repeatedly and is parked.
    LogParked,
}

/// Where a command goes.
#[derive(Debug, PartialEq)]
pub enum CommandRoute<'a, H> {
    /// To the forwarder.
    Deliver(&'a H),
    /// The destination has no forwarder. This batch removes it; call [`Forwarders::handle_removed`]
    /// once it is durable.
    Remove(Batch),
    /// Back to the caller.
    Refuse(Unserved),
}

/// Why a forwarder ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ForwarderExit {
    /// Its destination is removed.
    Removed,
    /// It failed, and its destination still exists.
    Failed(ActorFailure),
}

/// The store could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DestinationUnreadable;

impl<H> Forwarders<H> {
    /// Begins to restore a destination that is durable. The caller reads it and passes the result
    /// to [`Forwarders::handle_restored`].
    pub fn restore(&mut self, id: DestinationId, customer: CustomerId) {
        let restoring = (customer, Child::Restoring(()));
        self.by_destination.insert(id, restoring);
    }

    /// Handles the result of reading a destination: found, removed, or not readable.
    pub fn handle_restored<F>(
        &mut self,
        now: Timestamp,
        id: DestinationId,
        found: Result<Option<F>, DestinationUnreadable>,
    ) -> Option<SupervisorEffect<F>> {
        // Its customer may have been removed in the meantime.
        self.handle_timeout(id)?;
        match found {
            Ok(Some(found)) => {
                let generation = self.supervisor.next_generation();
                Some(SupervisorEffect::Spawn(generation, found))
            }
            Ok(None) => {
                self.handle_removed(id);
                None
            }
            Err(DestinationUnreadable) => Some(retry(now)),
        }
    }

    /// Handles the start of a forwarder.
    pub fn handle_spawned(&mut self, id: DestinationId, generation: Generation, handle: H) {
        if let Some((_, child)) = self.by_destination.get_mut(&id) {
            *child = Child::Running { handle, generation };
        }
    }

    /// Handles the end of a forwarder; a report of an earlier generation is ignored.
    pub fn handle_ended<F>(
        &mut self,
        now: Timestamp,
        (id, generation): (DestinationId, Generation),
        end: ForwarderExit,
    ) -> Vec<SupervisorEffect<F>> {
        let child = self.by_destination.get_mut(&id).map(|(_, child)| child);
        match (child.filter(|it| it.is_running_as(generation)), end) {
            (None, _) => Vec::new(),
            (Some(_), ForwarderExit::Removed) => {
                self.handle_removed(id);
                Vec::new()
            }
            (Some(child), ForwarderExit::Failed(failure)) => {
                match self.supervisor.judge(now, id, failure) {
                    Verdict::Restore => {
                        *child = Child::Restoring(());
                        vec![SupervisorEffect::LogRestore(failure), retry(now)]
                    }
                    Verdict::Park => {
                        *child = Child::Parked;
                        vec![SupervisorEffect::LogParked]
                    }
                }
            }
        }
    }

    /// Forgets a destination whose removal is durable.
    pub fn handle_removed(&mut self, id: DestinationId) {
        self.by_destination.remove(&id);
        self.supervisor.forget(&id);
    }

    /// Forgets the destinations of a customer that is being removed; returns its running
    /// forwarders, which must end.
    pub fn forget_customer(&mut self, customer: &CustomerId) -> Vec<H> {
        self.forget(|_, of| of == customer)
    }

    /// Forgets the destinations of a partition, which another node delivers to from now on; returns
    /// their running forwarders, which must end.
    pub fn forget_partition(&mut self, partition: Partition) -> Vec<H> {
        self.forget(|id, _| id.partition() == partition)
    }

    /// Whether a destination has a forwarder, or is to have one.
    pub fn has(&self, id: DestinationId) -> bool {
        self.by_destination.contains_key(&id)
    }

    fn forget(&mut self, is_gone: impl Fn(&DestinationId, &CustomerId) -> bool) -> Vec<H> {
        let all = mem::take(&mut self.by_destination).into_iter();
        let (gone, remaining): (BTreeMap<_, _>, _) =
            all.partition(|(id, (customer, _))| is_gone(id, customer));
        self.by_destination = remaining;
        gone.keys().for_each(|id| self.supervisor.forget(id));
        let running = gone.into_values().filter_map(|(_, child)| match child {
            Child::Running { handle, .. } => Some(handle),
            Child::Restoring(()) | Child::Parked => None,
        });
        running.collect()
    }

    /// The pause before a restore is over: returns the customer of the destination if it still has
    /// to be restored.
    pub fn handle_timeout(&self, id: DestinationId) -> Option<CustomerId> {
        match self.by_destination.get(&id)? {
            (customer, Child::Restoring(())) => Some(customer.clone()),
            (_, Child::Running { .. } | Child::Parked) => None,
        }
    }

    /// Where a command goes. A parked destination can still be removed, and nothing else.
    pub fn route(&self, id: DestinationId, command: &DestinationCommand) -> CommandRoute<'_, H> {
        match (self.by_destination.get(&id), command) {
            (None, _) => CommandRoute::Refuse(Unserved::Unknown),
            (Some((_, Child::Running { handle, .. })), _) => CommandRoute::Deliver(handle),
            (Some((customer, Child::Parked)), DestinationCommand::Remove) => {
                let (customer, destination) = (customer.clone(), id);
                let remove = Change::RemoveDestination {
                    customer,
                    destination,
                };
                CommandRoute::Remove(Batch {
                    changes: vec![remove],
                    ..Batch::default()
                })
            }
            (Some((_, Child::Parked | Child::Restoring(()))), _) => {
                CommandRoute::Refuse(Unserved::Busy)
            }
        }
    }
}

impl<H> Default for Forwarders<H> {
    fn default() -> Self {
        Self {
            by_destination: BTreeMap::new(),
            supervisor: Supervisor::default(),
        }
    }
}

fn retry<F>(now: Timestamp) -> SupervisorEffect<F> {
    SupervisorEffect::RestoreAt(now.plus_ms(STORE_RETRY_MS))
}

/// The batch that creates a destination.
pub fn creation(destination: Box<Destination>) -> Batch {
    // A destination of a removed customer would belong to the next customer with the same id.
    let expected = Expect::Taken(UniqueName::Customer(destination.customer.clone()));
    Batch {
        changes: vec![Change::PutDestination(destination)],
        expects: vec![expected],
        ..Batch::default()
    }
}

#[cfg(test)]
mod tests;
