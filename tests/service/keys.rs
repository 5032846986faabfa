//! How are the keys of a device set, replaced and removed?

use serde_json::{Value, json};

use crate::test_service::{ID, error_codes, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::http::Response;

/// A public key on P-256 in base64.
pub(crate) const PUBLIC_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncD\
                                     fYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R\
                                     9Q==";

#[test]
fn a_generated_key_is_shown_once_and_made_once_for_each_call() {
    let (mut service, mut caller) = start(&[]);
    silent_device(&caller, ID);
    let first = generate(&caller, ID, "one", &json!({ "identity": "key-7" })).expect(201);
    assert_eq!(
        (&first["identity"], &first["format"]),
        (&json!("key-7"), &json!("HEX"))
    );
    let key = text(&first["secretKey"]);
    assert_eq!(key.len(), 32, "128 bits");
    service.kill();
    service.start_again();
    caller.follow(&service);
    let again = generate(&caller, ID, "one", &json!({ "identity": "key-7" })).expect(201);
    assert_eq!(again, first);
    let shown = psk(&caller, ID);
    assert_eq!(
        (&shown["identity"], &shown["previousValid"]),
        (&json!("key-7"), &json!(false))
    );
    assert!(shown["created"].is_string());

    let second = generate(&caller, ID, "two", &json!({})).expect(201);
    assert_eq!(second["identity"], "key-7");
    assert_ne!(second["secretKey"], first["secretKey"]);
    assert_eq!(psk(&caller, ID)["previousValid"], true);
    generate(&caller, "nobody", "three", &json!({})).expect(404);
}

#[test]
fn a_removed_key_leaves_the_device_its_identity() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    silent_device(&caller, "other");
    let path = format!("{API}/devices/{ID}/psk");
    caller.request("DELETE", &path).expect(404);
    let key = json!({ "secretKey": "correct horse", "format": "STRING", "identity": "key-7" });
    assert_eq!(caller.post(&path, &key).status, 204);
    // Its former identity is free, and then taken when its key is removed.
    let theirs = json!({ "secretKey": "battery staple", "format": "STRING", "identity": ID });
    assert_eq!(
        caller
            .post(&format!("{API}/devices/other/psk"), &theirs)
            .status,
        204
    );
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(
        psk(&caller, ID),
        json!({ "identity": "key-7", "configured": false })
    );
    let taken = json!({ "secretKey": "battery staple", "format": "STRING", "identity": "key-7" });
    let refused = caller
        .post(&format!("{API}/devices/other/psk"), &taken)
        .expect(409);
    assert_eq!(error_codes(&refused), ["DEVICE_EXISTS"]);
    let deleted = caller.request("DELETE", &format!("{API}/devices/{ID}"));
    assert_eq!(deleted.status, 204);
    assert_eq!(
        caller
            .post(&format!("{API}/devices/other/psk"), &taken)
            .status,
        204
    );
}

#[test]
fn a_public_key_belongs_to_one_device() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    silent_device(&caller, "other");
    let (first, second) = PUBLIC_KEY.split_at(64);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{first}\n{second}\n-----END PUBLIC KEY-----\n");
    for key in [PUBLIC_KEY, &pem] {
        assert_eq!(put(&caller, ID, key).status, 204);
        let shown = device(&caller, ID)["publicKey"].clone();
        assert_eq!(shown["key"], PUBLIC_KEY);
        assert_eq!(shown["previousValid"], false);
    }
    let taken = put(&caller, "other", PUBLIC_KEY).expect(409);
    assert_eq!(error_codes(&taken), ["DEVICE_EXISTS"]);
    assert_eq!(taken["errors"][0]["field"], "publicKey");
    for wrong in [
        "",
        "not base64",
        &PUBLIC_KEY[..80],
        &pem.replace("PUBLIC", "PRIVATE"),
    ] {
        let refused = put(&caller, ID, wrong).expect(400);
        assert_eq!(error_codes(&refused), ["INVALID_VALUE"], "{wrong}");
    }
    let path = format!("{API}/devices/{ID}/public-key");
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(device(&caller, ID)["publicKey"], Value::Null);
    caller.request("DELETE", &path).expect(404);
    assert_eq!(put(&caller, "other", PUBLIC_KEY).status, 204);
}

