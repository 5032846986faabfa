//! The DTLS of the arbiters: a machine for each, and the sessions that one process keeps for the
//! next.

use engine::associations::export::SessionRecord;
use engine::associations::server_key::ServerKey;
use engine::associations::{
    AssociationCounts, AssociationLimits, AssociationSecrets, Associations,
};
use engine::dispatch::shard_map::{ArbiterId, ShardMap};

/// The associations of all arbiters; empty while the service is down.
pub(crate) struct ServiceAssociations {
    of_arbiters: Vec<Associations>,
    /// When each is woken next.
    armed_at_ms: Vec<Option<i64>>,
    /// The sessions of the process before, by arbiter.
    kept: Vec<Vec<SessionRecord>>,
    /// With what sessions are resumed by their ids.
    cached: Vec<SessionRecord>,
    /// They outlive the process, as in the store.
    secrets: AssociationSecrets,
}

impl ServiceAssociations {
    pub(super) fn new() -> Self {
        Self {
            of_arbiters: Vec::new(),
            armed_at_ms: Vec::new(),
            kept: Vec::new(),
            cached: Vec::new(),
            secrets: secrets(),
        }
    }

    /// Starts with the sessions that were kept, which nobody can start with again.
    pub(super) fn start(&mut self, shard_map: ShardMap) {
        let limits = AssociationLimits {
            sessions_max: 100,
            handshakes_max: 20,
            ..AssociationLimits::default()
        };
        let secrets = &self.secrets;
        let mut kept = std::mem::take(&mut self.kept);
        let arbiters = shard_map.arbiters();
        let associations = arbiters.map(|here| {
            let kept = kept.get_mut(here.index()).map(std::mem::take);
            let kept = kept.unwrap_or_default();
            let mut associations = Associations::new(here, shard_map, limits, secrets, &kept);
            self.cached.iter().for_each(|it| associations.cache(it));
            associations
        });
        self.of_arbiters = associations.collect();
        self.armed_at_ms = vec![None; self.of_arbiters.len()];
    }

    /// Keeps the sessions for the next start; returns how many records they are.
    pub(crate) fn keep(&mut self) -> u64 {
        let export = |associations: &mut Associations| {
            let mut records = Vec::new();
            associations.export(|record| records.push(record.to_vec().into()));
            records
        };
        self.kept = self.of_arbiters.iter_mut().map(export).collect();
        self.kept.iter().map(|records| records.len() as u64).sum()
    }

    /// Keeps with what a session is resumed by its id, at every arbiter and after a crash.
    pub(crate) fn cache(&mut self, record: SessionRecord) {
        let arbiters = self.of_arbiters.iter_mut();
        arbiters.for_each(|it| it.cache(&record));
        self.cached.push(record);
    }

    /// Loses every session that is not kept.
    pub(super) fn crash(&mut self) {
        self.of_arbiters.clear();
    }

    pub(crate) fn of(&mut self, arbiter: ArbiterId) -> &mut Associations {
        &mut self.of_arbiters[arbiter.index()]
    }

    /// Whether an arbiter has to be woken at this time, because it would be woken later.
    pub(crate) fn arm(&mut self, arbiter: ArbiterId, at_ms: i64) -> bool {
        let armed_at_ms = &mut self.armed_at_ms[arbiter.index()];
        let is_earlier = armed_at_ms.is_none_or(|armed_at_ms| at_ms < armed_at_ms);
        if is_earlier {
            *armed_at_ms = Some(at_ms);
        }
        is_earlier
    }

    pub(crate) fn disarm(&mut self, arbiter: ArbiterId, now_ms: i64) {
        self.armed_at_ms[arbiter.index()].take_if(|at_ms| *at_ms <= now_ms);
    }

    /// What happened in the process, by arbiter.
    pub(crate) fn counts(&self) -> impl Iterator<Item = AssociationCounts> {
        self.of_arbiters.iter().map(Associations::counts)
    }
}

fn secrets() -> AssociationSecrets {
    AssociationSecrets {
        cookies: [1; 32],
        tickets: [2; 32],
        server_key: ServerKey::from_scalar(&[3; 32]).expect("a number below the order of P-256"),
    }
}
