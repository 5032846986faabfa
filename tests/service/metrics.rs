//! Can the metrics of the service be scraped, and are they right?

mod calls;
pub(crate) mod devices;
mod exposition;
mod plain;
mod table;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{SystemTime, UNIX_EPOCH};

use exposition::Exposition;
use harness::device::configuration::Configuration;
use table::promised;

use crate::test_service::{ID, TestService, start};
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::read;
use crate::vocabulary::poll::until;
use crate::vocabulary::postgres::is_on_postgres;
use crate::vocabulary::service::Service;

#[test]
fn the_documented_metrics_are_the_exported_ones() {
    // Nothing listens there: the link has its metrics all the same.
    let settings = [
        ("SIGNALBOX_ARBITERS", "3"),
        ("SIGNALBOX_SMPP_URL", "smpp://127.0.0.1:9"),
        ("SIGNALBOX_SMPP_SYSTEM_ID", "signalbox"),
        ("SIGNALBOX_SMPP_PASSWORD", "secret08"),
    ];
    let mut setup = TestService::with(&settings, Configuration::new(ID));
    setup.device.update();
    setup.caller.perform(ID, &read("/3/0/0"));
    // The scrape is itself a call, which the next scrape counts.
    scrape(&setup.service);
    let scraped = scrape(&setup.service);
    let promised = promised();
    for (name, family) in scraped.families() {
        let Some(figure) = promised.get(name) else {
            panic!("{name} is not documented");
        };
        let labels = family.labels().into_iter().map(str::to_owned).collect();
        assert_eq!(
            (&figure.kind, &figure.labels),
            (&family.kind, &labels),
            "{name}"
        );
        assert!(
            !(is_on_postgres() && figure.is_absent_on_postgres),
            "{name} is exported"
        );
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        assert!(!family.samples.is_empty(), "{name}");
    }
    let names: BTreeSet<&str> = scraped.families().map(|(name, _)| name).collect();
    let silent = promised.iter();
    let silent = silent.filter(|(name, _)| !names.contains(name.as_str()));
    let silent: Vec<_> = silent
        .filter(|(_, figure)| !(is_on_postgres() && figure.is_absent_on_postgres))
        .map(|(name, _)| name)
        .collect();
    assert!(silent.is_empty(), "documented and not exported: {silent:?}");
    // On PostgreSQL every partition of the devices has an arbiter, whatever the number of threads.
    let expected = if is_on_postgres() { 16 } else { 3 };
    let expected: BTreeSet<_> = (0..expected)
        .map(|arbiter: u8| arbiter.to_string())
        .collect();
    let arbiters = scraped.values_of("signalbox_devices_resident", "arbiter");
    assert_eq!(arbiters, expected);
}

#[test]
fn a_metric_is_exported_before_it_counts() {
    let (service, _caller) = start(&[]);
    let scraped = scrape(&service);
    for (name, label, value) in [
        ("signalbox_datagrams_dropped_total", "reason", "queue_full"),
        ("signalbox_datagrams_handled_total", "kind", "notification"),
        ("signalbox_datagrams_sent_total", "code", "bare"),
        ("signalbox_data_total", "protocol", "udp"),
        ("signalbox_actions_created_total", "operation", "datagram"),
        ("signalbox_actions_created_total", "operation", "PATCH"),
        ("signalbox_exchanges_ended_total", "outcome", "reset"),
        ("signalbox_actions_finished_total", "status", "cancelled"),
        ("signalbox_devices_known", "registration", "registered"),
        ("signalbox_store_queries_waiting", "pool", "restore"),
    ] {
        // The pools of readers are of the embedded store.
        if is_on_postgres() && name == "signalbox_store_queries_waiting" {
            continue;
        }
        let values = scraped.values_of(name, label);
        assert!(values.contains(value), "{name}: {values:?}");
        assert_eq!(scraped.sum(name, &[(label, value)]), 0.0, "{name}");
    }
}

#[test]
fn metrics_need_no_token_and_name_no_customer_or_device() {
    let setup = TestService::new();
    let answer = Request::new("GET", "/metrics").send(setup.service.http);
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    for secret in [ID, "Acme", setup.service.operator_token().as_str()] {
        assert!(!answer.text().contains(secret), "{secret}");
    }
}

