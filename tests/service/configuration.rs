//! Does the program apply its command line and configuration, and does it name every error in them?

use std::fs;
use std::process::Output;

use tempfile::TempDir;

use crate::vocabulary::service::signalbox;

/// Arguments, variables, and the place of the error.
type Misconfigured = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
);

#[test]
fn an_error_of_the_configuration_is_named_with_its_place() {
    let cases: [Misconfigured; 6] = [
        (&["--coap", "everywhere"], &[], "--coap"),
        (&[], &[("SIGNALBOX_HTTP", "here")], "SIGNALBOX_HTTP"),
        (&["--scheduled-max", "0"], &[], "--scheduled-max"),
        (
            &["serve"],
            &[("SIGNALBOX_COAP_MAX_RETRANSMIT", "many")],
            "SIGNALBOX_COAP_MAX_RETRANSMIT",
        ),
        (
            &["--config", "/nowhere/signalbox.toml"],
            &[],
            "/nowhere/signalbox.toml",
        ),
        (&["--colour", "red"], &[], "--colour"),
    ];
    for (arguments, variables, place) in cases {
        let error = refused(arguments, variables);
        assert!(
            error.contains(place),
            "{arguments:?} {variables:?}: {error}"
        );
    }
}

#[test]
fn every_error_is_named_at_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("signalbox.toml");
    fs::write(&file, "colour = 'red'\nhttp = 'here'\n").unwrap();
    let arguments = [
        "--config",
        file.to_str().unwrap(),
        "--scheduled-max",
        "none",
    ];
    let error = refused(&arguments, &[("SIGNALBOX_COAP", "there")]);
    let places = [
        "colour",
        "http",
        "SIGNALBOX_COAP",
        "--scheduled-max",
        "signalbox.toml",
    ];
    for place in places {
        assert!(error.contains(place), "{place}: {error}");
    }
}

#[test]
fn the_effective_configuration_is_shown_with_the_source_of_each_value() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("signalbox.toml");
    fs::write(
        &file,
        "platform = 'from-file'\nscheduled_max = 3\nwaiting_max = 3\n",
    )
    .unwrap();
    let output = signalbox()
        .args([
            "config",
            "--config",
            file.to_str().unwrap(),
            "--waiting-max",
            "5",
        ])
        .env("SIGNALBOX_SCHEDULED_MAX", "4")
        .env("SIGNALBOX_WAITING_MAX", "4")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let shown = shown(&output);
    let line = |name: &str| {
        let mut lines = shown
            .lines()
            .filter(|line| line.starts_with(&format!("{name} = ")));
        let line = lines.next().unwrap_or_else(|| panic!("no {name}: {shown}"));
        assert_eq!(lines.next(), None, "{name} has one value");
        line.to_owned()
    };
    let expected = [
        ("http", "\"127.0.0.1:8080\"", "default"),
        ("coap", "\"[::]:5683\"", "default"),
        ("platform", "\"from-file\"", "signalbox.toml"),
        ("scheduled_max", "4", "SIGNALBOX_SCHEDULED_MAX"),
        ("waiting_max", "5", "--waiting-max"),
    ];
    for (name, value, source) in expected {
        let line = line(name);
        assert!(line.contains(value) && line.contains(source), "{line}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "showing makes nothing");
}

#[test]
fn secrets_are_masked_where_the_configuration_is_shown() {
    let secret = "correct-horse-battery-staple-again";
    let output = signalbox()
        .arg("config")
        .env("SIGNALBOX_OPERATOR_TOKEN", secret)
        .output();
    let shown = shown(&output.unwrap());
    assert!(!shown.contains(secret), "{shown}");
    let is_named = |line: &str| {
        line.starts_with("operator_token = ") && line.contains("SIGNALBOX_OPERATOR_TOKEN")
    };
    assert!(shown.lines().any(is_named), "{shown}");
    let wrong = "a secret with spaces";
    let error = refused(&[], &[("SIGNALBOX_OPERATOR_TOKEN", wrong)]);
    assert!(
        error.contains("SIGNALBOX_OPERATOR_TOKEN") && !error.contains(wrong),
        "{error}"
    );
}

#[test]
fn the_output_is_a_valid_configuration_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("signalbox.toml");
    let first = signalbox()
        .args(["config", "--platform", "acme"])
        .output()
        .unwrap();
    fs::write(&file, shown(&first)).unwrap();
    let again = signalbox()
        .args(["config", "--config", file.to_str().unwrap()])
        .output();
    let again = shown(&again.unwrap());
    assert!(
        again
            .lines()
            .any(|line| line.starts_with("platform = \"acme\"")),
        "{again}"
    );
}

#[test]
fn help_and_version_are_printed() {
    for (argument, expected) in [
        ("--help", "serve"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let output = signalbox().arg(argument).output().unwrap();
        assert!(shown(&output).contains(expected));
    }
}

/// The error output of a run with a wrong configuration, which must exit with status 2.
#[test]
fn an_error_of_the_link_is_named() {
    let url = ("SIGNALBOX_SMPP_URL", "smpp://smsc.example:2775");
    let name = ("SIGNALBOX_SMPP_SYSTEM_ID", "signalbox");
    let cases: [(&[(&str, &str)], &str); 4] = [
        (
            &[("SIGNALBOX_SMPP_URL", "smsc.example:2775")],
            "must be smpp://host:port",
        ),
        (&[url], "requires smpp_system_id"),
        (&[url, name], "requires smpp_password or smpp_password_file"),
        (&[("SIGNALBOX_SMPP_PASSWORD", "secret089")], "at most 8"),
    ];
    for (variables, expected) in cases {
        let error = refused(&[], variables);
        assert!(error.contains(expected), "{variables:?}: {error}");
        assert!(!error.contains("secret089"), "{error}");
    }
}

fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let folder = TempDir::new().unwrap();
    let mut command = signalbox();
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(folder.path());
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(2),
        "{arguments:?} {variables:?}: {error}"
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was made: {error}"
    );
    error
}

fn shown(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