#[test]
fn an_import_has_keys_and_refuses_a_line_with_another_key_for_a_device() {
    let (_service, caller) = start(&[]);
    let line = |id: &str, key: &str| {
        let psk = json!({ "secretKey": key, "format": "STRING", "identity": format!("of-{id}") });
        format!("{}\n", json!({ "deviceId": id, "psk": psk }))
    };
    let ndjson = [line("a", "correct horse"), line("b", "battery staple")].concat();
    let csv = "deviceId,pskSecretKey,pskFormat,pskIdentity\n\
               a,correct horse,STRING,of-a\nc,00112233aabbccdd,HEX,\nd,,,\n";
    let made = import(&caller, "application/x-ndjson", &ndjson).expect(200);
    assert_eq!(made["created"], 2, "{made}");
    let made = import(&caller, "text/csv", csv).expect(200);
    assert_eq!(
        (&made["created"], &made["unchanged"]),
        (&json!(2), &json!(1)),
        "{made}"
    );
    let again = import(&caller, "application/x-ndjson", &ndjson).expect(200);
    assert_eq!(again["unchanged"], 2, "{again}");
    assert_eq!(
        (
            &psk(&caller, "a")["identity"],
            &psk(&caller, "c")["identity"]
        ),
        (&json!("of-a"), &json!("c"))
    );
    assert_eq!(psk(&caller, "d")["configured"], false);

    let wrong = [
        line("a", "another key"),
        line("e", "short"),
        json!({ "deviceId": "f", "psk": { "identity": "of-f" } }).to_string(),
    ];
    let refused = import(&caller, "application/x-ndjson", &wrong.concat()).expect(200);
    assert_eq!(refused["refused"], 3, "{refused}");
    let refusals = refused["refusals"].as_array().unwrap();
    assert_eq!(error_codes(&refusals[0])[0], "DEVICE_EXISTS");
    assert_eq!(refusals[1]["errors"][0]["field"], "psk.secretKey");
    assert_eq!(error_codes(&refusals[2]), ["REQUIRED", "REQUIRED"]);
}

#[test]
fn a_device_is_created_and_imported_with_its_public_key() {
    let (_service, caller) = start(&[]);
    let other_key = PUBLIC_KEY.replace("axfR8uEs", "bxfR8uEs");
    let third_key = PUBLIC_KEY.replace("axfR8uEs", "cxfR8uEs");
    let body = |id: &str, key: &str| json!({ "deviceId": id, "publicKey": key });
    let path = format!("{API}/devices");
    let created = caller.post(&path, &body("a", PUBLIC_KEY)).expect(201);
    assert_eq!(created["publicKey"]["key"], PUBLIC_KEY, "{created}");
    assert_eq!(device(&caller, "a")["publicKey"], created["publicKey"]);
    let taken = caller.post(&path, &body("b", PUBLIC_KEY)).expect(409);
    assert_eq!(taken["errors"][0]["field"], "publicKey", "{taken}");
    let wrong = caller.post(&path, &body("b", "not base64")).expect(400);
    assert_eq!(error_codes(&wrong), ["INVALID_VALUE"]);

    let lines = [
        body("a", PUBLIC_KEY),
        body("b", &other_key),
        body("c", PUBLIC_KEY),
        body("d", "not base64"),
    ];
    let ndjson = lines.map(|line| format!("{line}\n")).concat();
    let made = import(&caller, "application/x-ndjson", &ndjson).expect(200);
    let counts = ["unchanged", "created", "refused"].map(|count| made[count].clone());
    assert_eq!(counts, [1, 1, 2], "{made}");
    let (first, second) = third_key.split_at(64);
    let csv = format!(
        "deviceId,publicKey\na,{PUBLIC_KEY}\nb,{third_key}\n\
         e,\"-----BEGIN PUBLIC KEY-----\n{first}\n{second}\n-----END PUBLIC KEY-----\"\nf,\n"
    );
    let made = import(&caller, "text/csv", &csv).expect(200);
    let counts = ["unchanged", "created", "refused"].map(|count| made[count].clone());
    assert_eq!(counts, [1, 2, 1], "{made}");
    assert_eq!(device(&caller, "e")["publicKey"]["key"], third_key);
    assert_eq!(device(&caller, "f")["publicKey"], Value::Null);
}

fn generate(caller: &Caller, id: &str, call: &str, body: &Value) -> Response {
    let path = format!("{API}/devices/{id}/psk/generate");
    let request = caller.authorized("POST", &path);
    let request = request.header("idempotency-key", call).json(body);
    request.send(caller.address())
}

fn put(caller: &Caller, id: &str, key: &str) -> Response {
    let path = format!("{API}/devices/{id}/public-key");
    let body = json!({ "publicKey": key });
    caller.try_send("PUT", &path, &body).unwrap()
}

fn import(caller: &Caller, content_type: &str, text: &str) -> Response {
    let request = caller.authorized("POST", &format!("{API}/devices/import"));
    request.text(content_type, text).send(caller.address())
}

fn device(caller: &Caller, id: &str) -> Value {
    let path = format!("{API}/devices/{id}");
    caller.request("GET", &path).expect(200)
}

fn psk(caller: &Caller, id: &str) -> Value {
    device(caller, id)["psk"].clone()
}
