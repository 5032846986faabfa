//! Does Prometheus' own client read the metrics of the service?

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::vocabulary::http::Request;
use crate::vocabulary::service::Service;

/// Prints the kind, the name and the number of samples of each family, and then each sample.
const READER: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
for family in families:
    assert family.documentation, family.name
    print(family.type, family.name, len(family.samples))
for family in families:
    for sample in family.samples:
        labels = ' '.join(f'{name}={sample.labels[name]}' for name in sorted(sample.labels))
        print(f'{sample.name} {labels}:', int(sample.value) if sample.value < 1e6 else 0)
";

#[test]
fn every_family_is_read_with_its_kind() {
    let service = Service::start_with(&[("SIGNALBOX_ARBITERS", "2")]);
    let read = read(&scrape(&service));
    // The reader calls a counter by its name without `_total`.
    for (kind, name, samples) in [
        ("counter", "signalbox_datagrams_handled", 28),
        ("counter", "signalbox_datagrams_unsent", 2),
        ("counter", "signalbox_data", 20),
        ("counter", "signalbox_store_commits", 5),
        ("counter", "signalbox_exchanges_ended", 16),
        ("counter", "signalbox_actions_finished", 120),
        ("counter", "signalbox_deliveries", 3),
        ("gauge", "signalbox_devices_resident", 6),
        ("gauge", "signalbox_devices_known", 2),
        ("gauge", "signalbox_store_queries_waiting", 5),
        ("gauge", "signalbox_deliveries_under_way", 1),
        ("gauge", "signalbox_destinations", 3),
        ("gauge", "signalbox_events_waiting", 1),
        ("gauge", "signalbox_dead_letters", 1),
        ("gauge", "signalbox_node_active", 1),
        ("gauge", "process_start_time_seconds", 1),
    ] {
        let found = read.get(&format!("{kind} {name}"));
        assert_eq!(found, Some(&samples), "{kind} {name}");
    }
    for name in [
        "store_commit_seconds",
        "store_group_batches",
        "delivery_seconds",
    ] {
        let buckets = read.get(&format!("histogram signalbox_{name}"));
        assert!(buckets.is_some_and(|samples| *samples > 3), "{read:?}");
    }
}

#[test]
fn no_family_is_lost_or_split() {
    let service = Service::start();
    let scraped = scrape(&service);
    let families = scraped.lines().filter(|line| line.starts_with("# TYPE"));
    let found = read(&scraped);
    let kinds = ["counter ", "gauge ", "histogram "];
    let found = found
        .keys()
        .filter(|family| kinds.iter().any(|kind| family.starts_with(kind)));
    assert_eq!(found.count(), families.count());
}

#[test]
fn counted_calls_are_read_with_their_labels() {
    let service = Service::start();
    for _ in 0..2 {
        Request::new("GET", "/nothing").send(service.http);
    }
    let read = read(&scrape(&service));
    let calls = "signalbox_http_requests_total method=GET route=other status=404:";
    assert_eq!(read.get(calls), Some(&2), "{read:?}");
    let timed = "signalbox_http_request_seconds_count method=GET route=other:";
    assert_eq!(read.get(timed), Some(&2), "{read:?}");
}

fn scrape(service: &Service) -> String {
    let answer = Request::new("GET", "/metrics").send(service.http);
    assert_eq!(answer.status, 200);
    answer.text().to_owned()
}

/// The number of samples by kind and name, and the value of each sample by its name and labels.
fn read(text: &str) -> BTreeMap<String, u32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/interop/venv/bin/python");
    assert!(
        python.exists(),
        "no {}: run `cargo xtask prepare`",
        python.display()
    );
    let mut reader = Command::new(python)
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = reader.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let printed = String::from_utf8(output.stdout).unwrap();
    let families = printed.lines().map(|line| {
        let (family, samples) = line.rsplit_once(' ').unwrap();
        (family.to_owned(), samples.parse().unwrap())
    });
    families.collect()
}
