//! Who has the lease as the database answers it, and what does a store still write that another
//! node has taken over from?

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::change::{Batch, Change, Owner};
use engine::ids::{NodeId, Partition};
use engine::node::lease::{
    LeaseAnswer, LeaseHolder, LeaseId, LeaseRequest, LeaseRules, LeaseSight,
};
use engine::node::{KnownNode, NodeState};
use engine::sealed::Sealed;
use socket2::{Domain, Socket, Type};
use store::conformance::samples::{acme, at, batch, device, entry, known};
use store::conformance::wait;
use store::sealed::MasterKey;
use store::{
    Commit, CommitError, DeviceReads, DrainOutcome, Maintenance, NewNode, NodeDatabase, Nodes,
    PostgresNodes, PostgresStore, PostgresUrl, Pressure, Retention, SweepReport, Unavailable,
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
    let free = LeaseHolder::Nobody {
        was_given_up_here: false,
        is_overdue: true,
    };
    assert_eq!(first.active(), (0, free));
    assert_eq!(first.acquire(0), Some(1));
    assert_eq!(second.active(), (1, LeaseHolder::Other));
    assert_eq!(second.acquire(1), None);
    assert_eq!(first.active(), (1, LeaseHolder::Own));

    cluster.end_lease();
    // Nobody has taken it yet.
    assert_eq!(first.active(), (1, LeaseHolder::Own));
    cluster.end_lease();
    assert_eq!(second.acquire(0), None);
    assert_eq!(second.acquire(1), Some(2));
    assert_eq!(first.active(), (2, LeaseHolder::Other));
    // It gives up what it does not have.
    assert_eq!(first.ask(LeaseRequest::Release), LeaseAnswer::Released);
    assert_eq!(second.active(), (2, LeaseHolder::Own));

    assert_eq!(second.ask(LeaseRequest::Release), LeaseAnswer::Released);
    let given_up = |was_given_up_here| {
        let holder = LeaseHolder::Nobody {
            was_given_up_here,
            is_overdue: false,
        };
        (2, holder)
    };
    assert_eq!(second.active(), given_up(true));
    assert_eq!(cluster.node(3, "here").active(), given_up(false));
    let again = cluster.node(4, "there");
    assert_eq!(again.active(), given_up(true));
    assert!(again.see().has_others);
}

#[test]
fn a_process_takes_the_leases_of_its_predecessor_in_the_same_place() {
    let cluster = Cluster::new("places");
    assert_eq!(cluster.node(1, "here").acquire(0), Some(1));
    assert_eq!(cluster.node(2, "there").acquire(1), None);
    let again = cluster.node(3, "here");
    let free = LeaseHolder::Nobody {
        was_given_up_here: false,
        is_overdue: false,
    };
    assert_eq!(again.active(), (1, free));
    assert_eq!(again.acquire(1), Some(2));
}

#[test]
fn nodes_that_reach_each_other_share_the_partitions() {
    let cluster = Cluster::new("shared");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    assert_eq!(first.acquire(0), Some(1));
    assert_eq!(first.see().sharing, [first.id]);
    assert_eq!(second.see().sharing, [first.id, second.id]);
    let all = second.see().leases;
    let partitions: Vec<_> = all[1..].iter().map(|it| (it.id, it.epoch)).collect();
    let taken = second.take(&partitions, false);
    let ids = |leases: &[(LeaseId, u64)]| leases.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!((taken.len(), ids(&taken)), (16, ids(&partitions)));
    // Nobody else has become active by that.
    assert_eq!(first.active(), (1, LeaseHolder::Own));
    assert_eq!(first.take(&taken, false), []);

    let [.., before, (last, epoch)] = *taken else {
        panic!("{taken:?}");
    };
    // It has it in another epoch.
    second.ask(LeaseRequest::GiveUp(last, epoch - 1));
    assert_eq!(first.take(&[(last, epoch)], false), []);
    second.ask(LeaseRequest::GiveUp(last, epoch));
    let both = [before, (last, epoch)];
    assert_eq!(first.take(&both, true), []);
    assert_eq!(first.take(&both, false), [(last, epoch + 1)]);

    let listed = cluster.runtime.block_on(cluster.nodes().nodes()).unwrap();
    let shards: Vec<_> = listed.iter().map(KnownNode::shards).collect();
    assert_eq!(shards, [64, 960]);
    assert_eq!(listed[0].partitions, [Partition(15)]);
    second.ask(LeaseRequest::Beat { is_draining: true });
    assert_eq!(first.see().sharing, [first.id]);
}

