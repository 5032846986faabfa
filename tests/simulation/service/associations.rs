//! The DTLS of the arbiters: a machine for each, and the sessions that one run keeps for the next.

use std::collections::BTreeMap;

use engine::associations::export::SessionRecord;
use engine::associations::server_key::ServerKey;
use engine::associations::{
    AssociationCounts, AssociationLimits, AssociationSecrets, Associations,
};
use engine::dispatch::shard_map::{ArbiterId, ShardMap};

/// The associations of all arbiters that run.
pub(crate) struct ServiceAssociations {
    of_arbiters: BTreeMap<ArbiterId, Associations>,
    /// When each is woken next.
    armed_at_ms: BTreeMap<ArbiterId, i64>,
    /// The sessions of the run before, by arbiter.
    kept: BTreeMap<ArbiterId, Vec<SessionRecord>>,
    /// With what sessions are resumed by their ids.
    cached: Vec<SessionRecord>,
    /// They outlive the process, as in the store.
    secrets: AssociationSecrets,
}

impl ServiceAssociations {
    pub(super) fn new() -> Self {
        Self {
            of_arbiters: BTreeMap::new(),
            armed_at_ms: BTreeMap::new(),
            kept: BTreeMap::new(),
            cached: Vec::new(),
            secrets: secrets(),
        }
    }

    /// Begins with the sessions that were kept, which nobody can begin with again.
    pub(super) fn begin(&mut self, here: ArbiterId, shard_map: ShardMap) {
        let limits = AssociationLimits {
            sessions_max: 100,
            handshakes_max: 20,
            ..AssociationLimits::default()
        };
        let kept = self.kept.remove(&here).unwrap_or_default();
        let mut begun = Associations::new(here, shard_map, limits, &self.secrets, &kept);
        self.cached.iter().for_each(|it| begun.cache(it));
        self.of_arbiters.insert(here, begun);
    }

    /// Keeps the sessions of an arbiter for its next run; returns how many records they are.
    pub(crate) fn keep(&mut self, here: ArbiterId) -> u64 {
        let mut records = Vec::new();
        if let Some(associations) = self.of_arbiters.get_mut(&here) {
            associations.export(|record| records.push(record.to_vec().into()));
        }
        let count = records.len() as u64;
        self.kept.insert(here, records);
        count
    }

    /// Keeps with what a session is resumed by its id, at every arbiter and after a crash.
    pub(crate) fn cache(&mut self, record: SessionRecord) {
        let arbiters = self.of_arbiters.values_mut();
        arbiters.for_each(|it| it.cache(&record));
        self.cached.push(record);
    }

    /// Loses every session of an arbiter that is not kept.
    pub(super) fn end(&mut self, here: ArbiterId) {
        self.of_arbiters.remove(&here);
        self.armed_at_ms.remove(&here);
    }

    /// Loses every session that is not kept.
    pub(super) fn crash(&mut self) {
        self.of_arbiters.clear();
        self.armed_at_ms.clear();
    }

    pub(crate) fn of(&mut self, arbiter: ArbiterId) -> Option<&mut Associations> {
        self.of_arbiters.get_mut(&arbiter)
    }

    /// Whether an arbiter has to be woken at this time, because it would be woken later.
    pub(crate) fn arm(&mut self, arbiter: ArbiterId, at_ms: i64) -> bool {
        let armed_at_ms = self.armed_at_ms.get(&arbiter);
        let is_earlier = armed_at_ms.is_none_or(|armed_at_ms| at_ms < *armed_at_ms);
        if is_earlier {
            self.armed_at_ms.insert(arbiter, at_ms);
        }
        is_earlier
    }

    pub(crate) fn disarm(&mut self, arbiter: ArbiterId, now_ms: i64) {
        if self
            .armed_at_ms
            .get(&arbiter)
            .is_some_and(|it| *it <= now_ms)
        {
            self.armed_at_ms.remove(&arbiter);
        }
    }

    /// What happened at an arbiter since it began.
    pub(crate) fn counts(&self, arbiter: ArbiterId) -> Option<AssociationCounts> {
        self.of_arbiters.get(&arbiter).map(Associations::counts)
    }
}

fn secrets() -> AssociationSecrets {
    AssociationSecrets {
        cookies: [1; 32],
        tickets: [2; 32],
        server_key: ServerKey::from_scalar(&[3; 32]).expect("a number below the order of P-256"),
    }
}
