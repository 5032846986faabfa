//! Do devices update their firmware in campaigns, whatever happens meanwhile?

use harness::device::configuration::Configuration;
use harness::device::resource::{
    FIRMWARE_PACKAGE, FIRMWARE_URI, Resource, firmware, firmware_by_push,
};
use protocol::coap::block::{Block, BlockSize, More};
use protocol::coap::code::Code;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value as Lwm2mValue;
use serde_json::{Value, json};

use crate::test_service::{
    TestService, crash, error_codes, error_fields, keys, page, silent_device, start, with,
};
use crate::vocabulary::caller::{API, Caller, text};
use crate::vocabulary::client::ApiClient;
use crate::vocabulary::device::{DEVICE_IP, Device};
use crate::vocabulary::http::{Request, Response};
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::poll::until;
use crate::vocabulary::secured::SecuredDevice;
use crate::vocabulary::service::Service;
use crate::vocabulary::wire::{DeviceSocket, register, request};

const IMAGE: &str = "an image of forty-two bytes, in plain text";
const IMAGES: &str = "/management-api/v1/firmware/images";
const CAMPAIGNS: &str = "/management-api/v1/firmware/campaigns";
const OCTETS: &str = "application/octet-stream";
const PSK: &str = "a key of 16 byte";
const INSTALL: Path = Path::resource(5, 0, 2);

#[test]
fn an_image_is_stored_listed_and_deleted() {
    let (mut service, mut caller) = start(&[]);
    let stored = store(&caller, "?name=Meter&version=1.5.0", IMAGE);
    let image = stored.expect(201);
    assert_eq!(
        keys(&image),
        ["created", "id", "name", "sha256", "size", "version"]
    );
    let path = format!("{IMAGES}/{}", text(&image["id"]));
    assert_eq!(stored.header("location"), Some(path.as_str()));
    assert_eq!(
        (&image["size"], &image["name"], &image["version"]),
        (&json!(IMAGE.len()), &json!("Meter"), &json!("1.5.0"))
    );
    let digest = text(&image["sha256"]);
    assert_eq!(digest.len(), 64);
    let plain = store(&caller, "", IMAGE).expect(201);
    assert_eq!(keys(&plain), ["created", "id", "sha256", "size"]);
    assert_eq!(text(&plain["sha256"]), digest);
    crash(&mut service, &mut caller);
    assert_eq!(caller.request("GET", &path).expect(200), image);
    let (ids, _) = page(&caller, "/firmware/images");
    assert_eq!(ids, [text(&plain["id"]), text(&image["id"])]);
    assert_eq!(files(&service).len(), 2);
    assert_eq!(caller.request("DELETE", &path).status, 204);
    assert_eq!(caller.request("GET", &path).status, 404);
    assert_eq!(files(&service), [text(&plain["id"])]);
}

#[test]
fn an_image_that_is_too_large_or_breaks_off_leaves_nothing() {
    let (mut service, mut caller) = start(&[
        ("SIGNALBOX_IMAGE_BYTES_MAX", "64"),
        ("SIGNALBOX_IMAGES_BYTES_MAX", "100"),
    ]);
    let too_large = store(&caller, "", &"x".repeat(65));
    check(&too_large, 413, &["BODY_TOO_LARGE"]);
    store(&caller, "", &"x".repeat(64)).expect(201);
    check(&store(&caller, "", &"x".repeat(64)), 409, &["IMAGE_QUOTA"]);
    check(&store(&caller, "", ""), 400, &["MALFORMED_BODY"]);
    let text = caller.authorized("POST", IMAGES).text("text/plain", "x");
    check(
        &text.send(caller.address()),
        415,
        &["UNSUPPORTED_MEDIA_TYPE"],
    );
    let begun = caller
        .authorized("POST", IMAGES)
        .header("content-type", OCTETS)
        .header("content-length", "32");
    begun.leave_behind(caller.address(), "only a part");
    until("one file to be left", || {
        (files(&service).len() == 1).then_some(())
    });
    std::fs::write(service.data_dir().join("firmware/left-behind"), "x").unwrap();
    crash(&mut service, &mut caller);
    assert_eq!(files(&service).len(), 1);
}

