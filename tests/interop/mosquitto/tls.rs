//! Does TLS with a CA and a certificate of the customer's own protect the connection?

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::json;

use super::{Mosquitto, MqttService, QUICK};

#[test]
fn a_broker_with_an_own_ca_gets_events_from_a_client_with_its_certificate() {
    let setup = MqttService::with(&[QUICK]);
    let own = Authority::new();
    let (certificate, key) = own.issue("127.0.0.1");
    let broker = Mosquitto::with_files(
        "allow_anonymous true\nrequire_certificate true\ncafile {folder}/ca.pem\n\
         certfile {folder}/server.pem\nkeyfile {folder}/server.key",
        &[
            ("ca.pem", &own.pem),
            ("server.pem", &certificate),
            ("server.key", &key),
        ],
    );
    let url = format!("mqtts://{}", broker.address);
    let mut meter = setup.meter("meter-1", "127.77.3.1");

    let untrusting = setup.create_at(&url, &json!({ "name": "Without a CA" }));
    let uncertified = setup.create_at(&url, &json!({ "tls": { "ca": own.pem } }));
    let (certificate, key) = own.issue("signalbox");
    let tls = json!({ "ca": own.pem, "certificate": certificate, "key": key });
    let complete = setup.create_at(&url, &json!({ "tls": tls }));
    meter.send(1);
    let shown = setup.once_in(&complete, "INTEGRATION_ACTIVE");
    assert_eq!(shown["tls"]["key"], "***");
    assert_eq!(shown["tls"]["ca"], json!(own.pem));
    let failed = setup.once_in(&untrusting, "INTEGRATION_FAILED");
    let reason = "the certificate of the host is not issued by a trusted authority";
    assert_eq!(failed["failureReason"], reason);
    let failed = setup.once_in(&uncertified, "INTEGRATION_FAILED");
    let reason = "the host does not accept TLS connections";
    assert_eq!(failed["failureReason"], reason);
}

#[test]
fn a_key_of_another_certificate_is_refused_when_it_is_given() {
    let setup = MqttService::with(&[QUICK]);
    let own = Authority::new();
    let [(certificate, _), (_, key)] = ["one", "two"].map(|name| own.issue(name));
    let body = json!({
        "name": "Ours", "url": "mqtts://broker.example.com", "topicPrefix": "acme",
        "tls": { "certificate": certificate, "key": key },
    });
    let refused = setup.caller.post(super::BROKERS, &body).expect(400);
    assert_eq!(refused["errors"][0]["field"], "tls.key", "{refused}");
}

/// A certificate authority of the test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Otherwise what it issues would look self-signed.
        params
            .distinguished_name
            .push(DnType::CommonName, "Authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for a name, and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}
