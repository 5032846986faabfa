//! Whom does the service believe, and whom may it call?

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;

use super::{PRIVATE, QUICK, Scene, metered, value};
use crate::vocabulary::caller::text;
use crate::vocabulary::endpoint::Endpoint;

#[test]
fn an_endpoint_without_a_trusted_certificate_is_told_nothing_until_it_has_one() {
    let mut scene = Scene::with(&[QUICK]);
    let names = vec!["127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let endpoint = Endpoint::secure(tls);
    assert!(endpoint.url("/").starts_with("https://"));
    let id = scene.values_to(&endpoint);
    scene.meter("meter-1").send(1.0);
    scene.once_in(&id, "INTEGRATION_FAILED");
    let letters = scene.dead_letters(&id);
    assert!(
        text(&letters[0]["reason"]).contains("certificate"),
        "{letters:?}"
    );
    assert!(endpoint.posted().is_empty());

    let authorities = scene.service.data_dir().join("authorities.pem");
    std::fs::write(&authorities, cert.pem()).unwrap();
    let authorities = ("SIGNALBOX_DELIVERY_CA_FILE", authorities.to_str().unwrap());
    scene.restart_with(&[PRIVATE, QUICK, authorities]);
    scene.ask(&id, "restart", 200);
    scene.ask(&id, "deadletters/replay", 202);
    assert_eq!(value(&endpoint.once(1)[0]), 1.0);
}

#[test]
fn a_name_that_leads_nowhere_fails_its_webhook_and_says_why() {
    let scene = Scene::with(&[QUICK, ("SIGNALBOX_DELIVERY_TIMEOUT_MS", "1000")]);
    let types = json!([{ "type": "TELEMETRY_DATA" }]);
    let body = json!({ "name": "Gone", "url": "http://gone.invalid/", "eventTypes": types });
    let id = scene.webhook(&body);
    scene.meter("meter-1").send(1.0);
    scene.once_in(&id, "INTEGRATION_FAILED");
    let reason = text(&scene.dead_letters(&id)[0]["reason"]);
    // A resolver that is away itself answers nothing at all.
    let reasons = [
        "the host name cannot be resolved",
        "the endpoint did not respond in time",
    ];
    assert!(reasons.contains(&reason.as_str()), "{reason}");
}

#[test]
fn an_address_that_is_not_allowed_any_more_is_not_called() {
    let (mut scene, endpoint, id, mut meter) = metered(&[QUICK]);
    scene.restart_with(&[QUICK]);
    meter.send(1.0);
    scene.once_in(&id, "INTEGRATION_FAILED");
    assert!(endpoint.posted().is_empty());
    let tested = scene.ask(&id, "test", 200);
    assert_eq!(tested["delivered"], false, "{tested}");
    assert!(endpoint.posted().is_empty());
}
