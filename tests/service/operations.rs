//! Can an operator start, watch and stop the service, and is every failure to start explained?

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use crate::test_service::{ID, TestService, silent_device, start};
use crate::vocabulary::caller::{API, Caller};
use crate::vocabulary::device::DEVICE_IP;
use crate::vocabulary::http::Request;
use crate::vocabulary::lwm2m::{outcome, read, when_active};
use crate::vocabulary::poll::{PATIENCE, until};
use crate::vocabulary::service::{Service, signalbox};
use crate::vocabulary::wire::{DeviceSocket, hex};

/// The two files of a store whose only row is its format version, 4,294,967,295.
const NEWER_STORE: [(&str, &str); 2] = [
    (
        "conf",
        "7365676d656e745f73697a653a203532343238380a7573655f636f6d7072657373696f6e3a2066616c7365\
         0a76657273696f6e3a20302e33340a761951c1",
    ),
    (
        "db",
        "ffbac70fffffffffffffff7f00000000000000803f7fd0fb0600000071a2c6780501000100eb2183a10808\
         00020000000000000000f122736f080a000300000000000001010002cb82ba8d061100000f5f5f736c6564\
         5f5f64656661756c74037350f5410a0d0002000101090100000000ffffffff",
    ),
];

#[test]
fn health_needs_no_token() {
    let service = Service::start();
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            Request::new("GET", path).send(service.http).status,
            200,
            "{path}"
        );
    }
}

#[test]
fn a_service_stops_although_a_connection_is_idle() {
    let mut setup = TestService::new();
    let idle = TcpStream::connect(setup.service.http).unwrap();
    let id = setup.caller.create_action(ID, &when_active(read("/3/0/0")));
    // The service ended although the idle connection is still open.
    let status = setup.service.stop();
    assert_eq!(status.code(), Some(0), "{status}");
    drop(idle);
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    setup.device.update();
    assert_eq!(
        outcome(&setup.caller.final_action(&id)),
        ("SUCCEEDED", "205")
    );
}

#[test]
fn a_call_in_progress_is_finished_before_the_stop() {
    let (mut service, mut caller) = start(&[]);
    silent_device(&caller, ID);
    let body = when_active(read("/3/0/0")).to_string();
    let mut stream = TcpStream::connect(service.http).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST {API}/integrate/devices/{ID}/actions/LWM2M HTTP/1.1\r\nhost: test\r\n\
         authorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        caller.token(),
        body.len()
    );
    let (first, remainder) = body.split_at(body.len() / 2);
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(first.as_bytes()).unwrap();
    // This call is answered after the first one was begun, so the service has accepted the first
    // one.
    caller.request("GET", &format!("{API}/devices")).expect(200);
    service.terminate();
    until("no more callers", || {
        TcpStream::connect(service.http).is_err().then_some(())
    });
    stream.write_all(remainder.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer:?}");
    assert_eq!(service.ended().code(), Some(0));
    service.start_again();
    caller.follow(&service);
    let list = caller.request("GET", &format!("{API}/integrate/devices/actions/requests"));
    assert_eq!(list.expect(200)["items"][0]["status"], "SCHEDULED");
}

