//! How does a test start the real service, kill it and start it again on the same data?

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;

use super::program::Program;

/// A running service on a data directory of its own and ports of its own.
pub(crate) struct Service {
    program: Program,
    data: TempDir,
    settings: Vec<(String, String)>,
    /// Where its API listens.
    pub(crate) http: SocketAddr,
    /// Where devices reach it.
    pub(crate) coap: SocketAddr,
    /// Where devices reach it that speak no protocol.
    pub(crate) udp: SocketAddr,
}

/// Where it listens.
#[derive(Clone, Copy)]
struct ServiceAddresses {
    http: SocketAddr,
    coap: SocketAddr,
    udp: SocketAddr,
}

impl Service {
    /// Starts one with default settings.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with settings from the environment.
    pub(crate) fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_at(own_address(), settings)
    }

    /// Starts one that listens on every address of the machine.
    pub(crate) fn start_everywhere() -> Self {
        Self::start_at(Ipv4Addr::UNSPECIFIED.into(), &[])
    }

    fn start_at(ip: IpAddr, settings: &[(&str, &str)]) -> Self {
        let data = TempDir::new().unwrap();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings: Vec<(String, String)> = settings.iter().map(own).collect();
        let any_port = SocketAddr::new(ip, 0);
        let (program, doors) = launch(&data, &settings, any_port, any_port);
        Self {
            program,
            data,
            settings,
            http: doors.http,
            coap: doors.coap,
            udp: doors.udp,
        }
    }

    /// Ends it without a word, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.program.kill();
    }

    /// Asks it to end, waits until it has and says how.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.program.terminate();
        self.program.ended()
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.program.terminate();
    }

    /// Waits until it has ended and says how.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.program.ended()
    }

    /// Starts it again on its data, where its devices know it.
    pub(crate) fn start_again(&mut self) {
        let (mut program, doors) = launch(&self.data, &self.settings, self.coap, self.udp);
        program.follow_up(&mut self.program);
        self.program = program;
        self.http = doors.http;
        self.coap = doors.coap;
        self.udp = doors.udp;
    }

    /// Starts it again on its data with other settings.
    pub(crate) fn start_again_with(&mut self, settings: &[(&str, &str)]) {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.settings = settings.iter().map(own).collect();
        self.start_again();
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// The operator's token, which the service made at its first start.
    pub(crate) fn operator_token(&self) -> String {
        let token = fs::read_to_string(self.data.path().join("operator-token")).unwrap();
        token.trim().to_owned()
    }

    /// Where it keeps everything.
    pub(crate) fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// A reserve that the disk has not, in MiB; to start, the service needs half of it.
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

    /// Everything it printed until now.
    pub(crate) fn printed(&mut self) -> &[String] {
        self.program.printed()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Whatever a test is about: the service never falls over.
        // A connection that comes while a stop sends the workers home is not taken, which is right;
        // the HTTP library calls that an error.
        let late = |line: &str| line.ends_with(" ERROR actix_server::accept: No workers");
        let fell = |line: &&String| {
            line.contains("panicked at") || line.contains(" ERROR ") && !late(line)
        };
        let said = self.program.printed().iter().find(fell);
        if !std::thread::panicking() {
            assert_eq!(said, None);
        }
    }
}

/// The program, free of whatever settings the tests' own environment has.
pub(crate) fn signalbox() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_signalbox"));
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("SIGNALBOX_")) {
        command.env_remove(name);
    }
    command.env("RUST_BACKTRACE", "1");
    command
}

/// An address that no other service of the tests has: while one is down, nobody takes its port.
fn own_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    if cfg!(not(target_os = "linux")) {
        return IpAddr::V4(Ipv4Addr::LOCALHOST);
    }
    let [_, _, _, process] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    IpAddr::V4(Ipv4Addr::new(127, 33, process, number.max(1)))
}

fn launch(
    data: &TempDir,
    settings: &[(String, String)],
    coap: SocketAddr,
    udp: SocketAddr,
) -> (Program, ServiceAddresses) {
    let mut command = signalbox();
    command
        .arg("serve")
        .args(["--http", "127.0.0.1:0"])
        .arg("--coap")
        .arg(coap.to_string())
        .arg("--udp")
        .arg(udp.to_string());
    command.arg("--data-dir").arg(data.path());
    command
        .env("SIGNALBOX_COAPS", "127.0.0.1:0")
        .env("SIGNALBOX_STORE_CACHE_MIB", "16");
    for (name, value) in settings {
        command.env(name, value);
    }
    let mut program = Program::start(&mut command);
    let mut doors = [const { None }; 3];
    while doors.contains(&None) {
        let (name, address) = program.hear("where it listens", listening);
        let door = ["http", "coap", "udp"].iter().position(|it| *it == name);
        if let Some(door) = door {
            doors[door] = Some(address);
        }
    }
    let [http, coap, udp] = doors.map(|door| door.expect("the loop ends when all are known"));
    (program, ServiceAddresses { http, coap, udp })
}

/// `listening http=127.0.0.1:8080` as a name and an address.
fn listening(line: &str) -> Option<(String, SocketAddr)> {
    let (name, address) = line.strip_prefix("listening ")?.split_once('=')?;
    Some((name.to_owned(), address.trim().parse().ok()?))
}
