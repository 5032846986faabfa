//! Does Prometheus' own client read the figures of the service?

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::vocabulary::http::Request;
use crate::vocabulary::service::Service;

/// Prints the kind, the name and the number of samples of each family.
const READER: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    assert family.documentation, family.name
    print(family.type, family.name, len(family.samples))
";

#[test]
fn every_family_is_read_as_what_it_is() {
    let service = Service::start_with(&[("SIGNALBOX_ARBITERS", "2")]);
    let answer = Request::new("GET", "/metrics").send(service.http);
    let read = read(answer.text());
    // The reader calls a counter by its name without `_total`.
    for (kind, name, samples) in [
        ("counter", "signalbox_datagrams_received", 2),
        ("counter", "signalbox_store_commits", 5),
        ("gauge", "signalbox_devices_resident", 2),
        ("gauge", "process_start_time_seconds", 1),
    ] {
        let found = read.get(&format!("{kind} {name}"));
        assert_eq!(found, Some(&samples), "{kind} {name}: {read:?}");
    }
    let buckets = read.get("histogram signalbox_store_commit_seconds");
    assert!(buckets.is_some_and(|samples| *samples > 3), "{read:?}");
    let told = answer.text().lines();
    let families = told.filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!(read.len(), families, "{read:?}");
}

/// The number of samples by kind and name.
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