#[test]
fn a_campaign_updates_its_devices() {
    let (service, caller) = start(&[]);
    let devices = ["meter-1", "meter-2", "meter-3"];
    let devices = devices.map(|id| updatable(&service, &caller, id, (0, 1)));
    silent_device(&caller, "silent");
    let image = stored(&caller);
    let ids = ["meter-1", "meter-2", "meter-3", "silent", "nobody"];
    let created = caller.post(CAMPAIGNS, &campaign(&image, &ids));
    let shown = created.expect(201);
    let path = format!("{CAMPAIGNS}/{}", text(&shown["id"]));
    assert_eq!(created.header("location"), Some(path.as_str()));
    assert_eq!(shown["state"], "RUNNING");
    let done = ended(&caller, &shown);
    assert_eq!(done["state"], "DONE");
    let counts = json!({
        "PENDING": 0, "TRANSFERRING": 0, "DOWNLOADED": 0, "UPDATING": 0,
        "SUCCEEDED": 3, "FAILED": 0, "SKIPPED": 2,
    });
    assert_eq!(done["counts"], counts);
    let listed = rows(&caller, &shown);
    for row in &listed[..3] {
        assert_eq!(keys(row), ["bytes", "deviceId", "state", "updated"]);
        assert_eq!(
            (&row["state"], &row["bytes"]),
            (&json!("SUCCEEDED"), &json!(IMAGE.len()))
        );
    }
    assert_eq!(
        listed[3]["reason"],
        "the device never registered over LwM2M"
    );
    assert_eq!(listed[4]["reason"], "there is no such device");
    for device in &devices {
        assert_eq!(device.with(|it| it.executed(INSTALL)), 1);
    }
    let again = caller.request("POST", &format!("{path}/pause"));
    check(&again, 409, &["CAMPAIGN_STATE"]);
}

#[test]
fn a_device_downloads_the_image_from_the_uri_that_it_is_given() {
    let (service, caller) = start(&[]);
    let device = updatable(&service, &caller, "meter-1", (9, 1));
    let image = stored(&caller);
    // After its failure it waits for another try, and the campaign is open.
    let body = with(campaign(&image, &["meter-1"]), "retries", 10);
    let created = caller.post(CAMPAIGNS, &body).expect(201);
    let uri = given_uri(&device);
    assert!(uri.starts_with(&format!("http://{}/firmware/", service.http)));
    let path = uri.split_once("//").unwrap().1;
    let path = path[path.find('/').unwrap()..].to_owned();
    let get = |header: (&str, &str)| {
        let request = Request::new("GET", &path).header(header.0, header.1);
        request.send(caller.address())
    };
    let whole = get(("accept", "*/*"));
    assert_eq!((whole.status, whole.text()), (200, IMAGE));
    let row = &rows(&caller, &created)[0];
    assert_eq!(
        (&row["state"], &row["bytes"]),
        (&json!("TRANSFERRING"), &json!(IMAGE.len()))
    );
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let etag = whole.header("etag").unwrap().to_owned();
    let part = get(("range", "bytes=3-7"));
    assert_eq!((part.status, part.text()), (206, &IMAGE[3..8]));
    assert_eq!(part.header("content-range"), Some("bytes 3-7/42"));
    assert_eq!(get(("range", "bytes=42-")).status, 416);
    assert_eq!(get(("if-none-match", &etag)).status, 304);
    let other = Request::new("GET", &format!("{path}0")).send(caller.address());
    assert_eq!(other.status, 404, "the path cannot be guessed");
    let in_use = caller.request("DELETE", &format!("{IMAGES}/{image}"));
    check(&in_use, 409, &["IMAGE_IN_USE"]);
    post(&caller, &created, "cancel").expect(200);
    let gone = until("the end of the campaign", || {
        let answer = get(("accept", "*/*"));
        (answer.status == 404).then_some(answer)
    });
    assert_eq!(gone.status, 404);
    let removed = caller.request("DELETE", &format!("{IMAGES}/{image}"));
    assert_eq!(removed.status, 204);
}