#[test]
fn every_call_is_answered_or_not_accepted_when_the_service_stops() {
    let (mut service, mut caller) = start(&[("SIGNALBOX_SCHEDULED_MAX", "10000")]);
    silent_device(&caller, ID);
    let (sender, accepted_ids) = mpsc::channel();
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (caller, sender) = (caller.clone(), sender.clone());
            thread::spawn(move || {
                let path = format!("{API}/integrate/devices/{ID}/actions/LWM2M");
                while let Ok(answer) = caller.try_send("POST", &path, &when_active(read("/3/0/0")))
                {
                    // A service that is stopping may answer 503.
                    if answer.status == 503 {
                        break;
                    }
                    sender.send(answer.expect(202)["id"].clone()).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut ids = vec![
        accepted_ids.recv_timeout(PATIENCE).unwrap(),
        accepted_ids.recv_timeout(PATIENCE).unwrap(),
    ];
    assert_eq!(service.stop().code(), Some(0));
    callers
        .into_iter()
        .for_each(|caller| caller.join().unwrap());
    ids.extend(accepted_ids.iter());
    service.start_again();
    caller.follow(&service);
    for id in ids {
        assert_eq!(caller.action(id.as_str().unwrap())["status"], "SCHEDULED");
    }
}

#[test]
fn an_interrupt_from_the_keyboard_and_the_end_of_the_terminal_stop_it_as_well() {
    for signal in ["-INT", "-HUP"] {
        let data = TempDir::new().unwrap();
        let mut child = serve(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = [0; 9];
        let stdout = child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"listening");
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.unwrap().success());
        let status = until("the end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{signal}: {status}");
    }
}

#[test]
fn two_services_never_share_a_data_directory() {
    let service = Service::start();
    let refused = run(&mut serve(service.data_dir()));
    let error = failed(&refused);
    assert!(
        error.contains(&service.data_dir().display().to_string()),
        "{error}"
    );
    assert!(error.contains("in use"), "{error}");
    assert_eq!(
        Request::new("GET", "/readyz").send(service.http).status,
        200
    );
}

#[test]
fn a_store_that_lost_its_end_is_served_only_if_that_is_accepted() {
    let (mut service, mut caller) = start(&[]);
    for number in 0..40 {
        caller.create_device(&format!("device-{number}"), &format!("10.0.0.{number}"));
    }
    service.may_fail();
    service.kill();
    let log = service.data_dir().join("store/rows/db");
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end - 64..=end].fill(0x55);
    fs::write(&log, bytes).unwrap();

    let (status, found) = checked(service.data_dir());
    assert_eq!(status, Some(1), "{found}");
    assert!(found.contains("groups of commits: "), "{found}");
    let error = failed(&run(&mut serve(service.data_dir())));
    assert!(
        error.contains("has lost") && error.contains("--accept-loss"),
        "{error}"
    );

    service.start_again_with(&[("SIGNALBOX_ACCEPT_LOSS", "true")]);
    let lost = Request::new("GET", "/readyz")
        .send(service.http)
        .expect(200)["lost"]
        .clone();
    let groups = lost["groups"].as_u64().unwrap();
    assert!(
        groups > 0 && lost["from"].as_str() <= lost["until"].as_str(),
        "{lost}"
    );
    let metrics = Request::new("GET", "/metrics").send(service.http);
    let metric = format!("signalbox_store_lost_groups {groups}\n");
    assert!(metrics.text().contains(&metric), "{}", metrics.text());
    caller.follow(&service);
    let left = caller
        .request("GET", "/management-api/v1/devices")
        .expect(200);
    assert!(left["pageAmount"].as_u64().unwrap() <= 4, "{left}");

    service.kill();
    service.start_again_with(&[]);
    let ready = Request::new("GET", "/readyz")
        .send(service.http)
        .expect(200);
    assert_eq!(
        ready,
        json!({ "status": "ok" }),
        "once accepted it is no loss any more"
    );
}

#[test]
fn a_check_finds_nothing_in_the_store_of_a_service_that_was_killed() {
    let mut setup = TestService::new();
    let caller = &setup.caller;
    let types = json!([{ "type": "ERROR" }]);
    let hook = json!({ "name": "ERP", "url": "https://example.org", "eventTypes": types });
    let hooks = format!("{API}/integrate/clouds/webhooks");
    caller.post(&hooks, &hook).expect(201);
    caller.perform(ID, &read("/3/0/0"));
    let cancelled = caller.create_action(ID, &when_active(read("/3/0/1")));
    caller.cancel_action(&cancelled).expect(200);
    caller.create_action(ID, &when_active(read("/3/0/2")));
    silent_device(caller, "another");
    caller.create_action("another", &when_active(read("/3/0/0")));
    let removed = caller.request("DELETE", "/management-api/v1/devices/another");
    assert_eq!(removed.status, 204);

    let (status, found) = checked(setup.service.data_dir());
    assert_eq!(status, Some(2), "{found}");
    assert!(found.contains("in use by another process"), "{found}");
    setup.service.kill();
    let (status, found) = checked(setup.service.data_dir());
    assert_eq!(status, Some(0), "{found}");
    assert!(found.ends_with(" rows read, 0 findings\n"), "{found}");
    setup.service.start_again();
    setup.caller.follow(&setup.service);
    setup.device.update();

    let nothing = TempDir::new().unwrap();
    let (status, found) = checked(nothing.path());
    assert_eq!(status, Some(2), "{found}");
    assert!(found.contains("there is no store in"), "{found}");
}

#[test]
fn a_store_whose_files_are_gone_is_not_ready_until_they_are_back() {
    let (mut service, caller) = start(&[]);
    service.may_fail();
    let (store, away) = ["store", "away"]
        .map(|it| service.data_dir().join(it))
        .into();
    let ready = || Request::new("GET", "/readyz").send(service.http).status;
    fs::rename(&store, &away).unwrap();
    until("not ready", || (ready() == 503).then_some(()));
    let device = json!({ "deviceId": ID });
    let devices = "/management-api/v1/devices";
    assert_eq!(caller.post(devices, &device).status, 503);
    caller.request("GET", devices).expect(200);
    // Another directory in its place is not the store.
    fs::create_dir(&store).unwrap();
    assert_eq!(caller.post(devices, &device).status, 503);
    fs::remove_dir(&store).unwrap();
    fs::rename(&away, &store).unwrap();
    until("ready again", || (ready() == 200).then_some(()));
    caller.post(devices, &device).expect(201);
}

#[test]
fn an_invalid_data_directory_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "not a directory").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = failed(&run(&mut serve(&path)));
        assert!(error.contains(&file.display().to_string()), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "not a directory");
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let folder = TempDir::new().unwrap();
    let rows = folder.path().join("store/rows");
    fs::create_dir_all(&rows).unwrap();
    for (name, bytes) in NEWER_STORE {
        fs::write(rows.join(name), hex(bytes)).unwrap();
    }
    for _ in 0..2 {
        let error = failed(&run(&mut serve(folder.path())));
        assert!(error.contains("newer version of signalbox"), "{error}");
        assert!(
            error.contains(&folder.path().display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn an_address_in_use_is_named() {
    let folder = TempDir::new().unwrap();
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let coap = UdpSocket::bind("127.0.0.1:0").unwrap();
    let coaps = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = [
        ("--http", http.local_addr().unwrap().to_string()),
        ("--coap", coap.local_addr().unwrap().to_string()),
        ("--coaps", coaps.local_addr().unwrap().to_string()),
        ("--udp", udp.local_addr().unwrap().to_string()),
    ];
    for (flag, address) in taken {
        let mut command = signalbox();
        command
            .args([flag, &address, "--data-dir"])
            .arg(folder.path());
        for other in ["--http", "--coap", "--coaps", "--udp"]
            .into_iter()
            .filter(|other| *other != flag)
        {
            command.args([other, "127.0.0.1:0"]);
        }
        let error = failed(&run(&mut command));
        assert!(error.contains(&address), "{error}");
    }
}

#[test]
fn the_operator_s_token_is_stored_in_a_file_only_its_owner_can_read() {
    let mut service = Service::start();
    let path = service.data_dir().join("operator-token");
    let token = service.operator_token();
    assert!(token.len() >= 32, "{}", token.len());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        Caller::operator(&service)
            .request("GET", "/operator-api/v1/customers")
            .status,
        200
    );
    let printed = service.printed().join("\n");
    assert!(!printed.contains(&token), "{printed}");
    assert!(printed.contains(&path.display().to_string()), "{printed}");
    let other = Service::start();
    assert_ne!(other.operator_token(), token);
}

#[test]
fn the_data_directory_is_private_also_where_it_was_open_to_others() {
    let mut service = Service::start();
    let home = service.data_dir().to_owned();
    assert_eq!(open_to_others(&home), Vec::<PathBuf>::new());
    assert_eq!(service.stop().code(), Some(0));
    let opened = [
        home.clone(),
        home.join("store"),
        home.join("operator-token"),
    ];
    for path in &opened {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    service.start_again();
    assert_eq!(open_to_others(&home), Vec::<PathBuf>::new());
    let printed = service.printed().join("\n");
    for path in &opened {
        assert!(printed.contains(&path.display().to_string()), "{printed}");
    }
}

#[test]
fn a_configured_operator_token_is_used_and_not_stored() {
    let token = "a-token-of-the-operator-s-own-choice";
    let mut service = Service::start_with(&[("SIGNALBOX_OPERATOR_TOKEN", token)]);
    let operator = Caller::with_token(&service, token);
    let customer = operator.post("/operator-api/v1/customers", &json!({ "name": "Acme" }));
    customer.expect(201);
    assert!(!service.data_dir().join("operator-token").exists());
    let printed = service.printed().join("\n");
    assert!(!printed.contains(token), "{printed}");
}

#[test]
fn a_caller_that_calls_too_often_is_told_when_to_retry() {
    let (service, caller) = start(&[("SIGNALBOX_RATE_LIMIT", "1")]);
    let other = Caller::of_new_customer(&service, "Umbrella");
    let path = format!("{API}/devices");
    let refused = until("a refusal", || {
        let answer = caller.request("GET", &path);
        (answer.status != 200).then_some(answer)
    });
    assert_eq!(refused.status, 429, "{}", refused.text());
    let wait: u32 = refused
        .header("retry-after")
        .expect("a time to wait")
        .parse()
        .unwrap();
    assert!(wait >= 1);
    other.request("GET", &path).expect(200);
    until("another turn", || {
        (caller.request("GET", &path).status == 200).then_some(())
    });
}

fn serve(data: &Path) -> Command {
    let mut command = signalbox();
    command.args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--coap",
        "127.0.0.1:0",
        "--coaps",
        "127.0.0.1:0",
        "--udp",
        "127.0.0.1:0",
        "--data-dir",
    ]);
    command.arg(data).env("SIGNALBOX_STORE_CACHE_MIB", "16");
    command
}

/// Runs a service that cannot start; one that does start is killed.
fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        thread::yield_now();
    }
    child.kill().ok();
    child.wait_with_output().unwrap()
}

