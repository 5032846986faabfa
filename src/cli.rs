//! How is the command line parsed? A task, a configuration file, and settings as flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PathBufValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use crate::config::{self, SettingKind, SettingRow};
use crate::load::options::LoadOptions;
use crate::migrate::MigrationEnd;

/// The task to run.
#[derive(Clone, Debug, PartialEq)]
pub enum CliCommand {
    /// Serve devices and callers.
    Serve,
    /// Run the service with simulated devices on a temporary store.
    Demo,
    /// Print the effective configuration.
    Config,
    /// Check the store while no service runs.
    Check,
    /// Make a backup of a running service.
    Backup {
        /// The file to write.
        to: PathBuf,
        /// The base URL of its operator API, unless it is in the configuration.
        api: Option<String>,
    },
    /// Restore the store from a backup.
    Restore {
        /// The file to read.
        from: PathBuf,
    },
    /// Change the master key while no service runs.
    Rekey {
        /// The file with the new key; without one it is random.
        new_key: Option<PathBuf>,
    },
    /// Move the store to the other engine while no service runs.
    Migrate {
        /// Where it is.
        from: MigrationEnd,
        /// Where it will be.
        to: MigrationEnd,
    },
    /// Run a load test against a server.
    Load(Box<LoadOptions>),
}

const LOAD: &str = "load";

const CHECK: &str = "Check the store of a stopped service: exit status 0 if it is whole, 1 if \
                     anything is lost or damaged, 2 if it cannot be read";

/// The preset of `demo`: it listens on loopback only, accepts devices added by hand, and logs only
/// warnings, so that its own output stays readable.
const DEMO_PRESET: &[(&str, &str)] = &[
    ("coap", "127.0.0.1:5683"),
    ("udp", "127.0.0.1:4445"),
    ("log", "warn"),
    ("trust_endpoint_names", "true"),
    ("allow_private_destinations", "true"),
];

const EXAMPLES: &str = "\
Each setting is a flag, an environment variable, or a key of the TOML file: --data-dir, \
SIGNALBOX_DATA_DIR or data_dir. A flag wins over the environment, the environment over the file.

Examples:
  signalbox demo                              See it at work, on a temporary store
  signalbox serve --data-dir /var/lib/signalbox
  signalbox config --config signalbox.toml    Check a file and print the resulting settings
  signalbox check --data-dir /var/lib/signalbox
  signalbox backup --to signalbox.backup --data-dir /var/lib/signalbox
  signalbox restore --from signalbox.backup --data-dir /var/lib/signalbox
  signalbox rekey --data-dir /var/lib/signalbox
  signalbox migrate --from /var/lib/signalbox --to postgres://signalbox@db.example/signalbox
  signalbox load --help                       Options of the load test";

/// A parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The task to run.
    pub task: CliCommand,
    /// The configuration file, if one is given.
    pub file: Option<PathBuf>,
    /// Settings by name.
    pub flags: Vec<(&'static str, String)>,
}

