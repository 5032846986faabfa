//! Which senders does the operator see that are no known device?

use protocol::coap::code::Code;
use serde_json::{Value, json};

use crate::test_service::{ID, start};
use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::plain::{UdpDevice, data};
use crate::vocabulary::poll::until;
use crate::vocabulary::wire::{DeviceSocket, register};

const STRANGERS: &str = "/operator-api/v1/strangers";
const ELSEWHERE: &str = "127.0.0.2";
const FARTHER: &str = "127.0.0.3";

#[test]
fn senders_that_are_no_known_device_are_listed_for_the_operator() {
    let (service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let operator = Caller::operator(&service);
    let listed = || operator.request("GET", STRANGERS).expect(200);
    let empty = json!({ "items": [], "page": 1, "pageAmount": 1 });
    assert_eq!(listed(), empty);

    let stranger = DeviceSocket::from(ELSEWHERE, &service);
    for id in 1..=3 {
        assert_eq!(stranger.ask(&register("metre", id)).code, Code::FORBIDDEN);
    }
    let answer = stranger.ask(&data("t", "21.5", 4)).code;
    assert_eq!(answer, Code::UNAUTHORIZED);
    UdpDevice::from(FARTHER, &service).send(b"21.5");
    // A known device, which has an entry in the log of its customer instead.
    let known = DeviceSocket::from(ELSEWHERE, &service);
    assert_eq!(known.ask(&register(ID, 1)).code, Code::FORBIDDEN);

    // Nothing answers a bare datagram.
    let list = until("the bare datagram is listed", || {
        let list = listed();
        let items = list["items"].as_array().expect("a list").clone();
        (items.len() == 3).then_some(items)
    });
    let fields = |item: &Value| {
        let names = ["endpoint", "protocol", "operation", "answer", "count"];
        names.map(|name| item[name].clone())
    };
    let found: Vec<_> = list.iter().map(fields).collect();
    let expected = [
        [
            Value::Null,
            json!("UDP"),
            json!("DATA"),
            Value::Null,
            json!(1),
        ],
        [
            Value::Null,
            json!("COAP"),
            json!("DATA"),
            json!("4.01"),
            json!(1),
        ],
        [
            json!("metre"),
            json!("LWM2M"),
            json!("REGISTER"),
            json!("4.03"),
            json!(3),
        ],
    ];
    assert!(found.iter().all(|item| expected.contains(item)), "{list:?}");
    let metre = list.iter().find(|item| item["endpoint"] == "metre");
    let metre = metre.expect("it is listed");
    let address = metre["address"].as_str().expect("a text");
    assert!(address.starts_with(&format!("{ELSEWHERE}:")), "{address}");
    assert!(metre["firstSeen"].as_str() <= metre["lastSeen"].as_str());
    assert_eq!(caller.log_messages(), ["LwM2M[RegistrationRejected]"]);
    let page = operator.request("GET", &format!("{STRANGERS}?page=2&pageSize=2"));
    let page = page.expect(200);
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
    assert_eq!(caller.request("GET", STRANGERS).status, 401);
}
