//! Which database do the nodes have? Three PostgreSQL servers under Patroni, which agree by etcd on
//! the primary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use signalbox::rest_client::{ClientCredentials, RestClient};
use tokio::runtime::Runtime;

use super::machine::{DATABASE, ETCD, MACHINES, Machine, PASSWORD, PATRONI};
use super::wait;
use crate::kernel;
use crate::postgres;
use crate::program::Program;

/// Runs etcd, Patroni and its server.
const SCRIPT: &str = include_str!("database_machine.sh");

/// Where the files of the server are, as its configuration says.
const DATA: &str = "var/lib/postgresql/15/signalbox";

/// The longest time until three servers replicate: a new one, or one that has to go back to where
/// another branched off.
const PATIENCE: Duration = Duration::from_secs(180);

/// The servers.
pub(crate) struct DatabaseCluster {
    servers: Vec<DatabaseServer>,
}

struct DatabaseServer {
    machine: Machine,
    configuration: PathBuf,
    data: PathBuf,
    program: Program,
}

impl DatabaseCluster {
    /// Starts the servers in folders of their own, and creates the database.
    pub(crate) fn start(folder: &Path, runtime: &Runtime) -> Self {
        let servers = (1..=MACHINES).map(|number| DatabaseServer::prepare(number, folder));
        let mut cluster = Self {
            servers: servers.collect(),
        };
        for server in &mut cluster.servers {
            server.program.write_line("start");
        }
        cluster.wait_until_whole(runtime);
        let machine = &cluster.servers[0].machine;
        let statements = machine.write("database.sql", &machine.file(DATABASE));
        let mut create = cluster.psql("postgres", "postgres");
        create.args(["-v", "ON_ERROR_STOP=1", "-f"]).arg(statements);
        let created = create.status().is_ok_and(|status| status.success());
        assert!(created, "the database is created");
        cluster
    }

    /// Kills Patroni and the server that is the primary; returns which that was.
    pub(crate) fn kill_primary(&mut self, runtime: &Runtime) -> usize {
        let primary = self.primary(runtime);
        let server = &mut self.servers[primary];
        server.program.write_line("kill");
        let is_done = |line: &str| (line == "killed").then_some(());
        server.program.wait_for("that it is killed", is_done);
        primary
    }

    /// Starts a killed server.
    pub(crate) fn start_again(&mut self, server: usize) {
        self.servers[server].program.write_line("start");
    }

    /// Has another server become the primary.
    pub(crate) fn switch_over(&self, runtime: &Runtime) {
        let primary = &self.servers[self.primary(runtime)];
        let mut switch = Command::new("patronictl");
        switch.arg("-c").arg(&primary.configuration);
        switch.args(["switchover", "--force", "--leader", &primary.machine.name]);
        let switched = switch.stdin(Stdio::null()).output();
        let switched = switched.expect("patronictl is installed");
        assert!(switched.status.success(), "{switched:?}");
    }

    /// Waits until all servers run, one of them as the synchronous standby.
    pub(crate) fn wait_until_whole(&self, runtime: &Runtime) {
        let what = "that the database has a primary and two standbys";
        wait(runtime, PATIENCE, what, async || {
            let members = self.members().await?;
            let has = |role| members.iter().filter(|it| it["role"] == role).count() == 1;
            let primary = members.iter().find(|it| it["role"] == "leader")?;
            let follows = |it: &Value| {
                let runs = it["state"] == "running" || it["state"] == "streaming";
                runs && it["timeline"] == primary["timeline"]
            };
            let is_whole = members.len() == usize::from(MACHINES)
                && has("sync_standby")
                && members.iter().all(follows);
            is_whole.then_some(())
        });
    }

    /// The processor time of the primary, and that of all standbys, in seconds.
    pub(crate) fn processor_s(&self, runtime: &Runtime) -> (f64, f64) {
        let primary = self.primary(runtime);
        let all: Vec<f64> = self
            .servers
            .iter()
            .map(DatabaseServer::processor_s)
            .collect();
        (all[primary], all.iter().sum::<f64>() - all[primary])
    }

    /// A client of the primary, whichever server that is.
    pub(crate) fn psql(&self, role: &str, database: &str) -> Command {
        let hosts = self.servers.iter().map(|it| it.machine.address.to_string());
        let hosts = hosts.collect::<Vec<_>>().join(",");
        let mut psql = Command::new(postgres::programs().join("psql"));
        psql.args(["-q", "-X", "-d"]).arg(format!(
            "host={hosts} user={role} dbname={database} target_session_attrs=read-write \
             connect_timeout=2"
        ));
        psql.env("PGPASSWORD", PASSWORD).stdin(Stdio::null());
        psql
    }

    fn primary(&self, runtime: &Runtime) -> usize {
        wait(runtime, PATIENCE, "that there is a primary", async || {
            let members = self.members().await?;
            let primary = members.iter().find(|it| it["role"] == "leader")?;
            let is_it = |it: &DatabaseServer| primary["name"] == it.machine.name.as_str();
            self.servers.iter().position(is_it)
        })
    }

    /// The servers as Patroni shows them.
    async fn members(&self) -> Option<Vec<Value>> {
        for server in &self.servers {
            let base = format!("http://{}:8008", server.machine.address);
            let patroni = RestClient::new(&base, ClientCredentials::None).ok()?;
            if let Ok(shown) = patroni.read("/cluster").await {
                return shown.at("/members").and_then(Value::as_array).cloned();
            }
        }
        None
    }
}

impl DatabaseServer {
    /// Writes the files of a server and starts its etcd.
    fn prepare(number: u8, folder: &Path) -> Self {
        let machine = Machine::of_database(number, folder);
        let configuration = machine.write("patroni.yml", &machine.file(PATRONI));
        machine.give_to_postgres();
        let data = machine.folder.join(DATA);
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT, "database_machine.sh"]);
        script.arg(&configuration).arg(&data);
        script.env("HOME", &machine.folder);
        script.current_dir(&machine.folder);
        script.envs(machine.variables(ETCD));
        Self {
            program: Program::start(&mut script),
            machine,
            configuration,
            data,
        }
    }

    /// The processor time of the processes of the server, in seconds.
    fn processor_s(&self) -> f64 {
        let lock = fs::read_to_string(self.data.join("postmaster.pid"));
        let server: u32 = lock
            .ok()
            .and_then(|lock| lock.lines().next()?.parse().ok())
            .expect("the server runs");
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
        let children = children.expect("Linux lists them");
        let children = children.split_whitespace().filter_map(|it| it.parse().ok());
        std::iter::once(server)
            .chain(children)
            .map(kernel::processor_s)
            .sum()
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        self.program.close_input();
        self.program.ended();
    }
}
