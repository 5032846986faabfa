//! How is the configuration printed? One line per setting, as TOML, with its source.

use std::fmt;

use super::layers::{GivenText, Layers, Source};
use super::{SettingKind, SettingRow, rows};

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

fn line(row: &SettingRow, given: &GivenText) -> String {
    let setting = format!("{} = {}", row.name, shown(row.kind, &given.text));
    let source = match given.source {
        Source::Environment => given.source.place(row.name),
        Source::Flag => given.source.place(row.name),
        Source::Default | Source::Preset | Source::File(_) => given.source.to_string(),
    };
    format!("{setting}  # {source}")
}

fn shown(kind: SettingKind, text: &str) -> String {
    match kind {
        SettingKind::Number | SettingKind::Switch => text.to_owned(),
        SettingKind::List => format!("[{}]", text.split(',').collect::<Vec<_>>().join(", ")),
        SettingKind::Secret if text.is_empty() => "\"\"".to_owned(),
        SettingKind::Secret => "\"********\"".to_owned(),
        SettingKind::Url => quoted(&without_password(text)),
        SettingKind::Text => quoted(text),
    }
}

/// A URL with its password masked.
fn without_password(url: &str) -> String {
    let masked = url.split_once("://").and_then(|(scheme, rest)| {
        let (credentials, place) = rest.split_once('@')?;
        let (user, _) = credentials.split_once(':')?;
        Some(format!("{scheme}://{user}:********@{place}"))
    });
    masked.unwrap_or_else(|| url.to_owned())
}

/// A basic string of TOML: what JSON escapes, TOML reads the same.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