#[test]
fn a_campaign_halts_when_too_many_devices_fail_and_goes_on_when_it_is_resumed() {
    let (service, caller) = start(&[]);
    let _broken = updatable(&service, &caller, "meter-1", (5, 1));
    let _well = updatable(&service, &caller, "meter-2", (0, 1));
    let body = json!({
        "url": "http://192.0.2.1/image", "deviceIds": ["meter-1", "meter-2"],
        "method": "PULL", "concurrency": 1, "haltAtFailedPercent": 50,
    });
    let created = caller.post(CAMPAIGNS, &body).expect(201);
    let halted = until("the halt", || {
        let shown = show(&caller, &created);
        (shown["state"] == "HALTED").then_some(shown)
    });
    assert_eq!(
        (&halted["counts"]["FAILED"], &halted["counts"]["PENDING"]),
        (&json!(1), &json!(1))
    );
    let failed = &rows(&caller, &created)[0];
    assert_eq!(
        failed["reason"],
        "the integrity check of the image failed (/5/0/5 is 5)"
    );
    let resumed = post(&caller, &created, "resume").expect(200);
    assert_eq!(resumed["state"], "RUNNING");
    let done = ended(&caller, &created);
    assert_eq!(done["counts"]["SUCCEEDED"], 1);
}

#[test]
fn a_paused_campaign_begins_nothing_until_it_is_resumed_and_a_cancelled_one_nothing_at_all() {
    let (service, caller) = start(&[]);
    let device = updatable(&service, &caller, "meter-1", (0, 1));
    let later = "2099-01-01T00:00:00.000";
    let body = json!({
        "url": "http://192.0.2.1/image", "deviceIds": ["meter-1"], "method": "AUTO",
        "concurrency": 1, "notBefore": later,
    });
    check(&caller.post(CAMPAIGNS, &body), 400, &["OUT_OF_RANGE"]);
    let body = json!({
        "url": "http://192.0.2.1/image", "filter": {"q": "meter"}, "method": "AUTO",
        "concurrency": 1, "canaryPercent": 10, "retries": 1, "ratePerMinute": 100,
    });
    let first = caller.post(CAMPAIGNS, &body).expect(201);
    let cancelled = post(&caller, &first, "cancel").expect(200);
    assert_eq!(cancelled["state"], "CANCELLED");
    until("the device to be told", || {
        (rows(&caller, &first)[0]["state"] == "SKIPPED").then_some(())
    });
    let second = caller.post(CAMPAIGNS, &body).expect(201);
    let paused = post(&caller, &second, "pause").expect(200);
    assert_eq!(paused["state"], "PAUSED");
    check(&post(&caller, &second, "pause"), 409, &["CAMPAIGN_STATE"]);
    let resumed = post(&caller, &second, "resume").expect(200);
    assert_eq!(resumed["state"], "RUNNING");
    let done = ended(&caller, &second);
    assert_eq!(done["state"], "DONE");
    assert!(device.with(|it| it.executed(INSTALL)) <= 1);
}

#[test]
fn a_campaign_goes_on_after_the_service_was_killed() {
    let mut setup = TestService::with(&[], configuration("meter-1", (0, 1)));
    let _other = updatable(&setup.service, &setup.caller, "meter-2", (0, 1));
    let body = json!({
        "url": "http://192.0.2.1/image", "deviceIds": ["meter-1", "meter-2"],
        "method": "PULL", "concurrency": 1,
    });
    let created = setup.caller.post(CAMPAIGNS, &body).expect(201);
    for state in ["TRANSFERRING", "UPDATING"] {
        until("a device under way", || {
            let counts = &show(&setup.caller, &created)["counts"];
            let ended = counts["SUCCEEDED"] == 2;
            (counts[state] == 1 || ended).then_some(())
        });
        setup.crash();
    }
    let done = ended(&setup.caller, &created);
    assert_eq!(
        (&done["state"], &done["counts"]["SUCCEEDED"]),
        (&json!("DONE"), &json!(2))
    );
    assert_eq!(setup.device.with(|it| it.executed(INSTALL)), 1, "once");
}

