//! Which known faults of servers does TLS-Scanner find in the DTLS of the service?
//!
//! Its release 7.2.0 is the newest whose parts are all on Maven Central. Four of its probes end the
//! scan with an error of their own and are left out; `attacked` covers what they look for.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::leshan::QUICK_START;
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

/// The identity and the key of TLS-Attacker, in hexadecimal digits.
const ID: &str = "Client_Identity";
const KEY: &str = "1a2b3c4d";

const LEFT_OUT: &str =
    "DTLS_RETRANSMISSIONS,DTLS_COMMON_BUGS,COMMON_BUGS,DTLS_IP_ADDRESS_IN_COOKIE";

/// It waits for much that the service does not send.
const SCANNED_WITHIN: Duration = Duration::from_secs(600);

/// What the report says of the service. Without encrypt-then-MAC, which the scanner does not offer
/// here, no suite with CBC is chosen.
const REPORT: [(&str, &[&str]); 5] = [
    (
        "true",
        &[
            "DTLS 1.2",
            "AES",
            "AEAD",
            "ECDHE",
            "Plain PSK",
            "Enforces CipherSuite ordering",
            "Supports reordering",
            "Supports fragmentation",
            "Checks cookie",
            "-port",
            "-version",
            "-random",
            "-session id",
        ],
    ),
    (
        "false",
        &[
            "DTLS 1.0",
            "Null",
            "Export",
            "Anon",
            "DES",
            "RC2",
            "RC4",
            "3DES",
            "Block",
            "RSA",
            "DHE",
            "Insecure",
            "EC PublicKey reuse",
            "Uses Unixtime",
            "HVR Retransmissions",
            "Server changes port",
            "Accepts start with invalid msg seq",
            "Misses msg seq checks",
        ],
    ),
    (
        "not vulnerable",
        &[
            "Raccoon",
            "CRIME",
            "Invalid Curve",
            "Invalid Curve (ephemeral)",
            "Invalid Curve (twist)",
            "SSL Poodle",
            "Logjam",
            "Sweet 32",
            "-1.hs without ext, 2.hs with ext",
            "-1.hs with ext, 2.hs without ext",
            "-1.hs without cs, 2.hs with cs",
            "-1.hs with cs, 2.hs without cs",
        ],
    ),
    (
        "could not test (not vulnerable)",
        &[
            "Padding Oracle",
            "Bleichenbacher",
            "Direct Raccoon",
            "Heartbleed",
        ],
    ),
    ("mitigated", &["ALPACA"]),
];

#[test]
fn a_scanner_finds_no_known_fault() {
    let folder = tempfile::tempdir().unwrap();
    let of_service = rcgen::generate_simple_self_signed(["coaps.example".to_owned()]).unwrap();
    let [key, chain] = ["key.pem", "chain.pem"].map(|name| folder.path().join(name));
    fs::write(&key, of_service.signing_key.serialize_pem()).unwrap();
    fs::write(&chain, of_service.cert.pem()).unwrap();
    let service = Service::start_with(&[
        ("SIGNALBOX_COAPS_KEY", key.to_str().unwrap()),
        ("SIGNALBOX_COAPS_CERT", chain.to_str().unwrap()),
    ]);
    let caller = Caller::of_new_customer(&service, "Lamp Works");
    let psk = json!({ "identity": ID, "secretKey": KEY, "format": "HEX" });
    let device = json!({ "deviceId": ID, "psk": psk });
    caller.post(&format!("{API}/devices"), &device).expect(201);

    let mut scanner = scanner(&service);
    let is_after = |line: &str| line.starts_with("Unexecuted Probes");
    scanner.wait_for_within(SCANNED_WITHIN, "its report", |line| {
        is_after(line).then_some(())
    });
    let lines = scanner.printed().iter().take_while(|line| !is_after(line));
    let report: HashMap<&str, &str> = lines.filter_map(|line| titled(line)).collect();
    for (said, titles) in REPORT {
        for title in titles {
            assert_eq!(report.get(title), Some(&said), "{title}");
        }
    }
    let found = report.iter().filter(|(_, said)| **said == "vulnerable");
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "{found:?}");
}

fn scanner(service: &Service) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [python, folder] = ["venv/bin/python", "tls-scanner"].map(|it| {
        let path = root.join("target/interop").join(it);
        assert!(
            path.exists(),
            "`cargo xtask prepare` makes {}",
            path.display()
        );
        path
    });
    let mut java = Command::new(python);
    java.arg(root.join("tests/interop/java.py"))
        .args(QUICK_START);
    java.args(["-Xmx512m", "-cp", &format!("{}/lib/*", folder.display())]);
    java.arg("de.rub.nds.tlsscanner.serverscanner.Main");
    java.args(["-connect", &service.coaps.to_string(), "-dtls", "-noColor"]);
    java.args(["-timeout", "300", "-applicationProtocol", "COAP"]);
    java.args(["-threads", "2", "-parallelProbes", "2"]);
    java.args(["-reportDetail", "ALL", "-exclude", LEFT_OUT]);
    Program::start(&mut java)
}

/// A line of the report, `TITLE : WHAT IT SAYS`.
fn titled(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches("\u{1b}[0m");
    let (title, said) = line.split_once(" : ")?;
    Some((title.trim(), said.trim()))
}
