//! Who has the lease as the database answers it, and what does a store still write that another
//! node has taken over from?

use std::time::Duration;

use engine::change::Change;
use engine::ids::NodeId;
use engine::node::NodeState;
use engine::node::lease::{LeaseAnswer, LeaseRequest, LeaseRules, LeaseSight};
use engine::sealed::Sealed;
use store::conformance::samples::{acme, at, batch, device, entry, known};
use store::conformance::wait;
use store::{
    Commit, CommitError, DeviceReads, DrainOutcome, Maintenance, NewNode, NodeDatabase, Nodes,
    PostgresNodes, PostgresStore, Pressure, Retention, SweepReport, Unavailable,
};
use tokio::runtime::{Builder, Runtime};

use crate::postgres::PostgresServer;
use crate::{DATABASE, open_with, options};

/// Longer than a test.
const RULES: LeaseRules = LeaseRules {
    lease_ms: 600_000,
    heartbeat_ms: 60_000,
};

#[test]
fn a_lease_is_taken_once_it_is_free_and_lost_with_it() {
    let cluster = Cluster::new("leases");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    let free = LeaseSight {
        epoch: 0,
        is_free: true,
        was_given_up_here: false,
        has_others: false,
        is_draining: false,
    };
    assert_eq!(first.ask(LeaseRequest::Look), LeaseAnswer::Seen(free));
    assert_eq!(first.acquire(0), LeaseAnswer::Granted(1));
    let held = LeaseSight {
        epoch: 1,
        is_free: false,
        has_others: true,
        ..free
    };
    assert_eq!(second.ask(LeaseRequest::Look), LeaseAnswer::Seen(held));
    assert_eq!(second.acquire(1), LeaseAnswer::Taken);
    assert_eq!(first.renew(1), renewed());

    cluster.end_lease();
    // Nobody has taken it yet.
    assert_eq!(first.renew(1), renewed());
    cluster.end_lease();
    assert_eq!(second.acquire(0), LeaseAnswer::Taken);
    assert_eq!(second.acquire(1), LeaseAnswer::Granted(2));
    assert_eq!(first.renew(1), LeaseAnswer::Superseded);
    // It gives up what it does not have.
    assert_eq!(first.ask(LeaseRequest::Release), LeaseAnswer::Released);
    assert_eq!(second.renew(2), renewed());

    assert_eq!(second.ask(LeaseRequest::Release), LeaseAnswer::Released);
    assert_eq!(second.renew(2), LeaseAnswer::Superseded);
    let given_up = |was_given_up_here| {
        LeaseAnswer::Seen(LeaseSight {
            epoch: 2,
            was_given_up_here,
            ..free
        })
    };
    let elsewhere = cluster.node(3, "here");
    assert_eq!(elsewhere.ask(LeaseRequest::Look), given_up(false));
    let LeaseAnswer::Seen(sight) = cluster.node(4, "there").ask(LeaseRequest::Look) else {
        panic!("the lease is not seen");
    };
    assert!(sight.was_given_up_here && sight.has_others);
}

#[test]
fn a_process_takes_the_lease_of_its_predecessor_in_the_same_place() {
    let cluster = Cluster::new("places");
    assert_eq!(cluster.node(1, "here").acquire(0), LeaseAnswer::Granted(1));
    assert_eq!(cluster.node(2, "there").acquire(1), LeaseAnswer::Taken);
    let again = cluster.node(3, "here");
    let LeaseAnswer::Seen(sight) = again.ask(LeaseRequest::Look) else {
        panic!("the lease is not seen");
    };
    assert!(sight.is_free && !sight.was_given_up_here);
    assert_eq!(again.acquire(1), LeaseAnswer::Granted(2));
}

#[test]
fn a_store_of_a_former_epoch_writes_nothing_any_more() {
    let cluster = Cluster::new("fenced");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    assert_eq!(first.acquire(0), LeaseAnswer::Granted(1));
    let (former, [kept, late]) = (cluster.store(1), [1, 2].map(|it| device(&acme(), it)));
    // None of these batches has an owner: they are compared with the epoch all the same.
    assert_eq!(wait(former.commit(known(&kept))), Ok(()));
    let logged = [1, 200].map(|second| Change::AppendEntry(Box::new(entry(&kept, second, 1))));
    assert_eq!(wait(former.commit(batch(logged.into()))), Ok(()));
    cluster.end_lease();
    assert_eq!(second.acquire(1), LeaseAnswer::Granted(2));

    let entries = || {
        cluster
            .server
            .run(DATABASE, "SELECT count(*) FROM fenced.log_entry")
    };
    let before = |entries_before| Retention {
        entries_before,
        ..Retention::NOTHING
    };
    // Rows of a day, and all of it.
    let (some, day) = (at(100), at(10 * 86_400));
    for due in [some, day] {
        let swept = wait(former.sweep(before(due), 100));
        assert_eq!(swept, Ok(SweepReport::default()));
        assert_eq!(entries(), "2\n");
    }
    let key = Sealed::from_bytes(vec![1; 40].into());
    assert_eq!(wait(former.server_key(key.clone())), Err(Unavailable));
    assert_eq!(wait(former.commit(known(&late))), Err(CommitError::Fenced));
    assert_eq!(former.pressure(), Pressure::Failed);

    let store = cluster.store(2);
    assert_eq!(wait(store.profile(kept.key())), Ok(Some(kept)));
    assert_eq!(wait(store.profile(late.key())), Ok(None));
    assert_eq!(wait(store.server_key(key.clone())), Ok(key));
    for (due, left) in [(some, "1\n"), (day, "0\n")] {
        wait(store.sweep(before(due), 100)).unwrap();
        assert_eq!(entries(), left);
    }
    assert_eq!(wait(store.commit(known(&late))), Ok(()));
}

