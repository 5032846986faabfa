//! How does a test start the real service, kill it and start it again on the same data?

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;

use super::postgres::database_of_tests;
use super::program::Program;

/// A running service with a data directory and ports of its own.
pub(crate) struct Service {
    program: Program,
    data: TempDir,
    settings: Vec<(String, String)>,
    /// The URL of its database, if it has one.
    database: Option<String>,
    /// The address of its API.
    pub(crate) http: SocketAddr,
    /// The CoAP address for devices.
    pub(crate) coap: SocketAddr,
    /// The CoAP address for devices over DTLS.
    pub(crate) coaps: SocketAddr,
    /// The UDP address for bare datagrams.
    pub(crate) udp: SocketAddr,
    /// Whether errors in its log are expected.
    may_fail: bool,
}

/// The addresses it listens on.
#[derive(Clone, Copy)]
struct ServiceAddresses {
    http: SocketAddr,
    coap: SocketAddr,
    coaps: SocketAddr,
    udp: SocketAddr,
}

impl Service {
    /// Starts a service with default settings.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a service with settings from the environment.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_at(own_address(), settings)
    }

    /// Starts a service that listens on every address of the machine.
    pub(crate) fn start_everywhere() -> Self {
        Self::start_everywhere_with(&[])
    }

    /// The same with settings from the environment.
    pub(crate) fn start_everywhere_with(settings: &[(&str, &str)]) -> Self {
        Self::start_at(Ipv4Addr::UNSPECIFIED.into(), settings)
    }

    /// Starts a service on a PostgreSQL database.
    pub(crate) fn start_on(database: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_storing(Some(database.to_owned()), own_address(), settings)
    }

    /// Starts a node that stands by, with the secrets of one that is active on its database, and
    /// its settings but for these.
    pub(crate) fn stand_by_beside(active: &Self, settings: &[(&str, &str)]) -> Self {
        let data = TempDir::new().unwrap();
        for secret in ["operator-token", "master-key"] {
            fs::copy(active.data_dir().join(secret), data.path().join(secret)).unwrap();
        }
        let (ip, database) = (own_address(), active.database.clone());
        let at = |port| SocketAddr::new(ip, port);
        let mut node = Self {
            program: Program::start(&mut Command::new("true")),
            data,
            settings: [&active.settings[..], &owned(settings)].concat(),
            database,
            http: at(8_080),
            coap: at(5_683),
            coaps: at(5_684),
            udp: at(4_445),
            may_fail: false,
        };
        node.stand_by();
        node
    }

    /// Starts the node again, which stands by.
    pub(crate) fn stand_by(&mut self) {
        let mut command = command_of(&self.data, self.database.as_deref(), &self.settings);
        command.arg("--http").arg(self.http.to_string());
        for (flag, address) in [
            ("--coap", self.coap),
            ("--coaps", self.coaps),
            ("--udp", self.udp),
        ] {
            command.arg(flag).arg(address.to_string());
        }
        let mut program = Program::start(&mut command);
        program.follow_up(&mut self.program);
        self.program = program;
        self.wait_for_line("standing by node=");
    }

    /// Stops the process until [`Service::resume`].
    pub(crate) fn pause(&self) {
        self.program.pause();
    }

    /// Lets the process continue.
    pub(crate) fn resume(&self) {
        self.program.resume();
    }

    /// Starts a service on files, wherever the other tests store.
    pub(crate) fn start_on_files(settings: &[(&str, &str)]) -> Self {
        Self::start_storing(None, own_address(), settings)
    }

    fn start_at(ip: IpAddr, settings: &[(&str, &str)]) -> Self {
        Self::start_storing(database_of_tests(), ip, settings)
    }

    fn start_storing(database: Option<String>, ip: IpAddr, settings: &[(&str, &str)]) -> Self {
        let data = TempDir::new().unwrap();
        let settings = owned(settings);
        let any_port = SocketAddr::new(ip, 0);
        let mut command = command_of(&data, database.as_deref(), &settings);
        let (program, doors) = launch(&mut command, [any_port; 3]);
        Self {
            program,
            data,
            settings,
            database,
            http: doors.http,
            coap: doors.coap,
            coaps: doors.coaps,
            udp: doors.udp,
            may_fail: false,
        }
    }

    /// Kills the service, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.program.kill();
    }

    /// Sends SIGTERM, waits for the end and returns the exit status.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.program.terminate();
        self.program.ended()
    }

    /// Sends SIGHUP.
    pub(crate) fn hang_up(&self) {
        self.program.hang_up();
    }

    /// Waits for a line of output that contains a text; lines before it are skipped.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        let has = |line: &str| line.contains(text).then_some(());
        self.program.wait_for(text, has);
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.program.terminate();
    }

    /// Waits until the service has ended and returns the exit status.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.program.ended()
    }

    /// Starts the service again on its data and on the same addresses.
    pub(crate) fn start_again(&mut self) {
        let addresses = [self.coap, self.coaps, self.udp];
        let mut command = command_of(&self.data, self.database.as_deref(), &self.settings);
        let (mut program, doors) = launch(&mut command, addresses);
        program.follow_up(&mut self.program);
        self.program = program;
        self.http = doors.http;
        self.coap = doors.coap;
        self.coaps = doors.coaps;
        self.udp = doors.udp;
    }

    /// Starts the service again with its store in a database, or on its files.
    pub(crate) fn start_again_on(&mut self, database: Option<&str>) {
        self.database = database.map(str::to_owned);
        self.start_again();
    }

    /// Starts the service again on its data with other settings.
    pub(crate) fn start_again_with(&mut self, settings: &[(&str, &str)]) {
        self.settings = owned(settings);
        self.start_again();
    }

    /// Waits until the service has started itself anew.
    pub(crate) fn started_anew(&mut self) {
        self.http = announced(&mut self.program).http;
    }

    /// From now on, errors in its log do not fail the test.
    pub(crate) fn may_fail(&mut self) {
        self.may_fail = true;
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// The operator's token, which the service created at its first start.
    pub(crate) fn operator_token(&self) -> String {
        let token = fs::read_to_string(self.data.path().join("operator-token")).unwrap();
        token.trim().to_owned()
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// A disk reserve larger than the free space, in MiB. To start, the service needs only half of
    /// it.
    pub(crate) fn reserve_above_free(&self) -> String {
        let mut df = Command::new("df");
        let df = df
            .args(["-m", "--output=avail"])
            .arg(self.data_dir())
            .output()
            .unwrap();
        let free = String::from_utf8(df.stdout).unwrap();
        let free: u64 = free.lines().last().unwrap().trim().parse().unwrap();
        (free + free / 2).to_string()
    }

    /// All output so far.
    pub(crate) fn printed(&mut self) -> &[String] {
        self.program.printed()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Whatever a test covers, the service must never panic. A connection that arrives while a
        // stop ends the workers is not accepted, which is correct; the HTTP library logs that as an
        // error.
        let late = |line: &str| line.ends_with(" ERROR actix_server::accept: No workers");
        let may_fail = self.may_fail;
        let fell = |line: &&String| {
            line.contains("panicked at") || line.contains(" ERROR ") && !late(line) && !may_fail
        };
        let failure = self.program.printed().iter().find(fell);
        if !std::thread::panicking() {
            assert_eq!(failure, None);
        }
    }
}

/// The program without settings from the environment of the tests.
pub(crate) fn signalbox() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("SIGNALBOX_")) {
        command.env_remove(name);
    }
    command.env("RUST_BACKTRACE", "1");
    command
}

