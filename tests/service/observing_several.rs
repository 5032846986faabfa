//! Are several paths observed at once, until that is ended?

use harness::device::event::Operation;
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use serde_json::{Value as Json, json};

use crate::composite::speaking;
use crate::managing::payload;
use crate::test_service::{ID, TestService};
use crate::vocabulary::caller::API;
use crate::vocabulary::lwm2m::{observe_start, outcome};
use crate::vocabulary::poll::until;

const PATHS: [&str; 2] = ["/3303/0/5700", "/3/0/14"];
const TEMPERATURE: Path = Path::resource(3303, 0, 5700);

#[test]
fn changes_of_several_paths_are_notified_together_until_the_end() {
    for format in [ContentFormat::SENML_CBOR, ContentFormat::SENML_JSON] {
        let mut setup = TestService::with(&[], speaking(&[format]));
        let begun = setup.perform(&start(&PATHS));
        assert_eq!(outcome(&begun), ("SUCCEEDED", "205"), "{begun}");
        let first = json!({ "/3303/0/5700": 21.5, "/3/0/14": "+00:00" });
        assert_eq!(payload(&begun), first, "{begun}");
        let shown = setup.observation();
        assert_eq!(shown["paths"], json!(PATHS), "{shown}");
        assert_eq!(shown["requestId"], begun["id"], "{shown}");
        // An observation of one of the paths is another one.
        let other = setup.perform(&observe_start(PATHS[0]));
        assert_eq!(outcome(&other), ("SUCCEEDED", "205"), "{other}");
        setup.device.set(TEMPERATURE, Value::Float(30.0));
        let notified = setup.once_notified_together(&begun, 1);
        let values = json!({ "/3303/0/5700": 30.0, "/3/0/14": "+00:00" });
        assert_eq!(notified, [values]);
        let ended = setup.perform(&end(&PATHS));
        assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
        let left = &setup.caller.inspect(ID)["observations"];
        assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
        assert_eq!(left[0]["path"], PATHS[0], "{left}");
        setup.device.set(TEMPERATURE, Value::Float(31.0));
        // A notification would have been received before the update.
        setup.device.update();
        assert_eq!(setup.notified_together(&begun).len(), 1);
        let again = setup.perform(&end(&PATHS));
        assert_eq!(again["status"], "FAILED", "{again}");
    }
}

#[test]
fn instances_that_are_created_and_deleted_are_notified() {
    let setup = TestService::with(&[], speaking(&[ContentFormat::SENML_CBOR]));
    let begun = setup.perform(&start(&["/3303", "/3/0/14"]));
    assert_eq!(outcome(&begun), ("SUCCEEDED", "205"), "{begun}");
    let create =
        json!({ "action": "create", "resourceAddress": "/3303/1", "data": { "5700": -4 } });
    let created = setup.perform(&create);
    assert_eq!(outcome(&created), ("SUCCEEDED", "201"), "{created}");
    let notified = setup.once_notified_together(&begun, 1);
    assert_eq!(notified[0]["/3303/1/5700"], -4.0, "{notified:?}");
    assert_eq!(notified[0]["/3303/0/5700"], 21.5, "{notified:?}");
    setup
        .device
        .set(Path::resource(3303, 1, 5700), Value::Float(-5.0));
    let notified = setup.once_notified_together(&begun, 2);
    assert_eq!(notified[1]["/3303/1/5700"], -5.0, "{notified:?}");
    let delete = json!({ "action": "delete", "resourceAddress": "/3303/1" });
    let deleted = setup.perform(&delete);
    assert_eq!(outcome(&deleted), ("SUCCEEDED", "202"), "{deleted}");
    let notified = setup.once_notified_together(&begun, 3);
    assert_eq!(notified[2].get("/3303/1/5700"), None, "{notified:?}");
    assert_eq!(notified[2]["/3303/0/5700"], 21.5, "{notified:?}");
}

#[test]
fn several_paths_are_observed_again_after_a_crash_and_a_new_registration() {
    let mut setup = TestService::with(&[], speaking(&[ContentFormat::SENML_CBOR]));
    let begun = setup.perform(&start(&PATHS));
    setup.crash();
    setup.device.set(TEMPERATURE, Value::Float(30.0));
    let before = setup.once_notified_together(&begun, 1).len();
    setup.device.reboot();
    until("the observation", || {
        let is_again = setup.device.times_observed(TEMPERATURE) == 2;
        (is_again && setup.observation()["state"] == "HELD").then_some(())
    });
    let before = before.max(setup.notified_together(&begun).len());
    setup.device.set(TEMPERATURE, Value::Float(31.0));
    let notified = setup.once_notified_together(&begun, before + 1);
    assert_eq!(
        notified.last().unwrap()["/3303/0/5700"],
        31.0,
        "{notified:?}"
    );
    let ended = setup.perform(&end(&PATHS));
    assert_eq!(outcome(&ended), ("SUCCEEDED", "205"), "{ended}");
    let last = setup.device.performed().pop().unwrap();
    assert_eq!(last.operation, Operation::CancelObservation);
}

impl TestService {
    /// The one observation of the device.
    fn observation(&self) -> Json {
        self.caller.inspect(ID)["observations"][0].clone()
    }

    /// The values of the notifications since a request, oldest first.
    fn notified_together(&self, begun: &Json) -> Vec<Json> {
        let path = format!("{API}/devices/{ID}/messages?type=TELEMETRY_DATA");
        let page = self.caller.request("GET", &path).expect(200);
        let items = page["items"].as_array().unwrap().iter().rev();
        let of_request = items.filter(|item| {
            item["cause"]["type"] == "COMPOSITE_OBSERVATION"
                && item["cause"]["requestId"] == begun["id"]
        });
        of_request
            .map(|item| item["payload"]["value"].clone())
            .collect()
    }

    fn once_notified_together(&self, begun: &Json, times: usize) -> Vec<Json> {
        until("a notification of several paths", || {
            let notified = self.notified_together(begun);
            (notified.len() >= times).then_some(notified)
        })
    }
}

fn start(paths: &[&str]) -> Json {
    json!({ "action": "observe-composite-start", "resourceAddresses": paths })
}

fn end(paths: &[&str]) -> Json {
    json!({ "action": "observe-composite-end", "resourceAddresses": paths })
}
