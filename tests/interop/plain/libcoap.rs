//! Is data that libcoap's client posts stored, and does libcoap's server receive and answer
//! requests?

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use protocol::coap::message::{Message, MessageId};
use serde_json::Value;
use tempfile::TempDir;

use super::{TestService, bytes_of, large, text_of};
use crate::libcoap::{Answer, ids_of, libcoap};
use crate::vocabulary::lwm2m::outcome;
use crate::vocabulary::plain::{ReportedData, carrying, coap};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;

/// How often a long transfer is checked for its end.
const LOOK: Duration = Duration::from_millis(200);

#[test]
fn data_from_libcoap_is_stored_unchanged() {
    let setup = TestService::new("127.0.10.10");
    let client = Client::of(&setup);
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(client.post("/?t=meter", b"21.5", &[]).code, "2.04");
    assert_eq!(client.post("/?t=meter/raw", &bytes, &[]).code, "2.04");
    assert_eq!(client.post("/?t=meter", b"22", &["-N"]).code, "2.04");
    setup.expect_reported(&[
        ReportedData::over_coap("meter", *b"21.5"),
        ReportedData::over_coap("meter/raw", bytes),
        ReportedData::over_coap("meter", *b"22"),
    ]);
}

#[test]
fn data_in_blocks_from_libcoap_is_one_event() {
    let setup = TestService::new("127.0.10.11");
    let client = Client::of(&setup);
    let body = large();
    let mut expected = Vec::new();
    for size in [1_024, 256, 64] {
        let arguments = ["-b", &size.to_string()];
        let output = client.converse("/?t=log", body.as_bytes(), &arguments);
        assert_eq!(Answer::among(&output).code, "2.04", "{size}");
        let continues = output.iter().filter(|line| line.contains(" c:2.31 "));
        assert_eq!(continues.count(), body.len().div_ceil(size) - 1, "{size}");
        expected.push(ReportedData::over_coap("log", body.as_bytes()));
    }
    setup.expect_reported(&expected);
}

#[test]
fn data_retransmitted_by_libcoap_is_stored_once() {
    let setup = TestService::new("127.0.10.12");
    let client = Client::of(&setup);
    let body = large();
    let arguments = ["-b", "1024", "-l", "1,4,5,9"];
    let output = client.converse("/?t=log", body.as_bytes(), &arguments);
    assert_eq!(Answer::among(&output).code, "2.04");
    assert!(repeated(&output, "POST") >= 4, "{output:?}");
    setup.expect_reported(&[ReportedData::over_coap("log", body)]);
}

#[test]
fn invalid_data_from_libcoap_is_refused_with_its_reason() {
    let setup = TestService::with("127.0.10.13", &[("SIGNALBOX_DATA_BYTES_MAX", "1000")]);
    let client = Client::of(&setup);
    let body = large();
    for (path, payload, arguments, code) in [
        ("/", "x", [].as_slice(), "4.00"),
        ("/?t=a%2B", "x", &[], "4.00"),
        ("/?t=a", "", &[], "4.00"),
        ("/?t=a", "x", &["-O", "65003,x"], "4.02"),
        ("/elsewhere?t=a", "x", &[], "4.04"),
        ("/?t=a", &body, &["-b", "64"], "4.13"),
    ] {
        let answer = client.post(path, payload.as_bytes(), arguments);
        assert_eq!(answer.code, code, "{path} {arguments:?}");
    }
    let stranger = Client {
        ip: "127.0.10.14".to_owned(),
        ..Client::of(&setup)
    };
    assert_eq!(stranger.post("/?t=a", b"x", &[]).code, "4.01");
    setup.expect_reported(&[]);
}

#[test]
fn libcoap_receives_requests_with_every_method() {
    let setup = TestService::new("127.0.10.15");
    let server = LibcoapServer::start(&setup, &[]);
    for (body, code) in [
        (server.request("GET", "/mode"), "404"),
        (carrying(server.request("PUT", "/mode"), "eco"), "201"),
        (carrying(server.request("PUT", "/mode"), "boost"), "204"),
        (server.request("GET", "/mode"), "205"),
        (carrying(server.request("PATCH", "/mode"), "x"), "405"),
        (server.request("DELETE", "/mode"), "202"),
        (server.request("GET", "/mode"), "404"),
    ] {
        let action = setup.perform(&body);
        let status = if code.starts_with('2') {
            "SUCCEEDED"
        } else {
            "FAILED"
        };
        assert_eq!(outcome(&action), (status, code), "{action}");
    }
}