#[test]
fn datagrams_and_devices_are_counted() {
    let mut setup = TestService::new();
    setup.device.update();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger
        .send_to(b"\xffnot CoAP", setup.service.coap)
        .unwrap();

    // The socket and each arbiter publish separately.
    let scraped = until("the figures of five datagrams and a device", || {
        let scraped = scrape(&setup.service);
        let malformed = [("reason", "malformed")];
        let turned_away = scraped.sum("signalbox_datagrams_dropped_total", &malformed);
        let sent = scraped.sum("signalbox_datagrams_sent_total", &[]);
        let received = scraped.sum("signalbox_datagrams_received_total", &[]);
        let resident = scraped.sum("signalbox_devices_resident", &[]);
        // A registration, an update, and a malformed datagram.
        let is_all = turned_away == 1.0 && sent >= 2.0 && received >= 3.0 && resident == 1.0;
        is_all.then_some(scraped)
    });
    assert_eq!(scraped.sum("signalbox_datagrams_unsent_total", &[]), 0.0);
}

#[test]
fn store_operations_are_counted() {
    let setup = TestService::new();
    // Everything answered so far is counted.
    let before = scrape(&setup.service);
    setup.caller.perform(ID, &read("/3/0/0"));
    let durable = [("outcome", "durable")];
    // The batch of the request with its attempt, and the batch of its outcome. The figures of a
    // batch are updated at different times.
    until("all batches to be counted for what they are", || {
        let after = scrape(&setup.service);
        let grown =
            |name, labels: &[(&str, &str)]| after.sum(name, labels) - before.sum(name, labels);
        let commits = grown("signalbox_store_commits_total", &durable);
        let groups = grown("signalbox_store_groups_total", &[]);
        let is_counted = commits >= 2.0
            && (1.0..=commits).contains(&groups)
            && grown("signalbox_store_commit_seconds_count", &[]) == commits
            && grown("signalbox_store_group_batches_sum", &[]) == commits
            && grown("signalbox_store_changes_total", &[]) >= commits
            && grown("signalbox_store_group_batches_count", &[]) == groups
            && grown("signalbox_store_fsync_seconds_count", &[]) == groups
            && grown("signalbox_events_written_total", &[]) == 1.0;
        is_counted.then_some(())
    });
    until("an empty queue", || {
        let scraped = scrape(&setup.service);
        (scraped.sum("signalbox_store_queue_batches", &[]) == 0.0).then_some(())
    });
}

#[test]
fn a_start_exports_its_progress() {
    let mut setup = TestService::new();
    setup.crash();
    let scraped = until("the end of the start", || {
        let scraped = scrape(&setup.service);
        let parts = scraped.family("signalbox_restore_progress_ratio").samples;
        parts
            .iter()
            .all(|part| part.value == 1.0)
            .then_some(scraped)
    });
    assert_eq!(scraped.sum("signalbox_devices_restored_total", &[]), 1.0);
    let resident = || scrape(&setup.service).sum("signalbox_devices_resident", &[]);
    until("the device", || (resident() == 1.0).then_some(()));
}

#[test]
fn the_start_of_the_process_is_exported_in_seconds() {
    let before = seconds_now();
    let (service, _caller) = start(&[]);
    let begun = scrape(&service).sum("process_start_time_seconds", &[]);
    assert!(before <= begun + 1.0 && begun <= seconds_now(), "{begun}");
}

/// The sum of the samples with these labels, or 0 while the metric has no sample.
fn sum_of(scraped: &Exposition, name: &str, labels: &[(&str, &str)]) -> f64 {
    let is_exported = scraped.families().any(|(family, _)| family == name);
    if is_exported {
        scraped.sum(name, labels)
    } else {
        0.0
    }
}

/// How many datagrams were dropped for a reason.
pub(crate) fn dropped(service: &Service, reason: &str) -> f64 {
    let labels = [("reason", reason)];
    scrape(service).sum("signalbox_datagrams_dropped_total", &labels)
}

/// What the service exports now.
pub(crate) fn scrape(service: &Service) -> Exposition {
    let answer = Request::new("GET", "/metrics").send(service.http);
    assert_eq!(answer.status, 200);
    Exposition::read(answer.text())
}

fn seconds_now() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs_f64()
}