#[test]
fn nodes_are_listed_with_their_states_and_drained_by_their_id() {
    let cluster = Cluster::new("listed");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    assert_eq!(first.acquire(0), LeaseAnswer::Granted(1));
    assert_eq!(first.renew(1), renewed());
    second.ask(LeaseRequest::Look);
    let nodes = cluster.nodes();
    let states = || {
        let nodes = cluster.runtime.block_on(nodes.nodes()).unwrap();
        nodes
            .into_iter()
            .map(|it| (it.id, it.state(), it.shards, it.lease_ends_at.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        states(),
        [
            (first.id, NodeState::Active, 1_024, true),
            (second.id, NodeState::Standby, 0, false),
        ]
    );
    let drained = |id| cluster.runtime.block_on(nodes.drain(id)).unwrap();
    assert_eq!(drained(NodeId::from_bytes([9; 16])), DrainOutcome::Unknown);
    assert_eq!(drained(second.id), DrainOutcome::Begun);
    assert_eq!(states()[1].1, NodeState::Draining);
    let LeaseAnswer::Seen(sight) = second.ask(LeaseRequest::Look) else {
        panic!("the lease is not seen");
    };
    assert!(sight.is_draining);
    assert_eq!(drained(first.id), DrainOutcome::Begun);
    let is_draining = true;
    assert_eq!(first.renew(1), LeaseAnswer::Renewed { is_draining });

    // A node that was not heard for a lease, and one that holds it still.
    let unheard = "UPDATE listed.node SET heartbeat_at = clock_timestamp() - interval '1 hour'";
    cluster.server.run(DATABASE, unheard);
    assert_eq!(
        [states()[0].1, states()[1].1],
        [NodeState::Draining, NodeState::Lost]
    );
    cluster.end_lease();
    assert_eq!(states()[0].1, NodeState::Lost);
}

/// A server, and a schema in it.
struct Cluster {
    server: PostgresServer,
    schema: &'static str,
    runtime: Runtime,
}

struct TestNode<'a> {
    id: NodeId,
    database: NodeDatabase,
    runtime: &'a Runtime,
}

impl Cluster {
    fn new(schema: &'static str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self {
            server: PostgresServer::start_without_fsync(),
            schema,
            runtime,
        }
    }

    /// A process in a place, which has joined.
    fn node(&self, number: u8, place: &str) -> TestNode<'_> {
        let id = NodeId::from_bytes([number; 16]);
        let node = NewNode {
            id,
            name: format!("node-{number}"),
            place: place.to_owned(),
            version: "1.0.0".to_owned(),
            addresses: vec!["coap://[::]:5683".to_owned()],
            rules: RULES,
        };
        let database = NodeDatabase::of(&options(&self.server, self.schema), node);
        self.runtime.block_on(database.join()).unwrap();
        TestNode {
            id,
            database,
            runtime: &self.runtime,
        }
    }

    /// The nodes, as one that has no lease asks for them.
    fn nodes(&self) -> PostgresNodes {
        let _runtime = self.runtime.enter();
        PostgresNodes::of(&options(&self.server, self.schema))
    }

    /// The store as the holder of an epoch opens it.
    fn store(&self, epoch: u64) -> PostgresStore {
        let mut options = options(&self.server, self.schema);
        options.epoch = Some(epoch);
        let store = open_with(options);
        assert_eq!(wait(store.take_over()), Ok(epoch));
        store
    }

    /// What time does.
    fn end_lease(&self) {
        let schema = self.schema;
        let end = format!("UPDATE {schema}.shard_lease SET ends_at = clock_timestamp()");
        self.server.run(DATABASE, &end);
    }
}

impl TestNode<'_> {
    fn ask(&self, request: LeaseRequest) -> LeaseAnswer {
        let asking = self.database.ask(request, Duration::from_secs(30));
        self.runtime.block_on(asking)
    }

    fn acquire(&self, seen: u64) -> LeaseAnswer {
        self.ask(LeaseRequest::Acquire { seen })
    }

    fn renew(&self, epoch: u64) -> LeaseAnswer {
        let is_draining = false;
        self.ask(LeaseRequest::Renew { epoch, is_draining })
    }
}

fn renewed() -> LeaseAnswer {
    LeaseAnswer::Renewed { is_draining: false }
}