impl Invocation {
    /// Parses a command line. The error is printed with its own exit code, whether it is a usage
    /// error or help.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        // A load test does not use the settings of the service.
        if let [_, rest @ ..] = arguments.as_slice()
            && rest.first().is_some_and(|word| word == LOAD)
        {
            return Ok(Self {
                task: CliCommand::Load(Box::new(LoadOptions::parse(rest.iter().cloned())?)),
                file: None,
                flags: Vec::new(),
            });
        }
        let matches = command().try_get_matches_from(arguments)?;
        let (task, matches) = match matches.subcommand() {
            Some(("demo", matches)) => (CliCommand::Demo, matches),
            Some(("config", matches)) => (CliCommand::Config, matches),
            Some(("check", matches)) => (CliCommand::Check, matches),
            Some(("backup", matches)) => {
                let api = matches.get_one::<String>("api").cloned();
                let to = file_of(matches, "to");
                (CliCommand::Backup { to, api }, matches)
            }
            Some(("restore", matches)) => {
                let from = file_of(matches, "from");
                (CliCommand::Restore { from }, matches)
            }
            Some(("rekey", matches)) => {
                let new_key = matches.get_one::<PathBuf>("new-key").cloned();
                (CliCommand::Rekey { new_key }, matches)
            }
            Some(("migrate", matches)) => {
                let (from, to) = (end_of(matches, "from"), end_of(matches, "to"));
                (CliCommand::Migrate { from, to }, matches)
            }
            Some((LOAD, _)) => {
                let message = "load has its own options and must be the first argument";
                return Err(command().error(ErrorKind::ArgumentConflict, message));
            }
            Some((_, matches)) => (CliCommand::Serve, matches),
            None => (CliCommand::Serve, &matches),
        };
        let file = matches.get_one::<PathBuf>("config").cloned();
        let flags = config::rows()
            .filter_map(|row| flag(row, matches))
            .collect();
        Ok(Self { task, file, flags })
    }

    /// The settings of the task, which every other layer overrides.
    pub fn preset(&self) -> &'static [(&'static str, &'static str)] {
        match self.task {
            CliCommand::Serve
            | CliCommand::Config
            | CliCommand::Check
            | CliCommand::Backup { .. }
            | CliCommand::Restore { .. }
            | CliCommand::Rekey { .. }
            | CliCommand::Migrate { .. }
            | CliCommand::Load(_) => &[],
            CliCommand::Demo => DEMO_PRESET,
        }
    }
}

fn file_of(matches: &ArgMatches, name: &str) -> PathBuf {
    let file = matches.get_one::<PathBuf>(name);
    file.expect("the argument is required").clone()
}

fn end_of(matches: &ArgMatches, name: &str) -> MigrationEnd {
    let end = matches.get_one::<MigrationEnd>(name);
    end.expect("the argument is required").clone()
}

fn flag(row: &SettingRow, matches: &ArgMatches) -> Option<(&'static str, String)> {
    matches
        .get_one::<String>(row.name)
        .map(|text| (row.name, text.clone()))
}

fn command() -> Command {
    let config = file("config", "Read settings from a TOML file").global(true);
    Command::new("signalbox")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Self-hosted connectivity service for cellular IoT devices (LwM2M, CoAP, UDP)")
        .after_help(EXAMPLES)
        .subcommand(Command::new("serve").about("Run the service (default)"))
        .subcommand(Command::new("demo").about("Run the service with simulated devices"))
        .subcommand(Command::new("config").about("Print the effective configuration"))
        .subcommand(Command::new("check").about(CHECK))
        .subcommand(
            Command::new("backup")
                .about("Make a backup of the running service, and check it")
                .arg(required_file("to", "File to write; it must not exist"))
                .arg(
                    Arg::new("api")
                        .long("api")
                        .value_name("URL")
                        .help("Base URL of the operator API [default: the configured address]"),
                ),
        )
        .subcommand(
            Command::new("restore")
                .about("Restore a backup into a data directory without a store")
                .arg(required_file("from", "File to read")),
        )
        .subcommand(
            Command::new("rekey")
                .about("Change the master key of a stopped service: encrypt every secret anew")
                .arg(file(
                    "new-key",
                    "File with the new key [default: a random key]",
                )),
        )
        .subcommand(
            Command::new("migrate")
                .about("Move the store of a stopped service to PostgreSQL, or back")
                .arg(end(
                    "from",
                    "Data directory or postgres:// URL of the store",
                ))
                .arg(end(
                    "to",
                    "Where it is moved: the other of both, without a store",
                )),
        )
        .subcommand(Command::new(LOAD).about("Run a load test with simulated devices"))
        .arg(config)
        .args(config::rows().map(argument))
}

fn required_file(name: &'static str, help: &'static str) -> Arg {
    file(name, help).required(true)
}

fn end(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("DIRECTORY|URL")
        .value_parser(MigrationEnd::parse)
        .help(help)
        .required(true)
}

fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("FILE")
        .value_parser(PathBufValueParser::new())
        .help(help)
}