#[test]
fn what_is_written_for_a_partition_that_another_node_has_taken_is_refused() {
    let cluster = Cluster::new("partitions");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    let (partition, next) = (Partition(7), LeaseId::Partition(Partition(8)));
    let lease = LeaseId::Partition(partition);
    // Whoever is the active node has no partition by that.
    assert_eq!(second.acquire(0), Some(1));
    let leases = [(lease, 0), (next, 0)];
    assert_eq!(first.take(&leases, false), [(lease, 1), (next, 1)]);
    let (former, later) = (cluster.store_of_partitions(), cluster.store(1));
    let [first_shard, .., last_shard] = *partition.shards().collect::<Vec<_>>() else {
        panic!("a partition has shards");
    };
    let owners = |epoch| {
        let of = |shard| Owner::Shard { shard, epoch };
        [
            Owner::Deliveries { partition, epoch },
            of(first_shard),
            of(last_shard),
        ]
    };
    let numbers = &mut (1..);
    let mut commit = |store: &PostgresStore, owner| {
        let number = numbers.next().unwrap();
        wait(store.commit(Batch {
            owner,
            ..known(&device(&acme(), number))
        }))
    };
    for owner in owners(1) {
        assert_eq!(commit(&former, owner), Ok(()));
    }
    cluster.end_lease();
    assert_eq!(second.take(&[(lease, 1)], false), [(lease, 2)]);
    for owner in owners(1) {
        assert_eq!(commit(&former, owner), Err(CommitError::Fenced));
    }
    for owner in owners(2) {
        assert_eq!(commit(&later, owner), Ok(()));
    }
    // It goes on with what it still has.
    let shard = Partition(8).shards().next().unwrap();
    let kept = Owner::Shard { shard, epoch: 1 };
    assert_eq!(commit(&former, kept), Ok(()));
    assert_eq!(former.pressure(), Pressure::Open);

    // None of them seals with the former key any more.
    let [from, to] = [1, 2].map(|key| MasterKey::from_bytes(&[key; 32]));
    cluster.store_of_partitions().rekey(&from, &to).unwrap();
    assert_eq!(commit(&former, kept), Err(CommitError::Fenced));
    let [of_deliveries, ..] = owners(2);
    assert_eq!(commit(&later, of_deliveries), Err(CommitError::Fenced));
    // Whoever takes it next begins behind that.
    assert_eq!(first.take(&[(next, 1)], false), [(next, 3)]);
}

#[test]
fn a_server_that_is_silent_keeps_no_node_from_another_one() {
    let cluster = Cluster::new("silent");
    cluster.node(2, "there");
    let (_socket, _first, silent) = silent_port();
    let mut options = options(&cluster.server, cluster.schema);
    let (own, schema) = (cluster.server.port(), cluster.schema);
    let url = format!(
        "postgres://signalbox@127.0.0.1:{silent},127.0.0.1:{own}/{DATABASE}\
         ?options=-csearch_path%3D{schema}"
    );
    options.url = PostgresUrl::parse(&url).unwrap();
    let rules = LeaseRules {
        lease_ms: 10_000,
        heartbeat_ms: 2_000,
    };
    let node = NewNode {
        rules,
        ..new_node(1, "here")
    };
    let beat = LeaseRequest::Beat { is_draining: false };
    for _ in 0..8 {
        let database = NodeDatabase::of(&options, node.clone());
        let asked = database.ask(&beat, Duration::from_secs(2));
        let answer = cluster.runtime.block_on(asked);
        assert!(matches!(answer, LeaseAnswer::Seen(_)), "{answer:?}");
    }
}

/// A port at which nothing is answered, not even that a connection is refused: the queue for
/// connections that wait to be accepted has room for one, which is there.
fn silent_port() -> (Socket, TcpStream, u16) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let first = TcpStream::connect(address).unwrap();
    (socket, first, address.port())
}

