//! Which layer gives which value? The texts of all settings with their sources, and what is
//! wrong with them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{Kind, Row, file, rows};

const PREFIX: &str = "SIGNALBOX_";

/// The value of every setting as text, each with its source.
#[derive(Clone, Debug)]
pub struct Layers {
    given: BTreeMap<&'static str, Given>,
    /// Variables with our prefix that are no settings: typing errors, or what an orchestrator
    /// makes of a service's name.
    strangers: Vec<String>,
}

/// One setting's text and where it comes from.
#[derive(Clone, Debug)]
pub struct Given {
    /// The text.
    pub text: String,
    /// Where it comes from.
    pub source: Source,
}

/// Where a value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// Built in.
    Default,
    /// What the task sets before anything else.
    Preset,
    /// The configuration file.
    File(PathBuf),
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

/// Something wrong with one value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Where the value came from and how it is called there.
    pub at: String,
    /// What is wrong.
    pub why: String,
}

/// Everything wrong with a configuration.
#[derive(Clone, Debug, Default, Eq, PartialEq, thiserror::Error)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Adds what else is wrong.
    pub fn extend(&mut self, faults: Vec<Fault>) {
        self.0.extend(faults);
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used")?;
        self.0
            .iter()
            .try_for_each(|fault| write!(f, "\n  {}: {}", fault.at, fault.why))
    }
}

impl Layers {
    /// The built-in values.
    pub fn of_defaults() -> Self {
        let given = |row: &Row| Given {
            text: row.default.to_owned(),
            source: Source::Default,
        };
        let given = rows().map(|row| (row.name, given(row))).collect();
        Self {
            given,
            strangers: Vec::new(),
        }
    }

    /// Adds what the task sets before anything else.
    pub fn add_preset(&mut self, preset: &[(&'static str, &'static str)]) {
        for (name, text) in preset {
            self.give(name, (*text).to_owned(), Source::Preset);
        }
    }

    /// Adds a file's values.
    pub fn add_file(&mut self, path: &Path) -> Vec<Fault> {
        let at = format!("file {}", path.display());
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_file_text(path, &text),
            Err(error) => vec![Fault {
                at,
                why: error.to_string(),
            }],
        }
    }

    /// Adds the values of a file with this text.
    pub fn add_file_text(&mut self, path: &Path, text: &str) -> Vec<Fault> {
        let (values, mut faults) = file::read(path, text);
        for (key, text) in values {
            let source = Source::File(path.to_owned());
            match rows().find(|row| row.name == key) {
                Some(row) => self.give(row.name, text, source),
                None => {
                    let at = source.place(&key);
                    faults.push(Fault {
                        at,
                        why: "there is no such setting".to_owned(),
                    });
                }
            }
        }
        faults
    }

    /// Adds the environment's values; an empty variable counts as none.
    pub fn add_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (variable, value) in variables {
            let Some(variable) = variable.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            match (
                rows().find(|row| row.variable() == variable),
                value.into_string(),
            ) {
                (None, _) => self.strangers.push(variable.to_owned()),
                (Some(_), Ok(value)) if value.is_empty() => {}
                (Some(row), Ok(value)) => self.give(row.name, value, Source::Environment),
                (Some(row), Err(_)) => {
                    let at = Source::Environment.place(row.name);
                    faults.push(Fault {
                        at,
                        why: "must be UTF-8".to_owned(),
                    });
                }
            }
        }
        self.strangers.sort();
        faults
    }

    /// Adds the command line's values.
    pub fn add_flags(&mut self, flags: Vec<(&'static str, String)>) {
        for (name, text) in flags {
            self.give(name, text, Source::Flag);
        }
    }

    /// A setting's text and source.
    pub fn of(&self, name: &str) -> &Given {
        self.given.get(name).expect("every setting has a default")
    }

    /// Variables with our prefix that are no settings.
    pub fn strangers(&self) -> &[String] {
        &self.strangers
    }

    /// Begins to read the values, with what is known to be wrong already.
    pub(super) fn reading(&self, faults: Faults) -> Reading<'_> {
        Reading {
            layers: self,
            faults,
        }
    }

    fn give(&mut self, name: &'static str, text: String, source: Source) {
        self.given.insert(name, Given { text, source });
    }
}

impl Source {
    /// The source with the name a setting goes by there.
    pub fn place(&self, name: &str) -> String {
        let row = rows().find(|row| row.name == name);
        match (self, row) {
            (Self::Environment, Some(row)) => format!("environment {}", row.variable()),
            (Self::Flag, Some(row)) => format!("flag --{}", row.flag()),
            (Self::File(path), _) => format!("file {}, key {name}", path.display()),
            (Self::Default | Self::Preset | Self::Environment | Self::Flag, _) => {
                format!("{self}, {name}")
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset => f.write_str("demo"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// Reads typed values and collects every fault on the way.
pub(super) struct Reading<'a> {
    layers: &'a Layers,
    faults: Faults,
}

impl Reading<'_> {
    /// A setting's value, unless a fault was noted.
    pub(super) fn value<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        match parse(&self.layers.of(name).text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.fault(name, why);
                None
            }
        }
    }

    /// Notes a fault of a setting's value.
    pub(super) fn fault(&mut self, name: &str, why: String) {
        let given = self.layers.of(name);
        let secret = rows().any(|row| row.name == name && row.kind == Kind::Secret);
        // A URL may carry a password.
        let quotable = !secret && !given.text.contains('@');
        let why = if quotable {
            format!("{why}, not {:?}", given.text)
        } else {
            why
        };
        let at = given.source.place(name);
        self.faults.0.push(Fault { at, why });
    }

    /// What was read, if nothing is wrong.
    pub(super) fn finish<T>(self, read: Option<T>) -> Result<T, Faults> {
        match read {
            Some(read) if self.faults.0.is_empty() => Ok(read),
            _ => Err(self.faults),
        }
    }
}