#[test]
fn every_fault_of_a_campaign_is_named() {
    let (_service, caller) = start(&[]);
    let body = json!({
        "imageId": "01890000-0000-7000-8000-000000000000", "url": "http://192.0.2.1/image",
        "deviceIds": [], "method": "SEND", "concurrency": 0, "retries": 99,
        "canaryPercent": 101, "notAfter": "2020-01-01T00:00:00.000", "colour": "red",
    });
    let refused = caller.post(CAMPAIGNS, &body).expect(400);
    assert_eq!(
        error_fields(&refused),
        [
            "canaryPercent",
            "colour",
            "concurrency",
            "deviceIds",
            "imageId",
            "method",
            "notAfter",
            "retries",
            "url"
        ]
    );
    let empty = caller.post(CAMPAIGNS, &json!({}));
    assert_eq!(error_codes(&empty.json()), ["REQUIRED"; 3]);
    let elsewhere = json!({
        "url": "ftp://192.0.2.1/image", "deviceIds": ["meter-1"], "concurrency": 1,
    });
    check(&caller.post(CAMPAIGNS, &elsewhere), 400, &["INVALID_VALUE"]);
    let pushed = json!({
        "url": "http://192.0.2.1/image", "deviceIds": ["meter-1"], "concurrency": 1,
        "method": "PUSH",
    });
    let refused = caller.post(CAMPAIGNS, &pushed).expect(400);
    assert_eq!(error_fields(&refused), ["method"]);
}

#[test]
fn an_image_is_downloaded_over_coap_block_by_block() {
    let (service, caller) = start(&[]);
    caller.create_device("meter-1", DEVICE_IP);
    let device = Device::registered(&service, downloading_over_coap("meter-1"));
    let image = stored(&caller);
    let body = with(campaign(&image, &["meter-1"]), "retries", 10);
    let created = caller.post(CAMPAIGNS, &body).expect(201);
    let uri = given_uri(&device);
    let path = uri.strip_prefix(&format!("coap://{}/", service.coap));
    let path: Vec<_> = path.expect("the port for CoAP").split('/').collect();
    // From another port than that of the registration.
    let socket = DeviceSocket::to(&service);
    let get = |path: &[&str], id| request(Code::GET, id).with_uri_path(path);
    let block = |number| Block::new(number, More::No, BlockSize::MIN);
    let second = socket.ask(&get(&path, 1).with_block2(block(1)));
    assert_eq!(second.code, Code::CONTENT);
    assert_eq!(second.payload, IMAGE.as_bytes()[16..32]);
    assert_eq!((second.size2(), second.etag().is_some()), (None, true));
    assert_eq!(rows(&caller, &created)[0]["bytes"], 32);
    let last = socket.ask(&get(&path, 2).with_block2(block(2)));
    assert_eq!(last.block2().map(Block::has_more), Some(false));
    assert_eq!(last.payload, IMAGE.as_bytes()[32..]);
    let beyond = socket.ask(&get(&path, 3).with_block2(block(3)));
    assert_eq!(beyond.code, Code::BAD_REQUEST);
    let whole = socket.ask(&get(&path, 4));
    assert_eq!((whole.block2(), whole.etag()), (None, second.etag()));
    assert_eq!(whole.payload, IMAGE.as_bytes());
    let posted = request(Code::POST, 5).with_uri_path(&path);
    assert_eq!(socket.ask(&posted).code, Code::METHOD_NOT_ALLOWED);
    let mut guessed = path.clone();
    let key = guessed[2].replace(['0', '1'], "2");
    guessed[2] = &key;
    assert_eq!(socket.ask(&get(&guessed, 6)).code, Code::NOT_FOUND);
    post(&caller, &created, "cancel").expect(200);
    let mut id = 6;
    until("the end of the campaign", || {
        id += 1;
        let answer = socket.ask(&get(&path, id));
        (answer.code == Code::NOT_FOUND).then_some(())
    });
}

