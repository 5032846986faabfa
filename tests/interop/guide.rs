//! Can a stranger do the main job with `/docs` alone? The lines of its guide, run by a shell as
//! they stand there.

use std::path::Path;
use std::process::{Command, Stdio};

use harness::device::configuration::Configuration;

use crate::vocabulary::caller::Caller;
use crate::vocabulary::device::Device;
use crate::vocabulary::http::Request;
use crate::vocabulary::service::Service;

/// Where the guide says the service listens.
const BASE: &str = "http://127.0.0.1:8080";

/// The name of the guide's device.
const ID: &str = "meter-7";

/// Steps of the guide before the device registers.
const STEPS_BEFORE: usize = 6;

#[test]
fn the_guide_leads_from_the_operators_token_to_the_value_and_the_log() {
    let service = Service::start();
    let steps = steps(&service);
    assert_eq!(steps.len(), 9, "{steps:?}");
    let (before, after) = steps.split_at(STEPS_BEFORE);
    let kept = "printf '\\nTOKEN=%s\\nID=%s\\n' \"$TOKEN\" \"$ID\"";
    let told = run(&service, &format!("{}\n{kept}", before.join("\n")));
    let value = |name: &str| {
        let found = told.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{told}")).to_owned()
    };
    let (token, id) = (value("TOKEN="), value("ID="));
    let _device = Device::registered(&service, Configuration::new(ID));
    Caller::with_token(&service, &token).final_action(&id);
    let kept = format!("TOKEN={token}\nID={id}\n");
    let told = run(
        &service,
        &format!("{}\n{kept}{}", before[0], after.join("\n")),
    );
    for awaited in [
        "\"state\": \"AWAKE\"",
        "\"status\": \"SUCCEEDED\"",
        "\"code\": \"205\"",
        "Lifecycle[DeviceFirstTimeRegistered]",
    ] {
        assert!(told.contains(awaited), "no {awaited} in\n{told}");
    }
}

/// The lines of the guide's steps, with where this service listens.
fn steps(service: &Service) -> Vec<String> {
    let page = Request::new("GET", "/docs").send(service.http);
    let (_, guide) = page.text().split_once("<ol class=\"steps\">").unwrap();
    let (guide, _) = guide.split_once("</ol>").unwrap();
    let samples = guide.split("<pre><code>").skip(1);
    let steps = samples.map(|sample| {
        let (lines, _) = sample.split_once("</code></pre>").unwrap();
        assert!(!lines.contains('&'), "escapes would have to be undone");
        lines.replace(BASE, &format!("http://{}", service.http))
    });
    steps.collect()
}

/// What a shell prints that runs these lines beside the service's data.
fn run(service: &Service, lines: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("signalbox-data");
    symlink(service.data_dir(), &data);
    let shell = Command::new("sh")
        .args(["-eu", "-c", lines])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&shell.stdout), text(&shell.stderr));
    assert!(shell.status.success(), "{out}\n{err}");
    out
}

fn symlink(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}
