//! Can the list of action requests be sorted and filtered in every documented way?

use serde_json::json;

use crate::errors::check;
use crate::test_service::{ID, TestService, page, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::lwm2m::{read, when_active, write};
use crate::vocabulary::poll::another_millisecond;

const REQUESTS: &str = "/integrate/devices/actions/requests";

/// Requests in different states, oldest first.
struct RequestHistory {
    /// Created first, completed last.
    late: String,
    /// Failed at once.
    failed: String,
    /// Cancelled before the late one completed.
    cancelled: String,
    /// Still waits for another device.
    waiting: String,
}

#[test]
fn requests_are_listed_in_the_requested_order() {
    let mut setup = TestService::new();
    let history = create_history(&mut setup);
    let RequestHistory {
        late,
        failed,
        cancelled,
        waiting,
    } = &history;
    let by_creation = [late, failed, cancelled, waiting];
    let by_change = [failed, waiting, cancelled, late];
    let reversed = |ids: [_; 4]| {
        let mut ids = ids;
        ids.reverse();
        ids
    };
    let cases = [
        ("?sort=created", by_creation),
        ("?sort=-created", reversed(by_creation)),
        ("?sort=updated", by_change),
        ("?sort=-updated", reversed(by_change)),
        ("", reversed(by_creation)),
    ];
    for (query, expected) in cases {
        check_list(&setup.caller, query, &expected);
    }
    setup.crash();
    for (query, expected) in cases {
        check_list(&setup.caller, query, &expected);
    }
}

#[test]
fn an_order_combines_with_every_filter_and_page() {
    let mut setup = TestService::new();
    let history = create_history(&mut setup);
    let RequestHistory {
        late,
        failed,
        cancelled,
        waiting,
    } = &history;
    let cases = [
        (
            "?sort=updated&deviceId=meter-1",
            vec![failed, cancelled, late],
        ),
        ("?sort=-updated&deviceId=other", vec![waiting]),
        ("?sort=updated&status=CANCELLED", vec![cancelled]),
        (
            "?sort=created&protocol=LWM2M&pageSize=3",
            vec![late, failed, cancelled],
        ),
        ("?sort=created&pageSize=3&page=2", vec![waiting]),
        ("?sort=updated&pageSize=2&page=2", vec![cancelled, late]),
        ("?sort=-updated&pageSize=1&page=2", vec![cancelled]),
        ("?sort=updated&protocol=UDP", vec![]),
        ("?sort=updated&deviceId=nobody", vec![]),
    ];
    for (query, expected) in cases {
        check_list(&setup.caller, query, &expected);
    }
}

#[test]
fn final_requests_are_archived_and_all_others_are_active() {
    let mut setup = TestService::new();
    let history = create_history(&mut setup);
    let RequestHistory {
        late,
        failed,
        cancelled,
        waiting,
    } = &history;
    let cases = [
        ("/active", vec![waiting]),
        ("/archived", vec![cancelled, failed, late]),
        ("/archived?sort=updated", vec![failed, cancelled, late]),
        ("/archived?sort=-updated&pageSize=1", vec![late]),
        ("/archived?status=FAILED", vec![failed]),
        ("/archived?status=SCHEDULED", vec![]),
        ("/archived?deviceId=other", vec![]),
        ("/active?status=SCHEDULED&deviceId=other", vec![waiting]),
        ("/active?status=SUCCEEDED", vec![]),
        ("/active?deviceId=meter-1", vec![]),
        ("/active?protocol=COAP", vec![]),
    ];
    for (query, expected) in cases {
        check_list(&setup.caller, query, &expected);
    }
    let (_, archived) = page(&setup.caller, &format!("{REQUESTS}/archived?pageSize=2"));
    assert_eq!(archived, json!({ "page": 1, "pageAmount": 2 }));
    let (_, active) = page(
        &setup.caller,
        &format!("{REQUESTS}/active?pageSize=2&page=7"),
    );
    assert_eq!(active, json!({ "page": 7, "pageAmount": 1 }));
}

#[test]
fn every_list_refuses_unknown_parameters() {
    let (_service, caller) = start(&[]);
    for list in ["", "/active", "/archived"] {
        let path = format!("{API}{REQUESTS}{list}");
        let query = "sort=newest&status=DONE&page=0&colour=red&protocol=udp&deviceId=a/b";
        let faults = [
            ("INVALID_VALUE", "sort"),
            ("INVALID_VALUE", "status"),
            ("OUT_OF_RANGE", "page"),
            ("UNKNOWN_PARAMETER", "colour"),
            ("INVALID_VALUE", "protocol"),
            ("INVALID_VALUE", "deviceId"),
        ];
        check(
            &caller.request("GET", &format!("{path}?{query}")),
            400,
            &faults,
        );
        for method in ["DELETE", "PATCH", "POST", "PUT"] {
            let refused = caller.request(method, &path);
            check(&refused, 405, &[("METHOD_NOT_ALLOWED", "")]);
            assert_eq!(
                refused.header("allow"),
                Some("GET, HEAD"),
                "{method} {path}"
            );
        }
    }
}

/// Creates four requests that are updated in another order than they were created in.
fn create_history(setup: &mut TestService) -> RequestHistory {
    silent_device(&setup.caller, "other");
    let late = create(&setup.caller, ID);
    let refused = setup.caller.create_action(ID, &write("/3/0/0", "x"));
    setup.caller.final_action(&refused);
    another_millisecond();
    let cancelled = create(&setup.caller, ID);
    let waiting = create(&setup.caller, "other");
    setup.caller.cancel_action(&cancelled).expect(200);
    another_millisecond();
    setup.device.update();
    setup.caller.final_action(&late);
    RequestHistory {
        late,
        failed: refused,
        cancelled,
        waiting,
    }
}

fn create(caller: &Caller, device: &str) -> String {
    let id = caller.create_action(device, &when_active(read("/3/0/0")));
    another_millisecond();
    id
}

/// Checks that the list shows exactly these, in this order.
fn check_list(caller: &Caller, query: &str, expected: &[&String]) {
    let (listed, _) = page(caller, &format!("{REQUESTS}{query}"));
    let listed: Vec<&String> = listed.iter().collect();
    assert_eq!(listed, expected, "{query}");
}
