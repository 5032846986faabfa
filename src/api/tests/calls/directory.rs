//! Customers, clients, devices and settings: what their callers see.

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use engine::ids::{CustomerId, DeviceId, DeviceKey};
use store::sealed::MasterKey;

use crate::api::tests::test_service::{OPERATOR, TestService};

const CUSTOMERS: &str = "/operator-api/v1/customers";
const DEVICES: &str = "/management-api/v1/devices";
const SETTINGS: &str = "/management-api/v1/settings";

#[actix_web::test]
async fn a_customer_has_the_given_id_or_a_generated_one() {
    let setup = TestService::new();
    let given = setup
        .post(CUSTOMERS, OPERATOR, json!({"name": "Acme", "id": "acme"}))
        .await;
    assert_eq!(given.json(), json!({"id": "acme", "name": "Acme"}));
    assert_eq!(
        given.header("location"),
        Some("/operator-api/v1/customers/acme")
    );
    let again = setup
        .post(CUSTOMERS, OPERATOR, json!({"name": "Other", "id": "acme"}))
        .await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert_eq!(
        again.faults(),
        [("CUSTOMER_EXISTS".to_owned(), "id".to_owned())]
    );
    let made = setup
        .post(CUSTOMERS, OPERATOR, json!({"name": "Umbrella"}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    let listed = setup.get(CUSTOMERS, OPERATOR).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

#[actix_web::test]
async fn a_client_s_secret_is_returned_once_and_never_stored() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["logs:read", "devices:read"]).await;
    let listed = setup
        .get("/operator-api/v1/customers/acme/clients", OPERATOR)
        .await;
    let client = &listed.json()["items"][0];
    assert_eq!(client["clientId"], json!(acme.id));
    assert_eq!(client["scopes"], json!(["logs:read", "devices:read"]));
    assert!(!String::from_utf8_lossy(&listed.bytes).contains(&acme.secret));
    let unknown = "/operator-api/v1/customers/nobody/clients";
    assert_eq!(
        setup.get(unknown, OPERATOR).await.status,
        StatusCode::NOT_FOUND
    );
    let body = json!({"name": "x"});
    assert_eq!(
        setup.post(unknown, OPERATOR, body).await.status,
        StatusCode::NOT_FOUND
    );
}

#[actix_web::test]
async fn deleting_a_customer_revokes_its_clients_and_frees_its_id() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let path = format!("{CUSTOMERS}/acme");
    assert_eq!(
        setup.delete(&path, OPERATOR).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        setup.get(DEVICES, &acme.bearer).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        setup.delete(&path, OPERATOR).await.status,
        StatusCode::NOT_FOUND
    );
    let body = json!({"name": "Acme", "id": "acme"});
    assert_eq!(
        setup.post(CUSTOMERS, OPERATOR, body).await.status,
        StatusCode::CREATED
    );
}

#[actix_web::test]
async fn a_device_is_created_once_and_each_conflicting_identifier_is_reported() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let body = json!({"deviceId": "meter", "iccid": "8988", "imsi": "901", "endpoint": "ep"});
    let made = setup.post(DEVICES, &acme.bearer, body.clone()).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(
        made.header("location"),
        Some("/management-api/v1/devices/meter")
    );
    let again = setup.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let fields: Vec<_> = again.faults().into_iter().map(|(_, field)| field).collect();
    assert_eq!(fields, ["deviceId", "iccid", "endpoint", "imsi"]);
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let other = json!({"deviceId": "meter", "iccid": "8988"});
    let other = setup.post(DEVICES, &umbrella.bearer, other).await;
    assert_eq!(
        other.faults(),
        [("DEVICE_EXISTS".to_owned(), "iccid".to_owned())]
    );
}

