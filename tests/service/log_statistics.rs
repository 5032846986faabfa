//! How does the administration log count its entries per day of a time zone?

use std::process::Command;

use serde_json::{Value, json};

use crate::admin_log::fail;
use crate::test_service::{TestService, error_codes, silent_device, start};
use crate::vocabulary::caller::{API, Caller, text};

/// Time zones as the IANA database names them, as they are written in a URL, and their rules as
/// `date` takes them.
const ZONES: [(&str, &str); 7] = [
    ("UTC", "UTC0"),
    ("Europe/Zurich", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("America%2FNew_York", "EST5EDT,M3.2.0,M11.1.0"),
    ("Asia%2fKathmandu", "<+0545>-5:45"),
    ("Pacific/Apia", "<+13>-13"),
    (
        "Australia/Lord_Howe",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
    ),
    ("Etc/GMT%2B12", "<-12>12"),
];

#[test]
fn entries_are_counted_on_the_current_day_of_the_zone() {
    let (_service, caller) = start(&[]);
    two_devices_that_fail(&caller);
    for (zone, rules) in ZONES {
        let before = today(rules);
        let statistics = statistics(&caller, &format!("timezone={zone}"));
        let days = [before, today(rules)];
        let expected = days.map(|day| {
            let day = format!("{day}T00:00:00.000+0000");
            json!({
                "totalUniqueDevices": 2,
                "administrationLogs": [{ "amount": 3, "day": day }],
            })
        });
        assert!(expected.contains(&statistics), "{zone}: {statistics}");
    }
}

#[test]
fn statistics_are_filtered_by_category() {
    let setup = TestService::new();
    silent_device(&setup.caller, "silent");
    fail(&setup.caller, "silent");
    fail(&setup.caller, "silent");
    let count = |query: &str| {
        let statistics = statistics(&setup.caller, &format!("timezone=UTC{query}"));
        let days = statistics["administrationLogs"].as_array().unwrap();
        let amounts = days.iter().map(|day| day["amount"].as_u64().unwrap());
        (
            amounts.sum::<u64>(),
            statistics["totalUniqueDevices"].as_u64().unwrap(),
        )
    };
    assert_eq!(count("&category=info"), (1, 1));
    assert_eq!(count("&category=error"), (2, 1));
    assert_eq!(count(""), (3, 2));
}

#[test]
fn statistics_cover_only_the_caller_s_own_devices() {
    let (service, caller) = start(&[]);
    two_devices_that_fail(&caller);
    let stranger = Caller::of_new_customer(&service, "Umbrella");
    let nothing = json!({ "totalUniqueDevices": 0, "administrationLogs": [] });
    assert_eq!(statistics(&stranger, "timezone=UTC"), nothing);
}

#[test]
fn statistics_survive_a_stop_and_a_crash() {
    let mut setup = TestService::new();
    silent_device(&setup.caller, "silent");
    let count = |caller: &Caller| {
        let statistics = statistics(caller, "timezone=Etc/GMT%2B12");
        let days = statistics["administrationLogs"].as_array().unwrap();
        let amounts = days.iter().map(|day| day["amount"].as_u64().unwrap());
        (
            amounts.sum::<u64>(),
            statistics["totalUniqueDevices"].clone(),
        )
    };
    for failures in 1..=4_u64 {
        fail(&setup.caller, "silent");
        let expected = (1 + failures, json!(2));
        assert_eq!(count(&setup.caller), expected);
        if failures % 2 == 0 {
            setup.crash();
        } else {
            setup.service.stop();
            setup.service.start_again();
            setup.caller.follow(&setup.service);
        }
        assert_eq!(count(&setup.caller), expected);
        let page = format!("{API}/administrationLogs?pageSize=1");
        let page = setup.caller.request("GET", &page).expect(200);
        assert_eq!(page["pageAmount"], 1 + failures);
    }
}

#[test]
fn an_invalid_query_is_refused_with_its_reason() {
    let (_service, caller) = start(&[]);
    let cases: [(&str, &[&str]); 5] = [
        ("", &["REQUIRED"]),
        ("?timezone=Middle-earth/Shire", &["INVALID_VALUE"]),
        ("?timezone=UTC&category=warn", &["INVALID_VALUE"]),
        ("?timezone=UTC&days=7", &["UNKNOWN_PARAMETER"]),
        (
            "?category=warn&page=1",
            &["REQUIRED", "INVALID_VALUE", "UNKNOWN_PARAMETER"],
        ),
    ];
    for (query, codes) in cases {
        let path = format!("{API}/administrationLogs/stats{query}");
        let answer = caller.request("GET", &path).expect(400);
        assert_eq!(error_codes(&answer), codes, "{query}");
    }
}

/// Creates three entries about two devices.
fn two_devices_that_fail(caller: &Caller) {
    for id in ["one", "two"] {
        silent_device(caller, id);
        fail(caller, id);
    }
    fail(caller, "one");
    let entries = caller.log_entries();
    let messages: Vec<_> = entries.iter().map(|entry| text(&entry["type"])).collect();
    assert_eq!(messages, ["DEVICE"; 3]);
}

fn statistics(caller: &Caller, query: &str) -> Value {
    let path = format!("{API}/administrationLogs/stats?{query}");
    caller.request("GET", &path).expect(200)
}

/// The current date under these rules (POSIX.1-2017 section 8.3).
fn today(rules: &str) -> String {
    let date = Command::new("date").env("TZ", rules).arg("+%F").output();
    String::from_utf8(date.unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned()
}