/// The exit status of a check of a data directory, and what it says.
fn checked(data: &Path) -> (Option<i32>, String) {
    let output = run(signalbox().args(["check", "--data-dir"]).arg(data));
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

/// The error output of a failed run, which must not be a panic.
fn failed(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code().is_some_and(|code| code != 0),
        "{}: {error}",
        output.status
    );
    assert!(!error.contains("panicked"), "{error}");
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("listening"),
        "{error}"
    );
    error
}

/// Everything in a directory, itself included, that other users of the machine have access to.
fn open_to_others(path: &Path) -> Vec<PathBuf> {
    let mode = fs::metadata(path).unwrap().permissions().mode();
    let mut found: Vec<_> = (mode & 0o077 != 0)
        .then(|| path.to_owned())
        .into_iter()
        .collect();
    for entry in fs::read_dir(path).into_iter().flatten() {
        found.extend(open_to_others(&entry.unwrap().path()));
    }
    found
}

#[test]
fn bodies_in_progress_have_a_bound_and_a_call_beyond_it_is_told_when_to_retry() {
    let (service, caller) = start(&[
        ("SIGNALBOX_JSON_BODY_BYTES_MAX", "100000"),
        ("SIGNALBOX_BODIES_BYTES_MAX", "100000"),
    ]);
    let head = format!(
        "POST {API}/devices HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 90000\r\n\r\n",
        caller.token()
    );
    let device = json!({ "deviceId": "meter", "name": "x".repeat(30_000) });
    let call = || caller.post(&format!("{API}/devices"), &device);
    // The call may be first, and it is the other body that is refused then.
    let (held, refused) = until("no room for another body", || {
        let mut held = TcpStream::connect(service.http).unwrap();
        held.write_all(head.as_bytes()).unwrap();
        held.write_all(&[b' '; 80_000]).unwrap();
        let answer = call();
        (answer.status == 503).then_some((held, answer))
    });
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("connection"), Some("close"));
    // A short body fits, and so does the long one once the first is gone.
    caller.create_device("other", "127.0.0.9");
    drop(held);
    let answer = until("room again", || {
        let answer = call();
        (answer.status != 503).then_some(answer)
    });
    assert_eq!(answer.status, 400, "the name is too long");
}