#[test]
fn an_image_is_downloaded_over_a_session_beside_that_of_the_registration() {
    let (service, caller) = start(&[("SIGNALBOX_ARBITERS", "1")]);
    caller.create_device("meter-1", DEVICE_IP);
    let device = Device::registered(&service, downloading_over_coap("meter-1"));
    let image = stored(&caller);
    let body = with(campaign(&image, &["meter-1"]), "retries", 10);
    caller.post(CAMPAIGNS, &body).expect(201);
    let uri = given_uri(&device);
    let path = uri.split('/').skip(3);
    caller.create_secured_device("meter-2", PSK);
    let mut registered = SecuredDevice::connected(DEVICE_IP, &service, "meter-2", PSK);
    registered.register(&register("meter-2", 1));
    let mut downloading = SecuredDevice::connected(DEVICE_IP, &service, "meter-2", PSK);
    let path: Vec<_> = path.collect();
    let mut taken = Vec::new();
    for number in 0..3 {
        // A NAT gives it another port.
        downloading.move_to_another_port(&service);
        let block = Block::new(u32::from(number), More::No, BlockSize::MIN);
        let get = request(Code::GET, 1 + number).with_uri_path(&path);
        let part = downloading.ask(&get.with_block2(block));
        assert_eq!(part.code, Code::CONTENT);
        assert_eq!(part.block2().map(Block::has_more), Some(number < 2));
        taken.extend(part.payload);
    }
    assert_eq!(taken, IMAGE.as_bytes());
    caller.create_action("meter-2", &read("/3/0/9"));
    let asked = registered.receive_request();
    assert!(asked.uri_path().eq(["3", "0", "9"]), "{asked:?}");
}

#[test]
fn an_image_is_pushed_to_a_device_that_downloads_none() {
    let (service, caller) = start(&[]);
    caller.create_device("meter-1", DEVICE_IP);
    let device = Device::registered(&service, pushed_to("meter-1", (0, 1)));
    // Longer than the pieces in which it is read.
    let image: String = (0..10_000).map(|number| format!("{number:08}, ")).collect();
    let id = text(&store(&caller, "", &image).expect(201)["id"]);
    let created = caller.post(CAMPAIGNS, &campaign(&id, &["meter-1"]));
    let created = created.expect(201);
    assert_eq!(created.get("url"), None);
    let done = ended(&caller, &created);
    assert_eq!(
        done["counts"]["SUCCEEDED"],
        1,
        "{}",
        rows(&caller, &created)[0]
    );
    let taken = device.with(|it| it.value(FIRMWARE_PACKAGE).cloned());
    let is_whole = taken == Some(Lwm2mValue::Opaque(image.clone().into_bytes()));
    assert!(is_whole, "the device has another image");
    assert_eq!(rows(&caller, &created)[0]["bytes"], image.len());
    assert_eq!(device.with(|it| it.executed(INSTALL)), 1);
}

#[test]
fn a_push_goes_on_after_the_service_was_killed() {
    let mut setup = TestService::with(&[], pushed_to("meter-1", (0, 1)));
    let image = "0123456789abcdef".repeat(64 * 1_024);
    let id = text(&store(&setup.caller, "", &image).expect(201)["id"]);
    let body = with(campaign(&id, &["meter-1"]), "method", "PUSH");
    let created = setup.caller.post(CAMPAIGNS, &body).expect(201);
    until("the device to be sent the image", || {
        let counts = &show(&setup.caller, &created)["counts"];
        (counts["PENDING"] == 0).then_some(())
    });
    setup.crash();
    let done = ended(&setup.caller, &created);
    assert_eq!(done["counts"]["SUCCEEDED"], 1);
    let taken = setup.device.with(|it| it.value(FIRMWARE_PACKAGE).cloned());
    assert!(taken == Some(Lwm2mValue::Opaque(image.into_bytes())));
    assert_eq!(setup.device.with(|it| it.executed(INSTALL)), 1, "once");
}

