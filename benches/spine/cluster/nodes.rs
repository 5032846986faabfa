//! Which nodes serve the devices? Three processes on one database, one of which is active.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use signalbox::rest_client::ClientCredentials;
use tokio::runtime::Runtime;

use super::balancer::NodeAddresses;
use super::machine::{MACHINES, Machine, NODE, NODE_SECRET, PASSWORD};
use super::wait;
use crate::program::Program;
use crate::service::{OPERATOR, Service};

/// The nodes of the operator's API.
const NODES: &str = "/operator-api/v1/nodes";

/// The exit status of a node whose lease another one has.
const SUPERSEDED: i32 = 75;

/// The longest time for a start or a take-over.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many tries that no event uses them up in any fault, and what the bench needs of loopback.
const SETTINGS: [(&str, &str); 4] = [
    ("SIGNALBOX_ALLOW_PRIVATE_DESTINATIONS", "true"),
    (
        "SIGNALBOX_DELIVERY_RETRY_MS",
        "100,200,400,800,1600,3200,5000,5000,5000,5000,5000,5000",
    ),
    ("SIGNALBOX_LOG_FORMAT", "json"),
    ("SIGNALBOX_RATE_LIMIT", "0"),
];

/// The nodes.
pub(crate) struct Nodes {
    /// What the nodes are upgraded to.
    program: PathBuf,
    machines: Vec<Machine>,
    running: Vec<Service>,
    /// What each node is started with.
    programs: Vec<PathBuf>,
}

impl Nodes {
    /// Starts the nodes with a program, in folders of their own; they are upgraded to another one.
    pub(crate) fn start(
        (first, program): (&Path, &Path),
        folder: &Path,
        runtime: &Runtime,
    ) -> Self {
        let machines: Vec<Machine> = (1..=MACHINES)
            .map(|number| Machine::of_node(number, folder))
            .collect();
        let running = (1..).zip(&machines).map(|(number, machine)| {
            machine.write("etc/signalbox/database-password", PASSWORD);
            machine.write("etc/signalbox/node-secret", NODE_SECRET);
            start(first, number, machine)
        });
        let mut nodes = Self {
            running: running.collect(),
            program: program.to_owned(),
            programs: vec![first.to_owned(); machines.len()],
            machines,
        };
        nodes.wait_until_whole(runtime);
        nodes
    }

    /// Where the balancer finds them.
    pub(crate) fn addresses(&mut self) -> Vec<NodeAddresses> {
        let address = |node: &mut Service| NodeAddresses {
            coap: node.coap(),
            http: node.http,
        };
        self.running.iter_mut().map(address).collect()
    }

    /// All of them, the active one among them.
    pub(crate) fn all(&self) -> &[Service] {
        &self.running
    }

    /// Waits until one of them is active, and the others stand by and relay to it. One that ends
    /// meanwhile, because another was faster once the database was back, is started again.
    pub(crate) fn wait_until_whole(&mut self, runtime: &Runtime) {
        let what = "that one node is active and the others relay to it";
        wait(runtime, PATIENCE, what, async || {
            self.start_again();
            let listed = self.listed().await?;
            let are = |state| listed.iter().filter(|it| it["state"] == state).count();
            let standing_by = self.running.len() - 1;
            for node in &self.running {
                let api = node.api(ClientCredentials::None);
                api.read("/readyz").await.ok()?;
            }
            (are("ACTIVE") == 1 && are("STANDBY") == standing_by).then_some(())
        });
    }

    /// The nodes, as one of them lists them.
    async fn listed(&self) -> Option<Vec<Value>> {
        for node in &self.running {
            let api = node.api(ClientCredentials::Bearer(OPERATOR.to_owned()));
            if let Ok(listed) = api.read(NODES).await {
                return listed.at("/items")?.as_array().cloned();
            }
        }
        None
    }

    /// Which one is active, by its name.
    pub(crate) fn active(&self, runtime: &Runtime) -> usize {
        wait(runtime, PATIENCE, "that a node is active", async || {
            let listed = self.listed().await?;
            let active = listed.iter().find(|it| it["state"] == "ACTIVE")?;
            let named = |machine: &Machine| active["name"] == machine.name.as_str();
            self.machines.iter().position(named)
        })
    }

    /// Drains the active node by the API.
    pub(crate) fn drain(&self, active: usize, runtime: &Runtime) {
        let api = self.running[active].api(ClientCredentials::Bearer(OPERATOR.to_owned()));
        runtime.block_on(async {
            let listed = self.listed().await.expect("a node lists all");
            let own = listed.iter().find(|it| it["state"] == "ACTIVE");
            let id = own.and_then(|it| it["id"].as_str()).expect("it has an id");
            let path = format!("{NODES}/{id}/drain");
            let drained = api.post(&path, &Value::Null).await;
            drained.expect("the active node is drained");
        });
    }

    /// The process of a node.
    pub(crate) fn program(&mut self, node: usize) -> &mut Program {
        self.running[node].program()
    }

    /// Waits until a node has ended as one does that was stopped.
    pub(crate) fn stopped(&mut self, node: usize) {
        let status = self.program(node).ended();
        assert!(status.success(), "a stopped node ended with {status}");
    }

    /// Waits until a node has ended as one does that another has superseded.
    pub(crate) fn superseded(&mut self, node: usize) {
        let status = self.program(node).ended();
        assert_eq!(status.code(), Some(SUPERSEDED), "a former node ended");
    }

    /// Starts the nodes again that have ended, as their supervisor does.
    pub(crate) fn start_again(&mut self) {
        for node in 0..self.running.len() {
            if self.program(node).has_ended() {
                self.restart(node);
            }
        }
    }

    /// Starts a stopped node with the program that all are upgraded to.
    pub(crate) fn upgrade(&mut self, node: usize) {
        self.programs[node].clone_from(&self.program);
        self.restart(node);
    }

    /// The nodes but for one.
    pub(crate) fn others(&self, than: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.running.len()).filter(move |node| *node != than)
    }

    fn restart(&mut self, node: usize) {
        let number = u8::try_from(node + 1).expect("they are few");
        let mut next = start(&self.programs[node], number, &self.machines[node]);
        next.program().follow_up(self.running[node].program());
        self.running[node] = next;
    }

    /// Writes what each node has logged into its folder.
    pub(crate) fn write_logs(&mut self) {
        for (node, machine) in self.running.iter_mut().zip(&self.machines) {
            machine.write("log", &node.program().printed().join("\n"));
        }
    }
}

/// Starts a node, whose links are in place of the servers.
fn start(program: &Path, number: u8, machine: &Machine) -> Service {
    let mut settings = machine.variables(NODE);
    for (_, value) in &mut settings {
        for server in 1..=MACHINES {
            let (direct, link) = (Machine::database(server), Machine::link(number, server));
            *value = value.replace(&direct.to_string(), &link.to_string());
        }
    }
    let more = SETTINGS.iter();
    settings.extend(more.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Service::start_node(program, &settings)
}
