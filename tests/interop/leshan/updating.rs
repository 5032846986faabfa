//! Does Leshan take a firmware image by push, and by pull over CoAP?

use serde_json::json;

use super::{ID, TestService};
use crate::vocabulary::caller::{API, text};
use crate::vocabulary::poll::until;

#[test]
fn an_image_is_pushed_block_by_block() {
    check("127.0.9.120", "push");
}

#[test]
fn an_image_is_pulled_over_coap_block_by_block() {
    check("127.0.9.121", "pull");
}

fn check(address: &str, way: &str) {
    let setup = TestService::new(address);
    let mut device = setup.device(ID, &["--firmware", way]);
    device.wait_for("registered");
    // Californium takes no body of more than 8 KiB.
    let image = "a line of the image\n".repeat(400);
    let caller = &setup.caller;
    let stored = caller.authorized("POST", &format!("{API}/firmware/images"));
    let stored = stored.text("application/octet-stream", &image);
    let stored = stored.send(caller.address()).expect(201);
    let campaign = json!({ "imageId": stored["id"], "deviceIds": [ID], "concurrency": 1 });
    let campaigns = format!("{API}/firmware/campaigns");
    let created = caller.post(&campaigns, &campaign).expect(201);
    assert_eq!(device.wait_for("installed"), text(&stored["sha256"]));
    let shown = until("the end of the campaign", || {
        let path = format!("{campaigns}/{}", text(&created["id"]));
        let shown = caller.request("GET", &path).expect(200);
        (shown["state"] == "DONE").then_some(shown)
    });
    assert_eq!(shown["counts"]["SUCCEEDED"], 1, "{shown}");
    assert_eq!(device.times("installed"), 1);
}
