//! Does a device on Eclipse Leshan register with a raw public key or a certificate, and is it
//! reached after its NAT has given it another address?

use std::fs;

use engine::base64_text;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    IsCa, KeyPair, PublicKeyData as _,
};
use serde_json::json;
use tempfile::TempDir;

use super::{ID, leshan_with, wait_for};
use crate::dtls::nat::Nat;
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::lwm2m::{outcome, read};
use crate::vocabulary::service::Service;

#[test]
fn leshan_registers_with_a_raw_public_key() {
    check(&RegisteredKeys::raw(), "RPK");
}

#[test]
fn leshan_registers_with_a_certificate() {
    let (keys, _authority) = RegisteredKeys::certified();
    check(&keys, "X509");
}

fn check(registered: &RegisteredKeys, kind: &str) {
    let caller = &registered.caller;
    let nat = Nat::start(registered.service.coaps);
    let mut device = leshan_with(&nat, "6", &registered.keys());
    wait_for(&mut device, "registered");
    nat.rebind();
    device.write_line("send");
    assert_eq!(wait_for(&mut device, "sent"), "204");
    let action = caller.perform(ID, &read("/3/0/0"));
    assert_eq!(outcome(&action), ("SUCCEEDED", "205"), "{action}");
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["kind"], kind, "{association}");
    assert_eq!(association["addressChanges"], 1, "{association}");
}

/// A service that knows the key of a device, and what the device is given on its command line.
pub(super) struct RegisteredKeys {
    pub(super) service: Service,
    pub(super) caller: Caller,
    /// The kind, its own public key or certificate, its private key, and the public key or
    /// certificate of the service; in base64.
    keys: [String; 4],
    /// With the certificate of the service, which is read at its start.
    _files: Option<TempDir>,
}

/// Who certifies devices.
pub(super) struct FactoryAuthority(CertifiedIssuer<'static, KeyPair>);

impl RegisteredKeys {
    /// A raw public key.
    pub(super) fn raw() -> Self {
        let service = Service::start();
        let caller = Caller::of_new_customer(&service, "Lamp Works");
        create(&caller);
        let pair = KeyPair::generate().unwrap();
        let public = base64_text::encode(&pair.subject_public_key_info());
        let path = format!("{API}/devices/{ID}/public-key");
        let set = caller.try_send("PUT", &path, &json!({ "publicKey": public }));
        assert_eq!(set.unwrap().status, 204);
        let shown = caller.request("GET", &format!("{API}/dtls")).expect(200);
        let private = base64_text::encode(&pair.serialize_der());
        let server = text(&shown["publicKey"]);
        Self {
            service,
            caller,
            keys: ["rpk".to_owned(), public, private, server],
            _files: None,
        }
    }

    /// A certificate, and the authority that signs others.
    pub(super) fn certified() -> (Self, FactoryAuthority) {
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
        let authority = FactoryAuthority::new();
        let path = format!("{API}/dtls/certificate-authorities");
        let trusted = json!({ "certificates": authority.0.pem() });
        caller.try_send("PUT", &path, &trusted).unwrap().expect(200);
        let (certificate, key) = authority.certify();
        let base64 = |bytes: &[u8]| base64_text::encode(bytes);
        let registered = Self {
            service,
            caller,
            keys: [
                "x509".to_owned(),
                base64(certificate.der()),
                base64(&key.serialize_der()),
                base64(own.cert.der()),
            ],
            _files: Some(folder),
        };
        (registered, authority)
    }

    pub(super) fn keys(&self) -> [&str; 4] {
        self.keys.each_ref().map(String::as_str)
    }
}

impl FactoryAuthority {
    fn new() -> Self {
        let mut params = named("factory");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Another certificate of the device, and its key.
    pub(super) fn certify(&self) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        (named(ID).signed_by(&key, &self.0).unwrap(), key)
    }
}

fn create(caller: &Caller) {
    let body = json!({ "deviceId": ID });
    caller.post(&format!("{API}/devices"), &body).expect(201);
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