#[test]
fn a_response_of_libcoap_is_bytes_unless_its_format_is_text() {
    let setup = TestService::new("127.0.10.16");
    let server = LibcoapServer::start(&setup, &[]);
    let action = setup.perform(&server.request("GET", "/.well-known/core"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert!(text_of(&action).contains("</async>"), "{action}");
    let action = setup.perform(&server.request("GET", "/"));
    let greeting = String::from_utf8(bytes_of(&action)).unwrap();
    assert!(greeting.contains("libcoap"), "{greeting}");
}

#[test]
fn libcoap_may_send_a_separate_response() {
    let setup = TestService::new("127.0.10.17");
    let server = LibcoapServer::start(&setup, &[]);
    let action = setup.perform(&server.request("GET", "/async?1"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(bytes_of(&action), b"done");
}

#[test]
fn a_large_body_reaches_libcoap_and_comes_back() {
    let setup = TestService::new("127.0.10.18");
    let server = LibcoapServer::start(&setup, &[]);
    let put = carrying(server.request("PUT", "/page"), &large());
    let action = setup.perform(&put);
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"), "{action}");
    let action = setup.perform(&server.request("GET", "/page"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    assert_eq!(bytes_of(&action), large().as_bytes());
}

#[test]
fn a_large_body_reaches_libcoap_through_losses_within_one_attempt() {
    let setup = TestService::with("127.0.10.19", &[("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "200")]);
    let mut server = LibcoapServer::start(&setup, &["-l", "1,3,4,10,20,21"]);
    let action = setup.perform(&carrying(server.request("PUT", "/page"), &large()));
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"), "{action}");
    assert_eq!(action["sendAttempts"], 1, "{action}");
    assert!(repeated(server.program.printed(), "PUT") >= 6);
    let action = setup.perform(&server.request("GET", "/page"));
    assert_eq!(bytes_of(&action), large().as_bytes());
}

/// Five lost answers in a row: as many as the transmissions of one request. The last block is not
/// lost: libcoap's server takes its retransmission for a new body.
#[test]
fn a_mebibyte_reaches_libcoap_and_comes_back_through_losses() {
    const WHILE_PUT: &str = "2,4,100-104,300,500-502";
    const WHILE_GOT: &str = "1200,1300-1304,1500,1700-1702";
    let setup = TestService::with("127.0.10.21", &[("SIGNALBOX_COAP_ACK_TIMEOUT_MS", "30")]);
    let losses = format!("{WHILE_PUT},{WHILE_GOT}");
    let server = LibcoapServer::start_quietly(&setup, &["-l", &losses]);
    let whole = large().repeat(53);
    assert!(whole.len() > 1_024 * 1_024);
    let put = carrying(server.request("PUT", "/firmware"), &whole);
    let action = patiently_final(&setup, &setup.create("COAP", &put));
    assert_eq!(outcome(&action), ("SUCCEEDED", "201"));
    assert_eq!(action["sendAttempts"], 1);
    let get = server.request("GET", "/firmware");
    let action = patiently_final(&setup, &setup.create("COAP", &get));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"));
    assert!(
        bytes_of(&action) == whole.as_bytes(),
        "what came back is what was sent"
    );
}

/// A request once it is final; there is no deadline while blocks are transferred.
fn patiently_final(setup: &TestService, id: &str) -> Value {
    const PATIENCE: Duration = Duration::from_secs(180);
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        let action = setup.caller.action(id);
        if action["status"] != "IN_PROGRESS" {
            return action;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        until("another look", || (looked.elapsed() > LOOK).then_some(()));
    }
}

/// How many messages with this method were retransmitted.
fn repeated(output: &[String], method: &str) -> usize {
    let ids = ids_of(method, output);
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    ids.len() - distinct.len()
}

/// A device that sends requests with libcoap's client.
struct Client {
    ip: String,
    service: String,
    folder: TempDir,
}

impl Client {
    fn of(setup: &TestService) -> Self {
        Self {
            ip: setup.ip.clone(),
            service: setup.service.coap.to_string(),
            folder: TempDir::new().unwrap(),
        }
    }

    /// Posts bytes and returns the last answer.
    fn post(&self, path: &str, payload: &[u8], arguments: &[&str]) -> Answer {
        Answer::among(&self.converse(path, payload, arguments))
    }

    /// Posts bytes and returns the output of the client.
    fn converse(&self, path: &str, payload: &[u8], arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new(libcoap("client"));
        command.args(["-v", "7", "-B", "30", "-m", "post"]);
        command.args(["-a", &self.ip]).args(arguments);
        if !payload.is_empty() {
            command.arg("-f").arg(self.written(payload));
        }
        command.arg(format!("coap://{}{path}", self.service));
        Program::start(&mut command).finish()
    }

    fn written(&self, payload: &[u8]) -> PathBuf {
        let path = self.folder.path().join("payload");
        fs::write(&path, payload).unwrap();
        path
    }
}

/// A device that is libcoap's server, which stores what is put to it.
pub(super) struct LibcoapServer {
    pub(super) port: u16,
    program: Program,
}

impl LibcoapServer {
    pub(super) fn start(setup: &TestService, arguments: &[&str]) -> Self {
        let port = setup.free_port();
        let mut command = Command::new(libcoap("server"));
        command.args(["-v", "7", "-d", "10", "-A", &setup.ip]);
        command.args(["-p", &port.to_string()]).args(arguments);
        let mut program = Program::start(&mut command);
        program.wait_for("that it listens", |line| {
            line.contains("created UDP").then_some(())
        });
        Self { port, program }
    }

    /// Starts a server that does not print each message.
    fn start_quietly(setup: &TestService, arguments: &[&str]) -> Self {
        let port = setup.free_port();
        let mut command = Command::new(libcoap("server"));
        command.args(["-d", "10", "-A", &setup.ip]);
        command.args(["-p", &port.to_string()]).args(arguments);
        let program = Program::start(&mut command);
        let probe = UdpSocket::bind((setup.ip.as_str(), 0)).unwrap();
        probe.connect((setup.ip.as_str(), port)).unwrap();
        probe.set_nonblocking(true).unwrap();
        let ping = Message::ping(MessageId(1)).encode();
        until("that it listens", || {
            probe.send(&ping).ok();
            probe.recv(&mut [0; 16]).ok()
        });
        Self { port, program }
    }

    fn request(&self, method: &str, path: &str) -> Value {
        coap(method, path, self.port)
    }
}
