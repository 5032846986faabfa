//! Can a reader do the main job with `/docs` alone, and connect a device without LwM2M with
//! docs/plain-devices.md? The commands are run by a shell exactly as printed there.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::device::configuration::Configuration;

use crate::libcoap::libcoap;
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::Device;
use crate::vocabulary::http::Request;
use crate::vocabulary::plain::ReportedData;
use crate::vocabulary::program::Program;
use crate::vocabulary::service::Service;

/// The address of the service in the guide.
const BASE: &str = "http://127.0.0.1:8080";

/// The id of the guide's device.
const ID: &str = "meter-7";

/// The number of steps before the device registers.
const STEPS_BEFORE: usize = 6;

/// The page about devices without LwM2M.
const PLAIN_DEVICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/plain-devices.md");

/// The id of its device.
const SENSOR: &str = "sensor-1";

/// The ports of its device, which may be in use here.
const COAP_SERVER: &str = "5700";
const LISTENER: &str = "4446";

/// Ends the programs that the commands left running.
const END: &str = "kill $SERVER $LISTENER";

#[test]
fn the_guide_works_from_the_operators_token_to_the_value_and_the_log() {
    let service = Service::start();
    let steps = steps(&service);
    assert_eq!(steps.len(), 9, "{steps:?}");
    let (before, after) = steps.split_at(STEPS_BEFORE);
    let print_variables = "printf '\\nTOKEN=%s\\nID=%s\\n' \"$TOKEN\" \"$ID\"";
    let output = run(
        &service,
        &format!("{}\n{print_variables}", before.join("\n")),
    );
    let value = |name: &str| {
        let found = output.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{output}")).to_owned()
    };
    let (token, id) = (value("TOKEN="), value("ID="));
    let _device = Device::registered(&service, Configuration::new(ID));
    Caller::with_token(&service, &token).final_action(&id);
    let variables = format!("TOKEN={token}\nID={id}\n");
    let output = run(
        &service,
        &format!("{}\n{variables}{}", before[0], after.join("\n")),
    );
    for awaited in [
        "\"state\": \"AWAKE\"",
        "\"status\": \"SUCCEEDED\"",
        "\"code\": \"205\"",
        "Lifecycle[DeviceFirstTimeRegistered]",
    ] {
        assert!(output.contains(awaited), "no {awaited} in\n{output}");
    }
}

#[test]
fn the_page_about_plain_devices_works_for_data_and_for_requests() {
    let service = Service::start();
    let caller = Caller::of_new_customer(&service, "Cellar Watch");
    let [creates, sends, receives, wakes] = <[String; 4]>::try_from(blocks(&service)).unwrap();
    let mut shell = Shell::start(&caller);
    shell.run(&creates);
    shell.wait_for("\"deviceId\":\"sensor-1\"");
    shell.run(&sends);
    let expected = [
        ReportedData::over_coap("meters/temperature", *b"{\"t\":21.50}"),
        ReportedData::over_udp(*b"hello"),
    ];
    assert_eq!(caller.once_reported(SENSOR, expected.len()), expected);
    let (listen, ask) = receives.split_once("LISTENER=$!\n").unwrap();
    shell.run(&format!("{listen}LISTENER=$!"));
    shell.wait_for("Bound on");
    shell.run(ask);
    for _ in 0..2 {
        shell.wait_for("The action request was scheduled.");
    }
    let (wakes, end) = wakes.split_once(END).unwrap();
    assert_eq!(end.trim(), "");
    shell.run(wakes);
    shell.wait_for("blink");
    let requests = format!("{API}/integrate/devices/actions/requests?deviceId={SENSOR}");
    let requests = caller.request("GET", &requests).expect(200);
    let requests = requests["items"].as_array().unwrap();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let action = caller.final_action(request["id"].as_str().unwrap());
        assert_eq!(action["status"], "SUCCEEDED", "{action}");
    }
}

/// A shell that runs commands line by line.
struct Shell(Program);

impl Shell {
    /// A shell with the token of a caller.
    fn start(caller: &Caller) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-s"]).env("TOKEN", caller.token());
        Self(Program::start(&mut shell))
    }

    fn run(&mut self, lines: &str) {
        self.0.write_line(lines);
    }

    fn wait_for(&mut self, words: &str) {
        self.0
            .wait_for(words, |line| line.contains(words).then_some(()));
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Programs left running would outlive the shell.
        self.0.write_line(&format!("set +eu; {END}; exit"));
        self.0.ended();
    }
}

/// The code blocks of the page, with the address of this service and with free ports.
fn blocks(service: &Service) -> Vec<String> {
    let page = fs::read_to_string(PLAIN_DEVICES).unwrap();
    let sockets = [COAP_SERVER, LISTENER].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [server, listener] = sockets
        .each_ref()
        .map(|socket| socket.local_addr().unwrap().port().to_string());
    let udp = format!("{} {}", service.udp.ip(), service.udp.port());
    // Replaces in two steps, because a port may contain the digits of another.
    let replaced = [
        (BASE, "<http>", format!("http://{}", service.http)),
        (
            "coap://127.0.0.1/",
            "<coap>",
            format!("coap://{}/", service.coap),
        ),
        ("127.0.0.1 4445", "<udp>", udp),
        (COAP_SERVER, "<server>", server),
        (LISTENER, "<listener>", listener),
        ("coap-client", "<client>", libcoap("client")),
        ("coap-server", "<serve>", libcoap("server")),
    ];
    let blocks = page.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| {
        let (lines, _) = block.split_once("```").unwrap();
        let mut lines = lines.to_owned();
        for (from, name, _) in &replaced {
            lines = lines.replace(from, name);
        }
        for (_, name, to) in &replaced {
            lines = lines.replace(name, to);
        }
        lines
    });
    blocks.collect()
}

/// The commands of the guide's steps, with the address of this service.
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

/// The output of a shell that runs these lines in the service's data directory.
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
