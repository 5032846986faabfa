//! Which endpoints does the service trust, and which may it call?

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

use super::{DeliveryService, PRIVATE, QUICK, metered, value};
use crate::vocabulary::caller::text;
use crate::vocabulary::endpoint::Endpoint;

#[test]
fn an_endpoint_receives_nothing_until_its_certificate_is_trusted() {
    let mut setup = DeliveryService::with(&[QUICK]);
    let names = vec!["127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let endpoint = Endpoint::secure(tls);
    assert!(endpoint.url("/").starts_with("https://"));
    let id = setup.values_to(&endpoint);
    setup.meter("meter-1").send(1.0);
    setup.once_in(&id, "INTEGRATION_FAILED");
    let letters = setup.dead_letters(&id);
    assert!(
        text(&letters[0]["reason"]).contains("certificate"),
        "{letters:?}"
    );
    assert!(endpoint.posted().is_empty());

    let authorities = setup.service.data_dir().join("authorities.pem");
    std::fs::write(&authorities, cert.pem()).unwrap();
    let authorities = ("SIGNALBOX_DELIVERY_CA_FILE", authorities.to_str().unwrap());
    setup.restart_with(&[PRIVATE, QUICK, authorities]);
    setup.ask(&id, "restart", 200);
    setup.ask(&id, "deadletters/replay", 202);
    assert_eq!(value(&endpoint.once(1)[0]), 1.0);
}

#[test]
fn an_unresolvable_name_fails_its_webhook_and_is_named() {
    let setup = DeliveryService::with(&[QUICK, ("SIGNALBOX_DELIVERY_TIMEOUT_MS", "1000")]);
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let body = json!({ "name": "Gone", "url": "http://gone.invalid/", "eventTypes": types });
    let id = setup.webhook(&body);
    setup.meter("meter-1").send(1.0);
    setup.once_in(&id, "INTEGRATION_FAILED");
    let reason = text(&setup.dead_letters(&id)[0]["reason"]);
    // A resolver that is down itself answers nothing.
    let reasons = [
        "the host name cannot be resolved",
        "the endpoint did not respond in time",
    ];
    assert!(reasons.contains(&reason.as_str()), "{reason}");
}

#[test]
fn an_address_that_is_no_longer_allowed_is_not_called() {
    let (mut setup, endpoint, id, mut meter) = metered(&[QUICK]);
    setup.restart_with(&[QUICK]);
    meter.send(1.0);
    setup.once_in(&id, "INTEGRATION_FAILED");
    assert!(endpoint.posted().is_empty());
    let tested = setup.ask(&id, "test", 200);
    assert_eq!(tested["delivered"], false, "{tested}");
    assert!(endpoint.posted().is_empty());
}