#[test]
fn a_caller_that_does_not_finish_a_request_is_disconnected_and_others_are_served() {
    let (service, caller) = start(&[("SIGNALBOX_HTTP_REQUEST_WAIT_MS", "200")]);
    let mut slow = connected(&service);
    // The first request is whole, the second is not.
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\nGET /livez HTTP/1.1\r\nhost:")
        .unwrap();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?}");
    assert_eq!(closed(&service, "no_request"), 1.0);
    caller.request("GET", &format!("{API}/devices")).expect(200);
}

#[test]
fn a_caller_that_does_not_read_its_responses_is_disconnected() {
    let (service, _) = start(&[("SIGNALBOX_HTTP_RESPONSE_WAIT_MS", "200")]);
    let mut deaf = connected(&service);
    deaf.set_write_timeout(Some(PATIENCE)).unwrap();
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n";
    // Responses fill the buffers of the kernel until one is not taken; then writing fails.
    until("the connection is closed", || {
        deaf.write_all(request).is_err().then_some(())
    });
    assert_eq!(closed(&service, "response_not_taken"), 1.0);
}

#[test]
fn one_address_has_a_bound_of_connections_and_others_are_served() {
    let (service, caller) = start(&[
        ("SIGNALBOX_HTTP_CONNECTIONS_PER_ADDRESS_MAX", "4"),
        ("SIGNALBOX_HTTP_REQUEST_WAIT_MS", "600000"),
    ]);
    let flood = Ipv4Addr::from([127, 0, 0, 9]);
    let held: Vec<_> = (0..4).map(|_| connected_from(flood, &service)).collect();
    for stream in &held {
        assert_eq!(livez(stream), "HTTP/1.1 200 ");
    }
    let mut refused = connected_from(flood, &service);
    // It may be reset or ended: nothing is served on it.
    let _ = refused.write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n");
    let mut answer = String::new();
    let _ = refused.read_to_string(&mut answer);
    assert_eq!(answer, "");
    assert_eq!(closed(&service, "too_many"), 1.0);
    caller.request("GET", &format!("{API}/devices")).expect(200);
}

