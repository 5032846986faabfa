//! Which layer gives which value? The texts of all settings with their sources and faults.
//!
//! Our own, because the crates that merge layers lose the source of a value or stop at the first
//! fault: `config` names no source for defaults and flags, and serde reports one error.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::de::{DeInteger, DeTable, DeValue};

use super::{SettingKind, SettingRow, rows};

const PREFIX: &str = "SIGNALBOX_";

/// The value of every setting as text, each with its source.
#[derive(Clone, Debug)]
pub struct Layers {
    given: BTreeMap<&'static str, GivenText>,
    /// Variables with our prefix that are not settings: typing errors, or variables that an
    /// orchestrator derives from a service's name.
    strangers: Vec<String>,
    faults: Vec<ConfigFault>,
}

/// The text of one setting and its source.
#[derive(Clone, Debug)]
pub struct GivenText {
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
    /// The preset of the task.
    Preset,
    /// The configuration file.
    File(PathBuf),
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

/// One invalid value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigFault {
    /// The source of the value and its name there.
    pub at: String,
    /// What is wrong.
    pub why: String,
}

/// All faults of a configuration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct ConfigFaults(pub(super) Vec<ConfigFault>);

impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid configuration")?;
        self.0
            .iter()
            .try_for_each(|fault| write!(f, "\n  {}: {}", fault.at, fault.why))
    }
}

impl Layers {
    /// The default values.
    pub fn of_defaults() -> Self {
        let given = |row: &SettingRow| GivenText {
            text: row.default.to_owned(),
            source: Source::Default,
        };
        let given = rows().map(|row| (row.name, given(row))).collect();
        Self {
            given,
            strangers: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds the preset of the task.
    pub fn add_preset(&mut self, preset: &[(&'static str, &'static str)]) {
        for (name, text) in preset {
            self.give(name, (*text).to_owned(), Source::Preset);
        }
    }

    /// Adds the values of a file.
    pub fn add_file(&mut self, path: &Path) {
        match std::fs::read_to_string(path) {
            Ok(text) => self.add_file_text(path, &text),
            Err(error) => self.fault(Source::File(path.to_owned()).to_string(), error),
        }
    }

    /// Adds the values of a file with this text: TOML 1.0, one key per setting.
    pub fn add_file_text(&mut self, path: &Path, text: &str) {
        let source = Source::File(path.to_owned());
        let table = match DeTable::parse(text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                // The text of the line may be a secret.
                let at = error.span().map_or(0, |span| span.start);
                let line = text
                    .as_bytes()
                    .iter()
                    .take(at)
                    .filter(|byte| **byte == b'\n')
                    .count();
                let why = format!("line {}: {}", line + 1, error.message());
                return self.fault(source.to_string(), why);
            }
        };
        let mut unknown = Vec::new();
        for (key, value) in table {
            let key = key.get_ref();
            let value = value.get_ref();
            // A table has the settings that begin with its name.
            if let DeValue::Table(table) = value
                && is_group(key)
            {
                for (rest, value) in table {
                    let key = format!("{key}_{}", rest.get_ref());
                    self.add_value(&source, &key, value.get_ref(), &mut unknown);
                }
            } else {
                self.add_value(&source, key, value, &mut unknown);
            }
        }
        for at in unknown {
            self.fault(at, "unknown setting");
        }
    }

    fn add_value(
        &mut self,
        source: &Source,
        key: &str,
        value: &DeValue<'_>,
        unknown: &mut Vec<String>,
    ) {
        let row = rows().find(|row| row.name == key);
        match (row, text_of(value)) {
            (Some(row), Some(text)) => self.give(row.name, text, source.clone()),
            (_, None) => {
                let why = "must be a string, an integer, true, false or a list of them";
                self.fault(source.place(key), why);
            }
            (None, Some(_)) => unknown.push(source.place(key)),
        }
    }

    /// Adds the values of the environment; an empty variable counts as absent.
    pub fn add_environment(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        for (variable, value) in variables {
            let Some(variable) = variable.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            let row = rows().find(|row| row.variable() == variable);
            match (row, value.into_string()) {
                (None, _) => self.strangers.push(variable.to_owned()),
                (Some(_), Ok(value)) if value.is_empty() => {}
                (Some(row), Ok(value)) => self.give(row.name, value, Source::Environment),
                (Some(row), Err(_)) => {
                    self.fault(Source::Environment.place(row.name), "must be UTF-8");
                }
            }
        }
        self.strangers.sort();
    }

    /// Adds the values of the command line.
    pub fn add_flags(&mut self, flags: Vec<(&'static str, String)>) {
        for (name, text) in flags {
            self.give(name, text, Source::Flag);
        }
    }

    /// A setting's text and source.
    pub fn of(&self, name: &str) -> &GivenText {
        self.given.get(name).expect("every setting has a default")
    }

    /// Variables with our prefix that are not settings.
    pub fn strangers(&self) -> &[String] {
        &self.strangers
    }

    /// A reader of the values that starts with the faults found so far.
    pub(super) fn reading(&self) -> ConfigReader<'_> {
        ConfigReader {
            layers: self,
            faults: self.faults.clone(),
        }
    }

    fn give(&mut self, name: &'static str, text: String, source: Source) {
        self.given.insert(name, GivenText { text, source });
    }

    fn fault(&mut self, at: String, why: impl ToString) {
        let why = why.to_string();
        self.faults.push(ConfigFault { at, why });
    }
}

impl Source {
    /// The source with the name of the setting there.
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

/// Parses the values and collects every fault.
pub(super) struct ConfigReader<'a> {
    layers: &'a Layers,
    faults: Vec<ConfigFault>,
}

impl ConfigReader<'_> {
    /// The value of a setting, unless it has a fault.
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