#[test]
fn images_and_campaigns_belong_to_their_customer_and_need_its_scopes() {
    let (service, _) = start(&[]);
    let own = ApiClient::of_new_customer(&service, "Initech");
    let caller = own.caller(&service);
    let image = stored(&caller);
    let body = json!({
        "url": "http://192.0.2.1/image", "deviceIds": ["meter-1"], "concurrency": 1,
    });
    let created = caller.post(CAMPAIGNS, &body).expect(201);
    let other = Caller::of_new_customer(&service, "Globex");
    let campaign = format!("{CAMPAIGNS}/{}", text(&created["id"]));
    for path in [
        format!("{IMAGES}/{image}"),
        campaign.clone(),
        format!("{campaign}/devices"),
    ] {
        assert_eq!(other.request("GET", &path).status, 404, "{path}");
    }
    let cancelled = other.request("POST", &format!("{campaign}/cancel"));
    assert_eq!(cancelled.status, 404);
    let reader = json!({ "name": "reader", "scopes": ["devices:read"] });
    let reader = ApiClient::make(&service, &own.customer, &reader).caller(&service);
    assert_eq!(reader.request("GET", &campaign).status, 200);
    check(&reader.post(CAMPAIGNS, &body), 403, &["FORBIDDEN"]);
}

fn check(answer: &Response, status: u16, codes: &[&str]) {
    let body = answer.expect(status);
    assert_eq!(error_codes(&body), codes, "{body}");
}

/// Stores an image and returns its id.
fn stored(caller: &Caller) -> String {
    text(&store(caller, "", IMAGE).expect(201)["id"])
}

fn store(caller: &Caller, query: &str, image: &str) -> Response {
    let request = caller.authorized("POST", &format!("{IMAGES}{query}"));
    request.text(OCTETS, image).send(caller.address())
}

/// The names of the files of images.
fn files(service: &Service) -> Vec<String> {
    let files = std::fs::read_dir(service.data_dir().join("firmware")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn campaign(image: &str, devices: &[&str]) -> Value {
    json!({ "imageId": image, "deviceIds": devices, "method": "AUTO", "concurrency": 2 })
}

/// A registered device that downloads and installs with these results.
fn updatable(service: &Service, caller: &Caller, id: &str, results: (u8, u8)) -> Device {
    caller.create_device(id, DEVICE_IP);
    Device::registered(service, configuration(id, results))
}

fn configuration(id: &str, (download, install): (u8, u8)) -> Configuration {
    let mut configuration = Configuration::new(id);
    configuration.resources.extend(firmware(download, install));
    configuration
}

/// The same of a device that takes images by push only.
fn pushed_to(id: &str, (receive, install): (u8, u8)) -> Configuration {
    let mut configuration = Configuration::new(id);
    let resources = firmware_by_push(receive, install);
    configuration.resources.extend(resources);
    configuration
}

/// The same of a device that downloads over CoAP and then fails.
fn downloading_over_coap(id: &str) -> Configuration {
    let mut configuration = configuration(id, (9, 1));
    let protocol = Path::resource_instance(5, 0, 8, 0);
    let over_coap = Resource::holding(protocol, Lwm2mValue::Integer(0));
    configuration.resources.push(over_coap);
    configuration
}

/// The URI that a device was given.
fn given_uri(device: &Device) -> String {
    until("the device to be given the URI", || {
        match device.with(|it| it.value(FIRMWARE_URI).cloned()) {
            Some(Lwm2mValue::String(uri)) if !uri.is_empty() => Some(uri),
            _ => None,
        }
    })
}

fn show(caller: &Caller, campaign: &Value) -> Value {
    let path = format!("{CAMPAIGNS}/{}", text(&campaign["id"]));
    caller.request("GET", &path).expect(200)
}

fn post(caller: &Caller, campaign: &Value, command: &str) -> Response {
    let path = format!("{CAMPAIGNS}/{}/{command}", text(&campaign["id"]));
    caller.request("POST", &path)
}

fn rows(caller: &Caller, campaign: &Value) -> Vec<Value> {
    let path = format!("{API}/firmware/campaigns/{}/devices", text(&campaign["id"]));
    let page = caller.request("GET", &path).expect(200);
    page["items"].as_array().unwrap().clone()
}

/// The campaign once it has ended.
fn ended(caller: &Caller, campaign: &Value) -> Value {
    until("the end of the campaign", || {
        let shown = show(caller, campaign);
        let is_open = ["RUNNING", "PAUSED", "HALTED"].contains(&shown["state"].as_str().unwrap());
        (!is_open).then_some(shown)
    })
}
