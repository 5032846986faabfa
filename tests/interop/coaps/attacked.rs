//! What does the service answer to attacks on DTLS, and does it serve others after each of them?
//!
//! TLS-Attacker sends what no client would: `tests/interop/tls-attacker`. The table of the README
//! of the crate `dtls` says what becomes of messages in an order of their own.

use std::path::Path;
use std::process::Command;

use super::KEY;
use crate::leshan::QUICK_START;
use crate::vocabulary::caller::Caller;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

/// Eight bytes: the fragments of its key exchange are counted.
const ID: &str = "meter-77";

const NOTHING: &str = "nothing";
const VERIFY: &str = "hello_verify_request";
const DECRYPT_ERROR: &str = "alert decrypt_error";
const HANDSHAKE_FAILURE: &str = "alert handshake_failure";
const UNEXPECTED: &str = "alert unexpected_message";

/// Each attack, and what the server answers. Where a handshake or a session has to outlive the
/// attack, the attack goes on with it and fails if it does not.
const ATTACKS: [(&str, &str); 39] = [
    ("no cookie, twice", VERIFY),
    ("a changed cookie", VERIFY),
    ("a cookie cut short", VERIFY),
    ("the cookie of another address", VERIFY),
    ("another hello with the cookie", VERIFY),
    ("a Finished first", NOTHING),
    ("application data first", NOTHING),
    ("a Certificate that nobody asked for", UNEXPECTED),
    ("two ClientKeyExchange", UNEXPECTED),
    ("a second ClientHello", UNEXPECTED),
    ("a ChangeCipherSpec before the key exchange", NOTHING),
    ("a key exchange after the ChangeCipherSpec", NOTHING),
    // It is kept until the Finished, and answered after it.
    (
        "protected application data before the Finished",
        "protected application_data",
    ),
    (
        "protected application data before a wrong Finished",
        DECRYPT_ERROR,
    ),
    ("a Finished in the clear", NOTHING),
    ("a wrong Finished", DECRYPT_ERROR),
    ("fragments that overlap", NOTHING),
    ("fragments that contradict each other", NOTHING),
    ("fragments with a gap", NOTHING),
    ("an empty fragment before the message", NOTHING),
    ("empty fragments alone", NOTHING),
    ("a fragment beyond the message", NOTHING),
    ("a fragment longer than its record", NOTHING),
    ("a message of 16 MB", NOTHING),
    ("a message whose length changes", NOTHING),
    ("a Finished again", NOTHING),
    ("application data again", NOTHING),
    ("application data of another session", NOTHING),
    ("application data from another address", NOTHING),
    ("a renegotiation", NOTHING),
    ("a ClientHello in the clear", NOTHING),
    ("DTLS 1.0", "alert protocol_version"),
    ("no extended master secret", NOTHING),
    ("CBC without encrypt-then-MAC", HANDSHAKE_FAILURE),
    (
        "no renegotiation indication",
        "server_hello,server_hello_done",
    ),
    ("TLS_PSK_WITH_NULL_SHA256", HANDSHAKE_FAILURE),
    ("TLS_PSK_WITH_RC4_128_SHA", HANDSHAKE_FAILURE),
    ("TLS_PSK_WITH_AES_128_CBC_SHA", HANDSHAKE_FAILURE),
    ("TLS_RSA_WITH_AES_128_CBC_SHA", HANDSHAKE_FAILURE),
];

/// What is changed in a record, each alone.
const FORGERIES: [(&str, &[&str]); 4] = [
    ("CBC", &FORGERIES_OF_CBC),
    ("bare CBC", &FORGERIES_OF_CBC),
    (
        "bare CBC",
        &["everything but padding", "plaintext of zeros"],
    ),
    ("CCM_8", &["tag", "nonce", "ciphertext", "everything"]),
];

const FORGERIES_OF_CBC: [&str; 8] = [
    "MAC",
    "last byte of the MAC",
    "padding",
    "length of the padding",
    "ciphertext",
    "initialization vector",
    "end",
    "everything",
];

#[test]
fn attacks_on_dtls_are_answered_as_documented_and_others_are_served() {
    let mut attacker = Attacker::start(&[]);
    for (attack, answer) in ATTACKS {
        attacker.expect(attack, answer);
    }
}

#[test]
fn forged_records_are_answered_alike_whatever_is_wrong_with_them() {
    let mut attacker = Attacker::start(&[("SIGNALBOX_DTLS_BARE_CBC", "true")]);
    for (suite, parts) in FORGERIES {
        for part in parts {
            attacker.expect(&format!("{suite} data with another {part}"), NOTHING);
            let finished = format!("{suite} Finished with another {part}");
            attacker.expect(&finished, DECRYPT_ERROR);
        }
    }
}

/// TLS-Attacker beside a service that knows one device.
struct Attacker {
    program: Program,
    _service: Service,
}

impl Attacker {
    fn start(settings: &[(&str, &str)]) -> Self {
        // Nothing is sent again while an attack lasts: each answer is one to the attack.
        let patient = &[("SIGNALBOX_DTLS_RETRANSMIT_MS", "9000")][..];
        let service = Service::start_with(&[patient, settings].concat());
        Caller::of_new_customer(&service, "Lamp Works").create_secured_device(ID, KEY);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("target/interop/tls-attacker");
        let what = folder.display();
        assert!(folder.exists(), "`cargo xtask prepare` makes {what}");
        let mut command = Command::new("java");
        command.args(QUICK_START);
        command.args(["-cp", &format!("{what}/classes:{what}/lib/*"), "Attacks"]);
        let program = Program::start(command.args([&service.coaps.to_string(), ID, KEY]));
        Self {
            program,
            _service: service,
        }
    }

    fn expect(&mut self, attack: &str, answer: &str) {
        self.program.write_line(attack);
        let answered = self.program.wait_for("what is answered", |line| {
            line.strip_prefix("answered ").map(str::to_owned)
        });
        assert_eq!(answered, answer, "{attack}");
        let is_served = self.program.wait_for("whether another is served", |line| {
            line.ends_with("served").then_some(line == "served")
        });
        assert!(is_served, "after {attack}");
    }
}
