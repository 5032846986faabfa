//! Does a device on libcoap register, answer and survive a lost datagram?
//!
//! libcoap's client registers from a port; after it has ended, libcoap's server answers on that
//! port. For the service both are one device.

use std::net::UdpSocket;
use std::process::Command;

use serde_json::json;

use crate::vocabulary::caller::Caller;
use crate::vocabulary::lwm2m::{outcome, read, write};
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

#[test]
fn libcoap_registers_updates_and_deregisters() {
    let setup = TestService::new("127.0.9.30");
    let device = setup.port();
    let answer = device.register();
    assert_eq!(answer.code, "2.01", "{answer:?}");
    let location = answer.location();
    assert!(location.starts_with("/rd/"), "{answer:?}");
    assert_eq!(device.ask("post", &location, &[]).code, "2.04");
    let new_lifetime = format!("{location}?lt=600");
    assert_eq!(device.ask("post", &new_lifetime, &[]).code, "2.04");
    assert_eq!(device.ask("delete", &location, &[]).code, "2.02");
    assert_eq!(
        device.ask("post", &location, &[]).code,
        "4.04",
        "it has left"
    );
    let refused = setup.caller.try_action(ID, &read("/3/0/15")).expect(409);
    assert_eq!(
        refused["errors"][0]["code"], "DEVICE_NOT_REGISTERED",
        "{refused}"
    );
}

#[test]
fn libcoap_registers_in_blocks() {
    let setup = TestService::new("127.0.9.33");
    let device = setup.port();
    let path = format!("/rd?lwm2m=1.1&ep={ID}&lt=300&b=U");
    let links = "</>;rt=\"oma.lwm2m\";ct=110,</1/0>,</3/0>,</3303/0>;ver=1.1";
    let answer = device.ask("post", &path, &["-t", "40", "-b", "16", "-e", links]);
    assert_eq!(answer.code, "2.01", "{answer:?}");
    assert_eq!(device.ask("post", &answer.location(), &[]).code, "2.04");
    let shown = setup.caller.inspect(ID);
    let objects = json!([
        { "id": 1, "instances": [0] },
        { "id": 3, "instances": [0] },
        { "id": 3303, "version": "1.1", "instances": [0] },
    ]);
    assert_eq!(shown["registration"]["objects"], objects, "{shown}");
}

#[test]
fn libcoap_is_written_and_read_and_refuses_missing_resources() {
    let setup = TestService::new("127.0.9.31");
    let device = setup.port();
    assert_eq!(device.register().code, "2.01");
    let _server = device.serve(&[]);
    // The server creates the resource, then changes it, and answers without a content format.
    for (data, code) in [("Europe/Oslo", "201"), ("Europe/Rome", "204")] {
        let action = setup.caller.perform(ID, &write("/3/0/15", data));
        assert_eq!(outcome(&action), ("SUCCEEDED", code), "{action}");
        let action = setup.caller.perform(ID, &read("/3/0/15"));
        assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
        assert_eq!(action["resultData"]["payload"], data);
    }
    let action = setup.caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("FAILED", "404"), "{action}");
}

#[test]
fn a_request_to_libcoap_is_retransmitted_after_a_lost_answer() {
    let setup = TestService::new("127.0.9.32");
    let device = setup.port();
    assert_eq!(device.register().code, "2.01");
    let mut server = device.serve(&["-l", "1"]);
    let action = setup.caller.perform(ID, &write("/3/0/15", "Europe/Oslo"));
    assert_eq!(action["status"], "SUCCEEDED", "{action}");
    assert_eq!(
        action["sendAttempts"], 1,
        "a repeated datagram is not another attempt"
    );
    let ids = ids_of("PUT", server.printed());
    assert!(ids.len() >= 2, "the first answer was lost: {ids:?}");
    assert!(
        ids.iter().all(|id| *id == ids[0]),
        "a repetition is the same message: {ids:?}"
    );
}

const ID: &str = "8944000000000000002";

/// A service, a caller of its API and one device it knows.
struct TestService {
    service: Service,
    caller: Caller,
    address: String,
}