fn argument(row: &'static SettingRow) -> Arg {
    let default = match row.default {
        "" => String::new(),
        default => format!("[default: {default}] "),
    };
    let help = format!("{} {default}[env: {}]", row.about.trim(), row.variable());
    let argument = Arg::new(row.name).long(row.flag()).help(help).global(true);
    match row.kind {
        SettingKind::Switch => argument
            .value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        SettingKind::Text => argument.value_name("TEXT"),
        SettingKind::Secret => argument.value_name("SECRET"),
        SettingKind::Url => argument.value_name("URL"),
        SettingKind::Number => argument.value_name("NUMBER"),
        SettingKind::List => argument.value_name("NUMBERS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_task_is_serve() {
        assert_eq!(parse(&[]).task, CliCommand::Serve);
        assert_eq!(parse(&["serve"]).task, CliCommand::Serve);
        assert_eq!(parse(&["config"]).task, CliCommand::Config);
        assert_eq!(parse(&["check"]).task, CliCommand::Check);
        assert_eq!(parse(&["demo"]).task, CliCommand::Demo);
        let (to, api) = ("b".into(), None);
        let task = CliCommand::Backup { to, api };
        assert_eq!(parse(&["backup", "--to", "b"]).task, task);
        let task = CliCommand::Restore { from: "b".into() };
        assert_eq!(parse(&["restore", "--from", "b"]).task, task);
        let task = CliCommand::Rekey { new_key: None };
        assert_eq!(parse(&["rekey"]).task, task);
        let new_key = Some("k".into());
        let task = CliCommand::Rekey { new_key };
        assert_eq!(parse(&["rekey", "--new-key", "k"]).task, task);
        let url = "postgres://signalbox@db.example/signalbox";
        let ends = ["./data", url].map(|end| MigrationEnd::parse(end).unwrap());
        let [from, to] = ends;
        assert!(matches!(&to, MigrationEnd::Database(_)));
        let task = CliCommand::Migrate { from, to };
        assert_eq!(
            parse(&["migrate", "--from", "./data", "--to", url]).task,
            task
        );
    }

    #[test]
    fn settings_may_stand_before_and_after_the_task() {
        let http = vec![("http", "127.0.0.1:1".to_owned())];
        assert_eq!(parse(&["--http", "127.0.0.1:1"]).flags, http);
        assert_eq!(parse(&["config", "--http", "127.0.0.1:1"]).flags, http);
        assert_eq!(parse(&["--http=127.0.0.1:1", "config"]).flags, http);
        assert_eq!(
            parse(&["config", "--config", "a.toml"]).file,
            Some("a.toml".into())
        );
    }

    #[test]
    fn a_switch_needs_no_value_and_takes_one_after_an_equals_sign() {
        let on = vec![("trust_endpoint_names", "true".to_owned())];
        assert_eq!(parse(&["--trust-endpoint-names"]).flags, on);
        assert_eq!(parse(&["--trust-endpoint-names", "config"]).flags, on);
        let off = vec![("trust_endpoint_names", "false".to_owned())];
        assert_eq!(parse(&["--trust-endpoint-names=false"]).flags, off);
    }

    #[test]
    fn an_unknown_flag_is_a_usage_error() {
        let error = Invocation::parse(["signalbox", "--htp"].map(OsString::from)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn a_load_has_options_of_its_own() {
        let words = ["load", "--target", "coap://127.0.0.1", "--devices", "7"];
        let words = [&words[..], &["--scenario", "update"]].concat();
        let CliCommand::Load(options) = parse(&words).task else {
            panic!("it is a load");
        };
        assert_eq!(options.devices, 7);
        let with_setting = [&["signalbox", "--http", "127.0.0.1:1"], &words[..]].concat();
        let error = Invocation::parse(with_setting.iter().map(OsString::from)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn only_the_demo_trusts_endpoint_names_by_default() {
        assert!(parse(&["serve"]).preset().is_empty());
        assert!(
            parse(&["demo"])
                .preset()
                .contains(&("trust_endpoint_names", "true"))
        );
    }

    fn parse(arguments: &[&str]) -> Invocation {
        let arguments = ["signalbox"].iter().chain(arguments).map(OsString::from);
        Invocation::parse(arguments).unwrap()
    }
}