#[actix_web::test]
async fn devices_have_addresses_in_the_networks_of_their_customer_and_no_others() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let path = |customer: &str| format!("{CUSTOMERS}/{customer}/networks");
    let set = async |customer: &str, networks: &[&str]| {
        let request = TestService::request("PUT", &path(customer));
        let request = request.insert_header((AUTHORIZATION, OPERATOR));
        setup
            .call(request.set_json(json!({"networks": networks})))
            .await
    };
    let make = async |bearer: &str, id: &str, ip: &str| {
        let made = setup
            .post(DEVICES, bearer, json!({"deviceId": id, "ip": ip}))
            .await;
        let code = match made.status {
            StatusCode::CREATED => String::new(),
            _ => made.faults()[0].0.clone(),
        };
        (made.status.as_u16(), code)
    };
    let no = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(make(&acme.bearer, "old", "192.0.2.1").await, no(201, ""));

    let outside = set("acme", &["10.20.0.0/16"]).await;
    assert_eq!(outside.status, StatusCode::CONFLICT);
    assert_eq!(outside.faults()[0].0, "DEVICES_OUTSIDE");
    assert_eq!(
        make(&acme.bearer, "other", "192.0.2.2").await,
        no(201, ""),
        "nothing was set"
    );
    let networks = ["10.20.0.0/16", "192.0.2.0/24", "10.20.0.0/16"];
    let listed = json!({"networks": ["10.20.0.0/16", "192.0.2.0/24"]});
    assert_eq!(set("acme", &networks).await.json(), listed);
    assert_eq!(setup.get(&path("acme"), OPERATOR).await.json(), listed);

    assert_eq!(make(&acme.bearer, "in", "10.20.0.1").await, no(201, ""));
    assert_eq!(
        make(&acme.bearer, "out", "10.21.0.1").await,
        no(400, "INVALID_VALUE")
    );
    assert_eq!(
        make(&umbrella.bearer, "taken", "10.20.0.9").await,
        no(409, "ADDRESS_IN_USE")
    );
    assert_eq!(
        make(&umbrella.bearer, "free", "10.21.0.1").await,
        no(201, "")
    );
    let moved = json!({"ip": "10.99.0.1"});
    let moved = setup
        .patch(&format!("{DEVICES}/in"), &acme.bearer, moved)
        .await;
    assert_eq!(
        moved.faults(),
        [("INVALID_VALUE".to_owned(), "ip".to_owned())]
    );
    let import = TestService::request("POST", &format!("{DEVICES}/import"))
        .insert_header((AUTHORIZATION, acme.bearer.as_str()))
        .insert_header((CONTENT_TYPE, "application/x-ndjson"))
        .set_payload(
            "{\"deviceId\":\"a\",\"ip\":\"10.20.0.2\"}\n{\"deviceId\":\"b\",\"ip\":\"::1\"}\n",
        );
    let imported = setup.call(import).await.json();
    assert_eq!(
        (&imported["created"], &imported["refusals"][0]["line"]),
        (&json!(1), &json!(2))
    );

    let overlap = set("umbrella", &["10.0.0.0/8"]).await;
    assert_eq!(overlap.faults()[0].0, "NETWORK_IN_USE");
    for wrong in ["10.20.0.1/16", "10.20.0.0", "x"] {
        let refused = set("umbrella", &[wrong]).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    assert_eq!(set("nobody", &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(set("acme", &[]).await.json(), json!({"networks": []}));
    assert_eq!(make(&acme.bearer, "out", "10.99.0.1").await, no(201, ""));
}

#[actix_web::test]
async fn an_address_belongs_to_one_customer() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let meter = |id: &str| json!({"deviceId": id, "ip": "10.0.0.7"});
    for id in ["one", "two"] {
        let made = setup.post(DEVICES, &acme.bearer, meter(id)).await;
        assert_eq!(made.status, StatusCode::CREATED, "{id}");
    }
    let in_use = [("ADDRESS_IN_USE".to_owned(), "ip".to_owned())];
    let refused = setup.post(DEVICES, &umbrella.bearer, meter("three")).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.faults(), in_use);
    let bare = json!({"deviceId": "three", "ip": "10.0.0.8"});
    setup.post(DEVICES, &umbrella.bearer, bare).await;
    let path = format!("{DEVICES}/three");
    let ip = json!({"ip": "::ffff:10.0.0.7"});
    let refused = setup.patch(&path, &umbrella.bearer, ip).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.faults(), in_use);
    let import = TestService::request("POST", &format!("{DEVICES}/import"))
        .insert_header((AUTHORIZATION, umbrella.bearer.as_str()))
        .insert_header((CONTENT_TYPE, "application/x-ndjson"))
        .set_payload(format!(
            "{}\n{}\n",
            meter("four"),
            json!({"deviceId": "five"})
        ));
    let imported = setup.call(import).await.json();
    assert_eq!(imported["created"], 1);
    let refusal = &imported["refusals"][0];
    assert_eq!(refusal["line"], 1);
    assert_eq!(refusal["errors"][0]["code"], "ADDRESS_IN_USE");
}

