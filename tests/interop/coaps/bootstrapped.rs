//! Is a device on Eclipse Leshan bootstrapped over DTLS with each kind of key, and does it register
//! with what it was given?

use std::process::Command;

use engine::base64_text;
use serde_json::{Value, json};

use super::certified::RegisteredKeys;
use super::{ID, KEY, leshan_command, wait_for};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::{execute, outcome, read};
use crate::vocabulary::poll::until;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

#[test]
fn leshan_is_bootstrapped_with_a_pre_shared_key_again_and_again() {
    let (service, caller) = super::start();
    let key = base64_text::encode(KEY.as_bytes());
    let mut device = leshan(&service, &["psk", ID, &key]);
    is_registered(&mut device, &caller, "PSK");
    // The next one is triggered by a caller, over the session of the key that was given.
    let triggered = caller.perform(ID, &execute("/1/0/9"));
    assert_eq!(outcome(&triggered), ("SUCCEEDED", "204"), "{triggered}");
    is_registered(&mut device, &caller, "PSK");
}

#[test]
fn leshan_with_a_pre_shared_key_is_given_a_raw_public_key() {
    let (service, caller) = super::start();
    let account = json!({ "shortId": 1111, "lifetime": 600, "binding": "U", "security": "RPK" });
    configure(&caller, &account);
    let key = base64_text::encode(KEY.as_bytes());
    let mut device = leshan(&service, &["psk", ID, &key]);
    is_registered(&mut device, &caller, "RPK");
}

#[test]
fn leshan_with_a_raw_public_key_is_given_another_one() {
    let registered = RegisteredKeys::raw();
    let (service, caller) = (&registered.service, &registered.caller);
    let mut device = leshan(service, &registered.keys());
    is_registered(&mut device, caller, "RPK");
    let [_, public, ..] = registered.keys();
    assert_ne!(caller.inspect(ID)["publicKey"]["key"], public);
    let triggered = caller.perform(ID, &execute("/1/0/9"));
    assert_eq!(outcome(&triggered), ("SUCCEEDED", "204"), "{triggered}");
    is_registered(&mut device, caller, "RPK");
}

#[test]
fn leshan_with_a_certificate_is_given_another_one() {
    let (registered, authority) = RegisteredKeys::certified();
    let (service, caller) = (&registered.service, &registered.caller);
    let (given, given_key) = authority.certify();
    configure(
        caller,
        &json!({
            "shortId": 1111, "lifetime": 600, "binding": "U", "security": "X509",
            "certificate": given.pem(), "key": given_key.serialize_pem(),
        }),
    );
    let mut device = leshan(service, &registered.keys());
    is_registered(&mut device, caller, "X509");
}

/// The device says that it was bootstrapped and has registered, with a key of this kind, and
/// answers.
fn is_registered(device: &mut Program, caller: &Caller, kind: &str) {
    wait_for(device, "bootstrapped");
    wait_for(device, "registered");
    let shown = until("the end of the bootstrap", || {
        let shown = caller.inspect(ID);
        (shown["bootstrap"]["state"] == "SUCCEEDED").then_some(shown)
    });
    assert_eq!(shown["association"]["kind"], kind, "{shown}");
    let action = caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
}

/// Sets the account that the device is given.
fn configure(caller: &Caller, account: &Value) {
    let config = json!({ "servers": [account] });
    let path = format!("{API}/devices/{ID}/bootstrap");
    caller.try_send("PUT", &path, &config).unwrap().expect(200);
}

/// A device on Leshan that knows the service as its bootstrap server, with these keys.
fn leshan(service: &Service, keys: &[&str]) -> Program {
    let mut command: Command = leshan_command("BootstrappedLeshanDevice.java");
    command.args([&service.coaps.to_string(), ID]).args(keys);
    Program::start(&mut command)
}