#[test]
fn beyond_all_connections_the_operator_and_health_checks_are_served() {
    let (service, caller) = start(&[
        ("SIGNALBOX_HTTP_CONNECTIONS_MAX", "16"),
        ("SIGNALBOX_HTTP_REQUEST_WAIT_MS", "600000"),
    ]);
    let held: Vec<_> = (0..16)
        .map(|number| connected_from(Ipv4Addr::from([127, 0, 1, number]), &service))
        .collect();
    for stream in &held {
        assert_eq!(livez(stream), "HTTP/1.1 200 ");
    }
    let refused = caller.request("GET", &format!("{API}/devices"));
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        Request::new("GET", "/readyz").send(service.http).status,
        200
    );
    let operator = Caller::operator(&service);
    operator
        .request("GET", "/operator-api/v1/customers")
        .expect(200);
    drop(held);
    until("room again", || {
        (caller.request("GET", &format!("{API}/devices")).status == 200).then_some(())
    });
}

#[test]
fn connections_of_the_reserve_that_wait_give_way_to_new_ones() {
    let (service, _caller) = start(&[
        ("SIGNALBOX_HTTP_CONNECTIONS_MAX", "16"),
        ("SIGNALBOX_HTTP_REQUEST_WAIT_MS", "600000"),
    ]);
    // More than all connections and the reserve, and none of them sends a request.
    let held: Vec<_> = (0..100)
        .map(|number| connected_from(Ipv4Addr::from([127, 0, 2, number]), &service))
        .collect();
    until("all are accepted, or closed", || {
        (closed(&service, "too_many") >= 52.0).then_some(())
    });
    // Each takes the place of one that waits. Until the server has dropped those that gave way they
    // count, and then a new one is closed without an answer.
    for _ in 0..8 {
        until("a health check is answered", || {
            let ready = Request::new("GET", "/readyz").try_send(service.http).ok()?;
            (ready.status == 200).then_some(())
        });
    }
    drop(held);
}

