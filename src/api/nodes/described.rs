//! Which operations list the nodes of the service and drain one? The OpenAPI descriptions.

use engine::limits::SHARDS;
use engine::node::NodeState;

use crate::api::openapi::{ApiOperation, Schema, Tag, names};
use crate::api::page::described::page_of;

/// GET.
pub(in crate::api) fn list() -> ApiOperation {
    let text = "Returns the nodes of the service, the one that started first first: the active \
                one, and those that stand by. A process that is started again is another node. \
                Times are those of the clock of the database. On the embedded store there is one \
                node.";
    ApiOperation::new("listNodes", Tag::Service, "List nodes")
        .description(text)
        .answer(200, page_of(node()), "All nodes, on one page.")
}

/// POST.
pub(in crate::api) fn drain() -> ApiOperation {
    let text = "Has a node stop. Within a heartbeat it accepts no further call and no datagram, \
                completes what is in progress, gives up its shards and ends with status 0; another \
                node takes the shards at once. A node that stands by ends as well. A supervisor \
                that starts the process again gets a node that stands by.";
    ApiOperation::new("drainNode", Tag::Service, "Drain a node")
        .description(text)
        .answer_empty(202, "The node is draining.")
        .refusal(
            409,
            &["ONLY_NODE"],
            "The node is on the embedded store: no other node can take its shards.",
        )
}

fn node() -> Schema {
    let name = Schema::text().example("gateway-1");
    let shards = Schema::whole(0..=u64::from(SHARDS)).example(1_024_u64);
    let addresses = Schema::list(Schema::text().example("coap://[::]:5683"));
    Schema::object()
        .must("id", Schema::uuid(), "The id of the node.")
        .must(
            "name",
            name,
            "The name of the node (`SIGNALBOX_NODE_NAME`).",
        )
        .must(
            "state",
            Schema::word::<NodeState>().example("ACTIVE"),
            "`ACTIVE`: it answers calls, and does what only one node may do. `STANDBY`: it takes \
             over when the active node ends. `DRAINING`: it stops, and takes no shards. `LOST`: it \
             was not heard for as long as a lease lasts.",
        )
        .must(
            "shards",
            shards,
            "How many of the 1,024 shards it holds. It serves the devices of its shards, and \
             delivers to as large a part of the destinations. Nodes that reach each other share \
             the shards; otherwise the active node has all of them.",
        )
        .may_never_null(
            "leaseEndsAt",
            names::instant(),
            "When the lease of the active node ends unless it is renewed. Absent for others, and \
             on the embedded store.",
        )
        .must(
            "version",
            Schema::text().example("0.1.0"),
            "The version of its program.",
        )
        .must(
            "addresses",
            addresses,
            "Where it listens while it is active, as its configuration says.",
        )
        .must("startedAt", names::instant(), "When it started.")
        .must("heartbeatAt", names::instant(), "When it was heard last.")
        .named("Node")
}
