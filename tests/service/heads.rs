//! Is everything that can be read answered without its body to a HEAD request (RFC 9110 section
//! 9.3.2)?

use crate::test_service::{ID, silent_device, start};
use crate::vocabulary::caller::API;

#[test]
fn a_head_request_is_answered_without_the_body() {
    let (_service, caller) = start(&[]);
    silent_device(&caller, ID);
    let paths = [
        "/livez".to_owned(),
        "/docs".to_owned(),
        format!("{API}/devices"),
        format!("{API}/devices/{ID}/messages"),
        format!("{API}/devices/nobody/messages"),
    ];
    for path in paths {
        let whole = caller.request("GET", &path);
        let head = caller.request("HEAD", &path);
        assert_eq!(head.status, whole.status, "{path}");
        assert_eq!(head.text(), "", "{path}");
        assert_ne!(whole.text(), "", "{path}");
        for name in ["content-length", "content-type"] {
            assert!(whole.header(name).is_some(), "{path} has no {name}");
            assert_eq!(head.header(name), whole.header(name), "{path}");
        }
    }
    let head = caller.request("HEAD", &format!("{API}/events/stream"));
    assert_eq!((head.status, head.text()), (200, ""));
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let refused = caller.request("HEAD", "/oauth/token");
    assert_eq!((refused.status, refused.text()), (405, ""));
    assert_eq!(refused.header("allow"), Some("POST"));
}
