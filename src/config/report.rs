//! How is the configuration printed? One line per setting, as TOML, with its source.

use std::fmt;

use super::layers::{GivenText, Layers, Source};
use super::{SettingEffect, SettingKind, SettingRow, rows};

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in rows() {
            writeln!(f, "{}", line(row, self.of(row.name)))?;
        }
        for stranger in self.strangers() {
            writeln!(f, "# environment {stranger}: unknown setting")?;
        }
        Ok(())
    }
}

impl Layers {
    /// The settings with a given value that this build does not use.
    pub fn unheeded(&self) -> impl Iterator<Item = String> {
        let given = |row: &&SettingRow| match self.of(row.name).source {
            Source::Default | Source::Preset => false,
            Source::File(_) | Source::Environment | Source::Flag => true,
        };
        let unused = rows().filter(|row| matches!(row.force, SettingEffect::NotUsedYet(_)));
        unused
            .filter(given)
            .map(|row| self.of(row.name).source.place(row.name))
    }
}

fn line(row: &SettingRow, given: &GivenText) -> String {
    let setting = format!("{} = {}", row.name, shown(row.kind, &given.text));
    let mut source = match given.source {
        Source::Environment => given.source.place(row.name),
        Source::Flag => given.source.place(row.name),
        Source::Default | Source::Preset | Source::File(_) => given.source.to_string(),
    };
    match row.force {
        SettingEffect::InForce => {}
        SettingEffect::NotUsedYet(_) => source.push_str(", not used yet"),
    }
    format!("{setting}  # {source}")
}

fn shown(kind: SettingKind, text: &str) -> String {
    match kind {
        SettingKind::Number | SettingKind::Switch => text.to_owned(),
        SettingKind::List => format!("[{}]", text.split(',').collect::<Vec<_>>().join(", ")),
        SettingKind::Secret if text.is_empty() => "\"\"".to_owned(),
        SettingKind::Secret => "\"********\"".to_owned(),
        SettingKind::Text => quoted(text),
    }
}

/// A basic string of TOML: what JSON escapes, TOML reads the same.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
