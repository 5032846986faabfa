//! Can somebody who measures the service read its figures, and are they right?

mod exposition;

use std::net::UdpSocket;
use std::time::{SystemTime, UNIX_EPOCH};

use exposition::Exposition;

use crate::scene::{ID, Scene, start};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::poll::until;
use crate::vocabulary::service::Service;

/// What the operator is promised: the name, and what kind of figure it is.
const PROMISED: [(&str, &str); 15] = [
    ("process_start_time_seconds", "gauge"),
    ("signalbox_build_info", "gauge"),
    ("signalbox_datagrams_forwarded_total", "counter"),
    ("signalbox_datagrams_received_total", "counter"),
    ("signalbox_datagrams_sent_total", "counter"),
    ("signalbox_datagrams_turned_away_total", "counter"),
    ("signalbox_datagrams_unsent_total", "counter"),
    ("signalbox_devices_resident", "gauge"),
    ("signalbox_devices_restored_total", "counter"),
    ("signalbox_restore_progress_ratio", "gauge"),
    ("signalbox_store_changes_total", "counter"),
    ("signalbox_store_commit_seconds", "histogram"),
    ("signalbox_store_commits_total", "counter"),
    ("signalbox_store_groups_total", "counter"),
    ("signalbox_store_queue_batches", "gauge"),
];

#[test]
fn every_figure_promised_is_there_and_says_what_it_is() {
    let (service, _caller) = start(&[("SIGNALBOX_ARBITERS", "3")]);
    let told = scrape(&service);
    for (name, kind) in PROMISED {
        let family = told.family(name);
        assert_eq!(family.kind, kind, "{name}");
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        assert!(!family.samples.is_empty(), "{name}");
    }
    let arbiters = told.values_of("signalbox_devices_resident", "arbiter");
    assert_eq!(arbiters, ["0", "1", "2"].map(str::to_owned).into());
    for fate in ["malformed", "unknown_peer", "overloaded"] {
        let turned_away = told.sum("signalbox_datagrams_turned_away_total", &[("fate", fate)]);
        assert_eq!(turned_away, 0.0, "a figure is there before it counts");
    }
}

#[test]
fn figures_need_no_token_and_no_sign_of_who_is_served() {
    let scene = Scene::new();
    let answer = Request::new("GET", "/metrics").send(scene.service.http);
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    for secret in [ID, "Acme", scene.service.operator_token().as_str()] {
        assert!(!answer.text().contains(secret), "{secret}");
    }
}

#[test]
fn what_devices_do_is_counted() {
    let mut scene = Scene::new();
    scene.device.update();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger
        .send_to(b"\xffnot CoAP", scene.service.coap)
        .unwrap();

    let told = until("the figures of five datagrams", || {
        let told = scrape(&scene.service);
        let malformed = [("fate", "malformed")];
        let turned_away = told.sum("signalbox_datagrams_turned_away_total", &malformed);
        let sent = told.sum("signalbox_datagrams_sent_total", &[]);
        (turned_away == 1.0 && sent >= 2.0).then_some(told)
    });
    // A registration, an update, and what is none.
    assert!(told.sum("signalbox_datagrams_received_total", &[]) >= 3.0);
    assert_eq!(told.sum("signalbox_datagrams_unsent_total", &[]), 0.0);
    assert_eq!(told.sum("signalbox_devices_resident", &[]), 1.0);
}

#[test]
fn what_the_store_does_is_counted() {
    let scene = Scene::new();
    let before = scrape(&scene.service);
    scene.caller.perform(ID, &read("/3/0/0"));
    let after = scrape(&scene.service);

    let grown = |name, labels: &[(&str, &str)]| after.sum(name, labels) - before.sum(name, labels);
    let durable = grown("signalbox_store_commits_total", &[("outcome", "durable")]);
    // The request with its attempt, and its outcome.
    assert!(durable >= 2.0, "{durable}");
    assert_eq!(grown("signalbox_store_commit_seconds_count", &[]), durable);
    assert!(grown("signalbox_store_changes_total", &[]) >= durable);
    let groups = grown("signalbox_store_groups_total", &[]);
    assert!(groups >= 1.0 && groups <= durable, "{groups}");
    until("an empty queue", || {
        let told = scrape(&scene.service);
        (told.sum("signalbox_store_queue_batches", &[]) == 0.0).then_some(())
    });
}

#[test]
fn a_start_tells_how_far_it_has_come() {
    let mut scene = Scene::new();
    scene.crash();
    let told = until("the end of the start", || {
        let told = scrape(&scene.service);
        let parts = told.family("signalbox_restore_progress_ratio").samples;
        parts.iter().all(|part| part.value == 1.0).then_some(told)
    });
    assert_eq!(told.sum("signalbox_devices_restored_total", &[]), 1.0);
    let resident = || scrape(&scene.service).sum("signalbox_devices_resident", &[]);
    until("the device", || (resident() == 1.0).then_some(()));
}

#[test]
fn the_start_of_the_process_is_told_in_seconds() {
    let before = seconds_now();
    let (service, _caller) = start(&[]);
    let begun = scrape(&service).sum("process_start_time_seconds", &[]);
    assert!(before <= begun + 1.0 && begun <= seconds_now(), "{begun}");
}

fn scrape(service: &Service) -> Exposition {
    let answer = Request::new("GET", "/metrics").send(service.http);
    assert_eq!(answer.status, 200);
    Exposition::read(answer.text())
}

fn seconds_now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs_f64()
}