/// An address that no other service of the tests uses, so that nothing else takes its port while it
/// is down.
pub(crate) fn own_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    if cfg!(not(target_os = "linux")) {
        return IpAddr::V4(Ipv4Addr::LOCALHOST);
    }
    let [_, _, _, process] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    IpAddr::V4(Ipv4Addr::new(127, 33, process, number.max(1)))
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    settings.iter().map(own).collect()
}

/// Where the API listens: at an address of no device, because nothing is sent to a port of the
/// service, and the port of a device might be the same by chance.
const HTTP: &str = "127.255.0.1:0";

fn command_of(data: &TempDir, database: Option<&str>, settings: &[(String, String)]) -> Command {
    let mut command = signalbox();
    command.arg("serve");
    command.arg("--data-dir").arg(data.path());
    if let Some(database) = database {
        command.env("SIGNALBOX_STORE", database);
    }
    command
        .env("SIGNALBOX_STORE_CACHE_MIB", "16")
        // Tests call as fast as they can.
        .env("SIGNALBOX_RATE_LIMIT", "0")
        .env("SIGNALBOX_ADDRESS_RATE_LIMIT", "0");
    for (name, value) in settings {
        command.env(name, value);
    }
    command
}

fn launch(
    command: &mut Command,
    [coap, coaps, udp]: [SocketAddr; 3],
) -> (Program, ServiceAddresses) {
    command.args(["--http", HTTP]);
    command.arg("--coap").arg(coap.to_string());
    command.arg("--coaps").arg(coaps.to_string());
    command.arg("--udp").arg(udp.to_string());
    let mut program = Program::start(command);
    let doors = announced(&mut program);
    (program, doors)
}

fn announced(program: &mut Program) -> ServiceAddresses {
    let mut doors = [const { None }; 4];
    while doors.contains(&None) {
        let (name, address) = program.wait_for("where it listens", listening);
        let door = ["http", "coap", "coaps", "udp"]
            .iter()
            .position(|it| *it == name);
        if let Some(door) = door {
            doors[door] = Some(address);
        }
    }
    let [http, coap, coaps, udp] =
        doors.map(|door| door.expect("the loop ends when all are known"));
    ServiceAddresses {
        http,
        coap,
        coaps,
        udp,
    }
}

/// Reads `listening http=127.0.0.1:8080` as a name and an address.
fn listening(line: &str) -> Option<(String, SocketAddr)> {
    let (name, address) = line.strip_prefix("listening ")?.split_once('=')?;
    Some((name.to_owned(), address.trim().parse().ok()?))
}
