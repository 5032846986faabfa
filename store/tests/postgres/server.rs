//! A PostgreSQL server of a test, in a temporary directory and on a Unix socket in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use store::{PostgresOptions, PostgresStore, PostgresUrl};
use tempfile::TempDir;

/// How long a server may take to start on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);

/// How a server keeps what is committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Durability {
    /// As servers do.
    Fsync,
    /// In memory, which is faster: nothing is killed in that test.
    None,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    directory: TempDir,
    programs: PathBuf,
    durability: Durability,
}

impl Server {
    /// Starts a server with an empty database.
    pub(crate) fn start(durability: Durability) -> Self {
        let directory = tempfile::tempdir().unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(directory.path()));
        }
        let server = Self {
            directory,
            programs: programs(),
            durability,
        };
        let mut initdb = server.program("initdb");
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8"]);
        run(initdb
            .args(["--locale=C", "--no-sync"])
            .arg("--pgdata")
            .arg(server.data()));
        server.restart();
        server
    }

    /// Starts the server again after it was killed. Its processes may hold their memory for a
    /// moment.
    pub(crate) fn restart(&self) {
        let fsync = match self.durability {
            Durability::Fsync => "on",
            Durability::None => "off",
        };
        let settings = format!(
            "-k {} -c listen_addresses= -c fsync={fsync} -c max_connections=60",
            self.directory.path().display()
        );
        let begun = Instant::now();
        loop {
            let mut start = self.program("pg_ctl");
            start.arg("--pgdata").arg(self.data()).arg("--log");
            start.arg(self.directory.path().join("log"));
            start.args(["--options", &settings, "--wait", "start"]);
            start.stdout(Stdio::null()).stderr(Stdio::null());
            if start.status().unwrap().success() {
                return;
            }
            assert!(begun.elapsed() < START_MAX, "the server does not start");
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&self) {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        run(Command::new("kill").args(["-9", pid.lines().next().unwrap()]));
    }

    /// Opens a store in a schema, which is created if it does not exist.
    pub(crate) fn open(&self, schema: &str) -> PostgresStore {
        self.execute(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
        let url = PostgresUrl::parse(&self.url(schema)).unwrap();
        PostgresStore::open(PostgresOptions::at(url, no_trust())).unwrap()
    }

    /// The address of the server, for a schema.
    pub(crate) fn url(&self, schema: &str) -> String {
        let directory = self.directory.path().to_str().unwrap();
        let host = directory.replace('/', "%2F");
        format!("postgres://postgres@{host}/postgres?options=-csearch_path%3D{schema}")
    }

    /// Runs a statement.
    pub(crate) fn execute(&self, sql: &str) {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.arg("--host").arg(self.directory.path());
        psql.args(["--username=postgres", "--quiet", "--no-psqlrc"]);
        run(psql
            .args(["--set=ON_ERROR_STOP=1", "--set=client_min_messages=warning"])
            .args(["--command", sql])
            .env("PGOPTIONS", "-cclient_min_messages=warning"));
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A program of the server, which refuses to be run by root.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command.current_dir("/");
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        stop.arg("--pgdata").arg(self.data());
        stop.args(["--mode", "immediate", "stop"]);
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// TLS that trusts nobody: a Unix socket needs none.
pub(crate) fn no_trust() -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Where the programs of the newest server are.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.map(|version| version.unwrap().path().join("bin"));
    let newest = versions.filter(|bin| bin.join("initdb").exists()).max();
    newest.expect("PostgreSQL is installed: run `cargo xtask prepare`")
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(Path::new("/proc/self")).unwrap().uid() == 0
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