    /// Adds a fault of a setting's value.
    pub(super) fn fault(&mut self, name: &str, why: String) {
        let given = self.layers.of(name);
        let kinds = [SettingKind::Secret, SettingKind::Url];
        let secret = rows().any(|row| row.name == name && kinds.contains(&row.kind));
        // Another text may be a URL with a password by mistake.
        let quotable = !secret && !given.text.contains('@');
        let why = if quotable {
            format!("{why}, not {:?}", given.text)
        } else {
            why
        };
        let at = given.source.place(name);
        self.faults.push(ConfigFault { at, why });
    }

    /// Returns what was read, or all faults.
    pub(super) fn finish<T>(self, read: Option<T>) -> Result<T, ConfigFaults> {
        match read {
            Some(read) if self.faults.is_empty() => Ok(read),
            _ => Err(ConfigFaults(self.faults)),
        }
    }
}

/// Whether settings begin with a name.
fn is_group(name: &str) -> bool {
    rows().any(|row| {
        let rest = row.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('_'))
    })
}

/// A TOML value as the text that other layers would have. A list of tables is JSON there.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => {
            json_of(value).map(|json| json.to_string())
        }
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => decimal(number),
        DeValue::Boolean(state) => Some(state.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| text_of(item.get_ref()));
            let items: Option<Vec<_>> = items.collect();
            items.map(|items| items.join(","))
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn json_of(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(state) => Some(Value::from(*state)),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| json_of(item.get_ref()));
            items.collect::<Option<Vec<Value>>>().map(Value::from)
        }
        DeValue::Table(table) => {
            let pairs = table.iter().map(|(key, value)| {
                json_of(value.get_ref()).map(|value| (key.get_ref().to_string(), value))
            });
            pairs
                .collect::<Option<Map<String, Value>>>()
                .map(Value::from)
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => None,
    }
}

fn decimal(number: &DeInteger<'_>) -> Option<String> {
    let number = i128::from_str_radix(number.as_str(), number.radix());
    number.ok().map(|number| number.to_string())
}