#[actix_web::test]
async fn a_device_without_any_identifier_is_refused() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let answer = setup
        .post(DEVICES, &acme.bearer, json!({"name": "meter"}))
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        answer.faults(),
        [("REQUIRED".to_owned(), "deviceId".to_owned())]
    );
}

#[actix_web::test]
async fn a_customer_sees_its_own_devices_page_by_page() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    for id in ["a", "b", "c"] {
        setup
            .post(DEVICES, &acme.bearer, json!({ "deviceId": id }))
            .await;
    }
    let page = setup
        .get(&format!("{DEVICES}?pageSize=2&page=2"), &acme.bearer)
        .await
        .json();
    assert_eq!((&page["page"], &page["pageAmount"]), (&json!(2), &json!(2)));
    assert_eq!(page["items"][0]["deviceId"], "c");
    let none = setup.get(DEVICES, &umbrella.bearer).await.json();
    let empty = json!({
        "items": [], "page": 1, "pageAmount": 1, "total": 0, "totalIsExact": true,
    });
    assert_eq!(none, empty);
}

#[actix_web::test]
async fn a_device_s_key_is_stored_encrypted_for_that_device() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let psk = json!({"secretKey": "00112233aabbccdd", "format": "HEX", "identity": "key-7"});
    let body = json!({"deviceId": "meter", "psk": psk});
    let made = setup.post(DEVICES, &acme.bearer, body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let customer = CustomerId::parse("acme").unwrap();
    let device = DeviceKey::of(&customer, &DeviceId::parse("meter").unwrap());
    let psk = setup
        .store
        .profile(device)
        .await
        .unwrap()
        .unwrap()
        .credentials
        .psk
        .unwrap()
        .key;
    assert_eq!(&*psk.identity, "key-7");
    let opened = MasterKey::from_bytes(&[7; 32])
        .open(&psk.key, device.as_bytes())
        .unwrap();
    assert_eq!(*opened, [0x00, 0x11, 0x22, 0x33, 0xAA, 0xBB, 0xCC, 0xDD]);
    let listed = setup.get(DEVICES, &acme.bearer).await;
    let listed = &listed.json()["items"][0]["psk"];
    assert_eq!(
        (&listed["identity"], &listed["configured"]),
        (&json!("key-7"), &json!(true))
    );
}

#[actix_web::test]
async fn a_key_for_an_unknown_device_or_in_an_unknown_format_is_refused() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for id in ["meter", "other"] {
        setup
            .post(DEVICES, &acme.bearer, json!({ "deviceId": id }))
            .await;
    }
    let path = format!("{DEVICES}/meter/psk");
    let key = json!({"secretKey": "12345678", "format": "STRING", "identity": "other"});
    let taken = setup.post(&path, &acme.bearer, key.clone()).await;
    assert_eq!(
        taken.faults(),
        [("DEVICE_EXISTS".to_owned(), "identity".to_owned())]
    );
    let nobody = setup
        .post(&format!("{DEVICES}/nobody/psk"), &acme.bearer, key)
        .await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let short = setup
        .post(
            &path,
            &acme.bearer,
            json!({"secretKey": "x", "format": "HEX"}),
        )
        .await;
    assert_eq!(
        short.faults(),
        [("INVALID_VALUE".to_owned(), "secretKey".to_owned())]
    );
    let empty = setup
        .post(&path, &acme.bearer, json!({"format": "TEXT"}))
        .await;
    let expected = [("INVALID_VALUE", "format"), ("REQUIRED", "secretKey")];
    assert_eq!(
        empty.faults(),
        expected.map(|(code, field)| (code.to_owned(), field.to_owned()))
    );
}

