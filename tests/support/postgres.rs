//! How does a test get a PostgreSQL server, and databases in it?
//!
//! The server is that of the machine, of which `cargo xtask prepare` installs Debian's package.
//! With `TEST_STORE=postgres` in the environment every service of a test program has a database of
//! its own, in one server for all.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use super::program::Program;

/// Where Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// What a server is started by.
const SCRIPT: &str = include_str!("postgres_server.sh");

/// A server of its own. It ends, and its files are removed, when this value is dropped, or with the
/// test program.
pub(crate) struct PostgresServer {
    program: Program,
    port: u16,
}

impl PostgresServer {
    /// Starts a server that loses nothing it has committed.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server that loses what it has committed by a power cut alone, which is faster.
    pub(crate) fn start_without_fsync() -> Self {
        Self::start_with(&["fsync=off"])
    }

    /// Starts such a server of another version, with its programs.
    pub(crate) fn start_of(programs: &Path) -> Self {
        Self::start_by(programs, None, &["fsync=off"])
    }

    /// Starts a server that speaks TLS with `server.crt` and `server.key` in a folder.
    pub(crate) fn start_with_tls(folder: &Path) -> Self {
        Self::start_by(&programs(), Some(folder), &[])
    }

    /// Starts a server that archives its WAL beside its data.
    pub(crate) fn start_with_archive() -> Self {
        // It runs in the folder of its data.
        let archiving = "archive_command=test -d ../archive && cp %p ../archive/%f";
        Self::start_with(&["archive_mode=on", archiving])
    }

    fn start_with(settings: &[&str]) -> Self {
        Self::start_by(&programs(), None, settings)
    }

    fn start_by(programs: &Path, tls: Option<&Path>, settings: &[&str]) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "postgres_server.sh"]);
        command.arg(programs).arg(port.to_string());
        command.arg(tls.unwrap_or_else(|| Path::new("")));
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let mut server = Self {
            program: Program::start(&mut command),
            port,
        };
        server.start_again();
        server
    }

    /// Starts the stopped or killed server again.
    pub(crate) fn start_again(&mut self) {
        self.program.write_line("start");
        self.program.wait_for("that it runs", |line| {
            let is_ready = line.ends_with("database system is ready to accept connections");
            is_ready.then_some(())
        });
    }

    /// Kills every process of the server, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.tell("kill", "killed");
    }

    /// Ends all connections and stops the server.
    pub(crate) fn stop(&mut self) {
        self.tell("stop", "stopped");
    }

    /// Makes a base backup.
    pub(crate) fn save(&mut self) {
        self.tell("save", "saved");
    }

    /// Stops the server, and starts it with what it had at a time.
    pub(crate) fn restore(&mut self, time: &str) {
        self.run("postgres", "SELECT pg_switch_wal()");
        self.stop();
        self.tell(&format!("restore {time}"), "restored");
        self.start_again();
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Creates a database and returns its URL.
    pub(crate) fn create_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("signalbox_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.run("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://signalbox@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs a statement in a database and returns what it prints.
    pub(crate) fn run(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(programs().join("psql"));
        psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        psql.args(["-U", "signalbox", "-d", database, "-c", statement]);
        let output = psql.output().unwrap();
        assert!(output.status.success(), "{statement}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn tell(&mut self, command: &str, done: &str) {
        self.program.write_line(command);
        let is_done = |line: &str| (line == done).then_some(());
        self.program.wait_for(done, is_done);
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.program.close_input();
        self.program.ended();
    }
}

/// Whether the tests are to run on PostgreSQL.
pub(crate) fn is_on_postgres() -> bool {
    let store = std::env::var("TEST_STORE").ok();
    let known = [None, Some("postgres")];
    assert!(
        known.contains(&store.as_deref()),
        "TEST_STORE is postgres or absent"
    );
    store.is_some()
}

/// The URL of a new database, if the tests are to run on PostgreSQL.
pub(crate) fn database_of_tests() -> Option<String> {
    static SERVER: OnceLock<Mutex<PostgresServer>> = OnceLock::new();
    if !is_on_postgres() {
        return None;
    }
    // It ends with the input of its script, which this process closes when it ends.
    let server = SERVER.get_or_init(|| Mutex::new(PostgresServer::start_without_fsync()));
    Some(server.lock().unwrap().create_database())
}

/// The folder of the programs of the newest version.
pub(crate) fn programs() -> PathBuf {
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok())
        .max();
    let newest = newest.unwrap_or_else(|| panic!("no PostgreSQL in {VERSIONS}"));
    Path::new(VERSIONS).join(newest.to_string()).join("bin")
}
