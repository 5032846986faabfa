//! How is the configuration printed? One line per setting, as TOML, with its source.

use std::fmt;

use super::layers::{Given, Layers, Source};
use super::{Force, Kind, Row, rows};

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
        let given = |row: &&Row| match self.of(row.name).source {
            Source::Default | Source::Preset => false,
            Source::File(_) | Source::Environment | Source::Flag => true,
        };
        let unused = rows().filter(|row| matches!(row.force, Force::NotUsedYet(_)));
        unused
            .filter(given)
            .map(|row| self.of(row.name).source.place(row.name))
    }
}

fn line(row: &Row, given: &Given) -> String {
    let setting = format!("{} = {}", row.name, shown(row.kind, &given.text));
    let mut source = match given.source {
        Source::Environment => given.source.place(row.name),
        Source::Flag => given.source.place(row.name),
        Source::Default | Source::Preset | Source::File(_) => given.source.to_string(),
    };
    match row.force {
        Force::InForce => {}
        Force::NotUsedYet(_) => source.push_str(", not used yet"),
    }
    format!("{setting}  # {source}")
}

fn shown(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Number | Kind::Switch => text.to_owned(),
        Kind::List => format!("[{}]", text.split(',').collect::<Vec<_>>().join(", ")),
        Kind::Secret if text.is_empty() => "\"\"".to_owned(),
        Kind::Secret => "\"********\"".to_owned(),
        Kind::Text => quoted(text),
    }
}

/// A basic string of TOML: what JSON escapes, TOML reads the same.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