#[actix_web::test]
async fn a_setting_is_changed_and_listed_for_its_customer_alone() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let umbrella = setup.customer("umbrella", &["all"]).await;
    let path = format!("{SETTINGS}/signalbox/LWM2M_PASSIVE_REPORTING");
    let changed = setup
        .patch(&path, &acme.bearer, json!({"state": "ENABLED"}))
        .await;
    let name = "LWM2M_PASSIVE_REPORTING";
    let expected = json!({"customerId": "acme", "name": name, "state": "ENABLED"});
    assert_eq!(
        (changed.status, changed.json()),
        (StatusCode::OK, expected.clone())
    );
    let listed = setup
        .get(&format!("{SETTINGS}/signalbox"), &acme.bearer)
        .await
        .json();
    assert_eq!(listed["items"], json!([expected]));
    let other = setup
        .get(&format!("{SETTINGS}/signalbox"), &umbrella.bearer)
        .await
        .json();
    assert_eq!(other["items"][0]["state"], "DISABLED");
}

#[actix_web::test]
async fn an_unknown_setting_is_not_found_and_an_unknown_state_is_refused() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    for path in ["signalbox/NIGHT_MODE", "elsewhere/LWM2M_PASSIVE_REPORTING"] {
        let path = format!("{SETTINGS}/{path}");
        let answer = setup
            .patch(&path, &acme.bearer, json!({"state": "ENABLED"}))
            .await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
    }
    let elsewhere = setup
        .get(&format!("{SETTINGS}/elsewhere"), &acme.bearer)
        .await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND);
    let path = format!("{SETTINGS}/signalbox/LWM2M_PASSIVE_REPORTING");
    let answer = setup
        .patch(&path, &acme.bearer, json!({"state": "on"}))
        .await;
    assert_eq!(
        answer.faults(),
        [("INVALID_VALUE".to_owned(), "state".to_owned())]
    );
}

#[actix_web::test]
async fn the_address_of_a_device_is_unicast() {
    let setup = TestService::new();
    let acme = setup.customer("acme", &["all"]).await;
    let made = setup
        .post(DEVICES, &acme.bearer, json!({"deviceId": "meter"}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    let meter = format!("{DEVICES}/meter");
    let expected = [("INVALID_VALUE".to_owned(), "ip".to_owned())];
    for ip in [
        "0.0.0.0",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "ff02::1",
        "::ffff:224.0.0.1",
        "::ffff:0.0.0.0",
        "10.0.0.256",
        "10.0.0.7:5683",
        "host",
        "",
    ] {
        let body = json!({"deviceId": "other", "ip": ip});
        let refused = setup.post(DEVICES, &acme.bearer, body).await;
        assert_eq!(refused.faults(), expected, "{ip}");
        let refused = setup.patch(&meter, &acme.bearer, json!({"ip": ip})).await;
        assert_eq!(refused.faults(), expected, "{ip}");
    }
    let good = [
        ("10.0.0.7", "10.0.0.7"),
        ("223.255.255.255", "223.255.255.255"),
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:DB8::7", "2001:db8::7"),
        ("fe80::1", "fe80::1"),
    ];
    for ((ip, shown), number) in good.into_iter().zip(1..) {
        let body = json!({"deviceId": format!("device-{number}"), "ip": ip});
        let made = setup.post(DEVICES, &acme.bearer, body).await;
        assert_eq!(made.json()["ip"], shown, "{ip}");
    }
}