#[test]
#[cfg(target_os = "linux")]
fn without_descriptors_devices_are_served_and_callers_as_soon_as_there_are_some() {
    let (mut service, caller) = start(&[]);
    caller.create_device(ID, DEVICE_IP);
    let descriptors = format!("/proc/{}/fd", service.pid());
    let most = fs::read_dir(&descriptors).unwrap().count() + 16;
    let limit = format!("--nofile={most}:{most}");
    let pid = service.pid().to_string();
    let limited = Command::new("prlimit")
        .args(["--pid", &pid, &limit])
        .status();
    assert!(limited.unwrap().success());
    // The HTTP library logs each connection that cannot be accepted as an error.
    service.may_fail();
    // The kernel accepts them, the service those that it has descriptors for.
    let held: Vec<_> = (0..64).map(|_| connected(&service)).collect();
    until("all descriptors are used", || {
        (fs::read_dir(&descriptors).unwrap().count() >= most - 1).then_some(())
    });
    DeviceSocket::to(&service).register(ID, 1);
    drop(held);
    // One that comes before the descriptors are free is closed without an answer.
    let list = || caller.authorized("GET", &format!("{API}/devices"));
    until("callers are served again", || {
        let answer = list().try_send(service.http).ok()?;
        (answer.status == 200).then_some(())
    });
    let ready = Request::new("GET", "/readyz").send(service.http);
    assert_eq!(ready.status, 200);
}

fn connected(service: &Service) -> TcpStream {
    let stream = TcpStream::connect(service.http).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn connected_from(address: Ipv4Addr, service: &Service) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&service.http.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The beginning of the answer to a health check.
fn livez(mut stream: &TcpStream) -> String {
    stream
        .write_all(b"GET /livez HTTP/1.1\r\nhost: test\r\n\r\n")
        .unwrap();
    let mut begun = [0; 13];
    stream.read_exact(&mut begun).unwrap();
    String::from_utf8_lossy(&begun).into_owned()
}

/// How many connections the service closed for a reason. The call may itself be closed without an
/// answer while all connections are used; then it is repeated.
pub(crate) fn closed(service: &Service, reason: &str) -> f64 {
    let metrics = until("the metrics are answered", || {
        Request::new("GET", "/metrics").try_send(service.http).ok()
    });
    let line = format!("signalbox_http_connections_closed_total{{reason=\"{reason}\"}} ");
    let value = metrics.text().lines().find_map(|it| it.strip_prefix(&line));
    value.expect("the metric is there").parse().unwrap()
}