impl TestService {
    fn new(address: &str) -> Self {
        let service = Service::start_with(&[("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "500")]);
        let caller = Caller::of_new_customer(&service, "Lamp Works");
        caller.create_device(ID, address);
        Self {
            service,
            caller,
            address: address.to_owned(),
        }
    }

    /// A port of the device that is not in use.
    fn port(&self) -> Port {
        let probe = UdpSocket::bind((self.address.as_str(), 0)).unwrap();
        let number = probe.local_addr().unwrap().port().to_string();
        Port {
            address: self.address.clone(),
            number,
            service: self.service.coap.to_string(),
        }
    }
}

/// The device's address and port, used by one libcoap program after the other.
struct Port {
    address: String,
    number: String,
    service: String,
}

impl Port {
    fn register(&self) -> Answer {
        let path = format!("/rd?lwm2m=1.1&ep={ID}&lt=300&b=U");
        // 40 is application/link-format.
        self.ask("post", &path, &["-t", "40", "-e", "</1/0>,</3/0>"])
    }

    /// Sends one request with libcoap's client and returns the answer.
    fn ask(&self, method: &str, path: &str, arguments: &[&str]) -> Answer {
        let mut command = Command::new(libcoap("client"));
        command.args(["-v", "7", "-B", "20", "-m", method]);
        command
            .args(["-a", &self.address, "-p", &self.number])
            .args(arguments);
        command.arg(format!("coap://{}{path}", self.service));
        Answer::among(&Program::start(&mut command).finish())
    }

    /// Starts libcoap's server, which stores what is written to it.
    fn serve(&self, arguments: &[&str]) -> Program {
        let mut command = Command::new(libcoap("server"));
        command.args(["-v", "7", "-d", "10"]);
        command
            .args(["-A", &self.address, "-p", &self.number])
            .args(arguments);
        let mut program = Program::start(&mut command);
        program.wait_for("that it listens", |line| {
            line.contains("created UDP").then_some(())
        });
        program
    }
}

/// The message ids of all requests with this method in the output of a libcoap program.
pub(crate) fn ids_of<'l>(method: &str, lines: &'l [String]) -> Vec<&'l str> {
    let mark = format!(" c:{method} ");
    let requests = lines.iter().filter(|line| line.contains(&mark));
    requests
        .filter_map(|line| line.split(" i:").nth(1)?.get(..4))
        .collect()
}

/// Debian builds each program once per TLS library, with the library in its name; others build one.
pub(crate) fn libcoap(part: &str) -> String {
    let plain = format!("coap-{part}");
    let names = [format!("{plain}-notls"), plain];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders);
    let found = places.find_map(|folder| names.iter().find(|name| folder.join(name).is_file()));
    found
        .unwrap_or_else(|| panic!("`cargo xtask prepare` installs coap-{part}"))
        .clone()
}

/// The answer that libcoap's client prints.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: String,
    options: String,
}

impl Answer {
    /// Reads `v:1 t:ACK c:2.01 i:c471 {01} [ Location-Path:rd, Location-Path:x ]`. Of several
    /// answers, as for blocks, the last one counts.
    pub(crate) fn among(lines: &[String]) -> Self {
        let answer = lines.iter().rev().find_map(|line| {
            let (_, rest) = line.strip_prefix("v:1 ")?.split_once(" c:")?;
            let (code, rest) = rest.split_once(' ')?;
            let is_answer = code.starts_with(['2', '4', '5']);
            let options = rest.split('[').nth(1)?.split(']').next()?;
            let options = options.trim().to_owned();
            is_answer.then(|| Self {
                code: code.to_owned(),
                options,
            })
        });
        answer.unwrap_or_else(|| panic!("no answer in\n{}", lines.join("\n")))
    }

    fn location(&self) -> String {
        let parts = self.options.split(", ");
        let parts = parts.filter_map(|part| part.strip_prefix("Location-Path:"));
        parts.map(|part| format!("/{part}")).collect()
    }
}
