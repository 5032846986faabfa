//! Is a device on Eclipse Leshan bootstrapped over DTLS with each kind of key, and does it register
//! with what it was given?

use std::fs;
use std::process::Command;

use engine::base64_text;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PublicKeyData as _,
};
use serde_json::{Value, json};

use super::{ID, KEY, leshan_command, wait_for};
use crate::vocabulary::caller::{API, Caller, text};
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
    let service = Service::start();
    let caller = Caller::of_new_customer(&service, "Lamp Works");
    create(&caller);
    let pair = KeyPair::generate().unwrap();
    let public = base64_text::encode(&pair.subject_public_key_info());
    let path = format!("{API}/devices/{ID}/public-key");
    let set = caller.try_send("PUT", &path, &json!({ "publicKey": public }));
    assert_eq!(set.unwrap().status, 204);
    let private = base64_text::encode(&pair.serialize_der());
    let server = server_key(&caller);
    let mut device = leshan(&service, &["rpk", &public, &private, &server]);
    is_registered(&mut device, &caller, "RPK");
    assert_ne!(caller.inspect(ID)["publicKey"]["key"], public);
    let triggered = caller.perform(ID, &execute("/1/0/9"));
    assert_eq!(outcome(&triggered), ("SUCCEEDED", "204"), "{triggered}");
    is_registered(&mut device, &caller, "RPK");
}

#[test]
fn leshan_with_a_certificate_is_given_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, pem: String| {
        let path = folder.path().join(name);
        fs::write(&path, pem).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let cert = file("cert.pem", own.cert.pem());
    let key = file("key.pem", own.signing_key.serialize_pem());
    let settings = [
        ("SIGNALBOX_COAPS_CERT", &cert[..]),
        ("SIGNALBOX_COAPS_KEY", &key),
    ];
    let service = Service::start_with(&settings);
    let caller = Caller::of_new_customer(&service, "Lamp Works");
    create(&caller);
    let mut authority = named("factory");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let path = format!("{API}/dtls/certificate-authorities");
    let trusted = json!({ "certificates": authority.pem() });
    caller.try_send("PUT", &path, &trusted).unwrap().expect(200);
    let certified = || {
        let key = KeyPair::generate().unwrap();
        (named(ID).signed_by(&key, &authority).unwrap(), key)
    };
    let (given, given_key) = certified();
    configure(
        &caller,
        &json!({
            "shortId": 1111, "lifetime": 600, "binding": "U", "security": "X509",
            "certificate": given.pem(), "key": given_key.serialize_pem(),
        }),
    );
    let (first, first_key) = certified();
    let base64 = |bytes: &[u8]| base64_text::encode(bytes);
    let keys = [
        "x509",
        &base64(first.der()),
        &base64(&first_key.serialize_der()),
        &base64(own.cert.der()),
    ];
    let mut device = leshan(&service, &keys);
    is_registered(&mut device, &caller, "X509");
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

fn create(caller: &Caller) {
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
}

/// Sets the account that the device is given.
fn configure(caller: &Caller, account: &Value) {
    let config = json!({ "servers": [account] });
    let path = format!("{API}/devices/{ID}/bootstrap");
    caller.try_send("PUT", &path, &config).unwrap().expect(200);
}

/// The public key of the service, in base64.
fn server_key(caller: &Caller) -> String {
    let shown = caller.request("GET", &format!("{API}/dtls")).expect(200);
    text(&shown["publicKey"])
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A device on Leshan that knows the service as its bootstrap server, with these keys.
fn leshan(service: &Service, keys: &[&str]) -> Program {
    let mut command: Command = leshan_command("BootstrappedLeshanDevice.java");
    command.args([&service.coaps.to_string(), ID]).args(keys);
    Program::start(&mut command)
}