#[test]
fn a_store_of_a_former_epoch_writes_nothing_any_more() {
    let cluster = Cluster::new("fenced");
    let (first, second) = (cluster.node(1, "here"), cluster.node(2, "there"));
    assert_eq!(first.acquire(0), Some(1));
    let (former, [kept, late]) = (cluster.store(1), [1, 2].map(|it| device(&acme(), it)));
    // None of these batches has an owner: they are compared with the epoch all the same.
    assert_eq!(wait(former.commit(known(&kept))), Ok(()));
    let logged = [1, 200].map(|second| Change::AppendEntry(Box::new(entry(&kept, second, 1))));
    assert_eq!(wait(former.commit(batch(logged.into()))), Ok(()));
    cluster.end_lease();
    assert_eq!(second.acquire(1), Some(2));

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
    first.see();
    assert_eq!(first.acquire(0), Some(1));
    second.see();
    let nodes = cluster.nodes();
    let states = || {
        let nodes = cluster.runtime.block_on(nodes.nodes()).unwrap();
        nodes
            .into_iter()
            .map(|it| (it.id, it.state(), it.is_active, it.lease_ends_at.is_some()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        states(),
        [
            (first.id, NodeState::Active, true, true),
            (second.id, NodeState::Standby, false, false),
        ]
    );
    let drained = |id| cluster.runtime.block_on(nodes.drain(id)).unwrap();
    assert_eq!(drained(NodeId::from_bytes([9; 16])), DrainOutcome::Unknown);
    assert_eq!(drained(second.id), DrainOutcome::Begun);
    assert_eq!(states()[1].1, NodeState::Draining);
    assert!(second.see().is_draining);
    assert_eq!(drained(first.id), DrainOutcome::Begun);
    assert!(first.see().is_draining);

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
        let node = new_node(number, place);
        let id = node.id;
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
        let store = self.store_of_partitions();
        assert_eq!(wait(store.take_over_by_lease(epoch)), Ok(epoch));
        store
    }

    /// The store as a node opens it that is not active.
    fn store_of_partitions(&self) -> PostgresStore {
        open_with(options(&self.server, self.schema))
    }

    /// What time does.
    fn end_lease(&self) {
        for table in ["shard_lease", "partition_lease"] {
            let schema = self.schema;
            let end = format!("UPDATE {schema}.{table} SET ends_at = clock_timestamp()");
            self.server.run(DATABASE, &end);
        }
    }
}

fn new_node(number: u8, place: &str) -> NewNode {
    NewNode {
        id: NodeId::from_bytes([number; 16]),
        name: format!("node-{number}"),
        place: place.to_owned(),
        version: "1.0.0".to_owned(),
        addresses: vec!["coap://[::]:5683".to_owned()],
        rules: RULES,
        shares: Arc::new(AtomicBool::new(true)),
    }
}

impl TestNode<'_> {
    fn ask(&self, request: LeaseRequest) -> LeaseAnswer {
        let asking = self.database.ask(&request, Duration::from_secs(30));
        self.runtime.block_on(asking)
    }

    fn see(&self) -> LeaseSight {
        let answer = self.ask(LeaseRequest::Beat { is_draining: false });
        let LeaseAnswer::Seen(sight) = answer else {
            panic!("the leases are not seen: {answer:?}");
        };
        sight
    }

    /// The lease of the active node: its epoch, and who has it.
    fn active(&self) -> (u64, LeaseHolder) {
        let first = self.see().leases[0];
        assert_eq!(first.id, LeaseId::Active);
        (first.epoch, first.holder)
    }

    /// Becomes active, unless anybody was since this epoch; returns the new one.
    fn acquire(&self, seen: u64) -> Option<u64> {
        let taken = self.take(&[(LeaseId::Active, seen)], true);
        taken.first().map(|(_, epoch)| *epoch)
    }

    fn take(&self, leases: &[(LeaseId, u64)], is_whole: bool) -> Vec<(LeaseId, u64)> {
        let leases = leases.to_vec();
        let answer = self.ask(LeaseRequest::Acquire { leases, is_whole });
        let LeaseAnswer::Acquired(taken) = answer else {
            panic!("no lease is taken: {answer:?}");
        };
        taken
    }
}
