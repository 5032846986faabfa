//! Are devices known by raw public keys and by certificates, and is the service known to them?

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dtls::SigningKey;
use engine::base64_text;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::test_service::{crash, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::poll::until;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::wire::register;

const ID: &str = "meter-1";

/// An address of no device.
const HERE: &str = "127.0.0.21";

#[test]
fn a_device_is_known_by_its_raw_public_key() {
    let (service, caller) = start(&[]);
    let server = public_key(&caller);
    let (key, stranger) = (raw_key(), raw_key());
    silent_device(&caller, ID);
    let body = json!({ "publicKey": base64_text::encode(key.public_key()) });
    let path = format!("{API}/devices/{ID}/public-key");
    assert_eq!(caller.try_send("PUT", &path, &body).unwrap().status, 204);

    let mut device = SecuredDevice::at(HERE, &service);
    assert!(device.prove(&stranger, &server).is_err());
    device.prove(&key, &server).unwrap();
    device.register(&register(ID, 1));
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["kind"], "RPK", "{association}");
    assert_eq!(association["connectionId"], true, "{association}");
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
    assert!(device.prove(&key, &server).is_err());
}

#[test]
fn a_device_is_known_by_a_certificate_that_its_customer_trusts() {
    let (service, caller) = start(&[]);
    let server = public_key(&caller);
    let (factory, other) = (Factory::new(), Factory::new());
    let path = format!("{API}/dtls/certificate-authorities");
    caller.request("GET", &path).expect(404);
    let set = |factory: &Factory| {
        let body = json!({ "certificates": factory.pem });
        caller.try_send("PUT", &path, &body).unwrap().expect(200)
    };
    let stored = set(&factory);
    assert_eq!(caller.request("GET", &path).expect(200), stored);
    assert_eq!(
        text(&stored["certificates"]).replace('\n', ""),
        factory.pem.replace("\r\n", "").replace('\n', "")
    );
    silent_device(&caller, ID);

    let mut device = SecuredDevice::at(HERE, &service);
    let key = factory.certifies(ID);
    device.prove(&key, &server).unwrap();
    device.register(&register(ID, 1));
    let association = caller.inspect(ID)["association"].take();
    assert_eq!(association["kind"], "X509", "{association}");
    assert_eq!(association["identity"], ID, "{association}");

    let mut impostor = SecuredDevice::at(HERE, &service);
    assert!(impostor.prove(&other.certifies(ID), &server).is_err());
    assert!(
        impostor
            .prove(&factory.certifies("nobody"), &server)
            .is_err()
    );
    let entry = until("a log entry", || {
        let mut entries = caller.log_entries().into_iter();
        entries.find(|it| it["message"] == "CoAP[UnauthorizedDevice]")
    });
    let said = text(&entry["description"]);
    assert!(said.contains("no certificate authority"), "{said}");

    // The same authorities again change nothing; others end the session.
    assert_eq!(set(&factory), stored);
    assert_ne!(caller.inspect(ID)["association"], Value::Null);
    set(&other);
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
    assert!(device.prove(&key, &server).is_err());
    impostor.prove(&other.certifies(ID), &server).unwrap();
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(caller.inspect(ID)["association"], Value::Null);
    caller.request("DELETE", &path).expect(404);
}

#[test]
fn authorities_that_are_none_are_refused() {
    let (_service, caller) = start(&[]);
    let path = format!("{API}/dtls/certificate-authorities");
    let pem = Factory::new().pem;
    let key = KeyPair::generate().unwrap().serialize_pem();
    for wrong in [
        "",
        "certificates",
        &key,
        &pem.repeat(9),
        &pem[..pem.len() - 40],
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let body = json!({ "certificates": wrong });
        let refused = caller.try_send("PUT", &path, &body).unwrap().expect(400);
        assert_eq!(refused["errors"][0]["code"], "INVALID_VALUE", "{refused}");
    }
    caller.request("GET", &path).expect(404);
}

#[test]
fn the_key_of_the_service_stays_until_files_have_another() {
    let (mut service, mut caller) = start(&[]);
    let first = public_key(&caller);
    crash(&mut service, &mut caller);
    assert_eq!(public_key(&caller), first);
    assert!(service.stop().success());

    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let write = || {
        let own = rcgen::generate_simple_self_signed(["coaps.example".to_owned()]).unwrap();
        fs::write(&cert, own.cert.pem()).unwrap();
        fs::write(&key, own.signing_key.serialize_pem()).unwrap();
        own
    };
    let own = write();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    service.start_again_with(&[
        ("SIGNALBOX_COAPS_CERT", &name(&cert)),
        ("SIGNALBOX_COAPS_KEY", &name(&key)),
    ]);
    caller.follow(&service);
    let shown = caller.request("GET", &format!("{API}/dtls")).expect(200);
    let expected = own.cert.pem().replace("\r\n", "\n");
    assert_eq!(text(&shown["certificates"]), expected);
    assert_ne!(public_key(&caller), first);

    // A client of the test pins the key, however it is shown.
    let factory = Factory::new();
    let body = json!({ "certificates": factory.pem });
    let path = format!("{API}/dtls/certificate-authorities");
    caller.try_send("PUT", &path, &body).unwrap().expect(200);
    silent_device(&caller, ID);
    let (device_key, before) = (factory.certifies(ID), public_key(&caller));
    let mut device = SecuredDevice::at(HERE, &service);
    device.prove(&device_key, &before).unwrap();
    write();
    service.hang_up();
    until("the second key", || {
        (public_key(&caller) != before).then_some(())
    });
    assert!(device.prove(&device_key, &before).is_err());
    device.prove(&device_key, &public_key(&caller)).unwrap();
    assert!(service.stop().success());
}

/// An authority that certifies devices.
struct Factory {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Factory {
    fn new() -> Self {
        let mut params = named("factory");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    fn certifies(&self, name: &str) -> Arc<SigningKey> {
        let key = KeyPair::generate().unwrap();
        let certificate = named(name).signed_by(&key, &self.issuer).unwrap();
        let chain = vec![certificate.der().to_vec().into()];
        Arc::new(SigningKey::from_der(&key.serialize_der(), chain).unwrap())
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn raw_key() -> Arc<SigningKey> {
    let key = KeyPair::generate().unwrap().serialize_der();
    Arc::new(SigningKey::from_der(&key, Vec::new()).unwrap())
}

/// The public key of the service, in DER.
fn public_key(caller: &Caller) -> Vec<u8> {
    let shown = caller.request("GET", &format!("{API}/dtls")).expect(200);
    base64_text::decode(&text(&shown["publicKey"])).unwrap()
}
