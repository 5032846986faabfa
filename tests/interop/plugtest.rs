//! Does the service's CoAP layer pass the ETSI test descriptions for CoAP?
//!
//! Eclipse Californium's client runs them (`plugtest/src`) against a server made for this test,
//! which has the required resources and uses `protocol::coap`.

mod links;
mod observers;
mod peer;
mod server;
mod site;

use std::path::Path;
use std::process::Command;

use crate::leshan::QUICK_START;
use crate::vocabulary::program::Program;

use self::server::PlugtestServer;

/// All test descriptions, in the order in which they are run.
const DESCRIPTIONS: [(&str, &[u8]); 4] = [
    (
        "TD_COAP_CORE",
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 31,
        ],
    ),
    ("TD_COAP_BLOCK", &[1, 2, 3, 4, 5, 6]),
    ("TD_COAP_LINK", &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("TD_COAP_OBS", &[1, 2, 4, 5, 6, 7, 8, 9, 10, 12]),
];

/// Requirements of the standards that the test descriptions do not cover.
const BEYOND: [&str; 4] = [
    "RFC_7252_PROXY",
    "RFC_7252_NOT_ALLOWED",
    "RFC_7959_TOO_LARGE",
    "RFC_7959_OBSERVE",
];

#[test]
fn californium_passes_every_test_description() {
    let server = PlugtestServer::start("127.0.9.60");
    let mut checks = checks(&format!("coap://{}", server.address));
    let verdicts = verdicts(&mut checks);
    let passed: Vec<&str> = verdicts
        .iter()
        .filter_map(|line| line.strip_prefix("passed "))
        .collect();
    let mut expected: Vec<String> = descriptions().collect();
    assert_eq!(expected.len(), 49);
    expected.extend(BEYOND.map(str::to_owned));
    let missing = |name: &&String| !passed.contains(&name.as_str());
    let failed: Vec<&String> = expected.iter().filter(missing).collect();
    assert!(failed.is_empty(), "not passed: {failed:?}");
    let mut passed: Vec<String> = passed.into_iter().map(str::to_owned).collect();
    passed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(passed, expected, "each once, and no other");
}

fn descriptions() -> impl Iterator<Item = String> {
    DESCRIPTIONS.iter().flat_map(|(group, numbers)| {
        let name = move |number: &u8| format!("{group}_{number:02}");
        numbers.iter().map(name)
    })
}

fn checks(server: &str) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/interop/plugtest");
    assert!(
        folder.exists(),
        "`cargo xtask prepare` makes {}",
        folder.display()
    );
    let folder = folder.display();
    let mut command = Command::new("java");
    command.args(QUICK_START);
    command.args(["-cp", &format!("{folder}/classes:{folder}/lib/*")]);
    Program::start(command.args(["Plugtest", server]))
}

/// The verdicts, in order; the program prints the reason of a failure after it.
fn verdicts(checks: &mut Program) -> Vec<String> {
    let mut verdicts = Vec::new();
    loop {
        let verdict = checks.wait_for("a verdict", |line| {
            let words = ["passed ", "failed ", "done "];
            let is_one = words.iter().any(|word| line.starts_with(word));
            is_one.then(|| line.to_owned())
        });
        if verdict.starts_with("done ") {
            return verdicts;
        }
        verdicts.push(verdict);
    }
}
