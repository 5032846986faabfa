//! What does a configuration file say? TOML 1.0, one key per setting.

use std::path::Path;

use toml::de::{DeInteger, DeTable, DeValue};

use super::layers::{Fault, Source};

/// The file's keys with their values as text, and what cannot be read.
pub(super) fn read(path: &Path, text: &str) -> (Vec<(String, String)>, Vec<Fault>) {
    let source = Source::File(path.to_owned());
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let why = error.to_string().trim_end().replace('\n', "\n    ");
            return (
                Vec::new(),
                vec![Fault {
                    at: source.to_string(),
                    why,
                }],
            );
        }
    };
    let mut values = Vec::new();
    let mut faults = Vec::new();
    for (key, value) in table {
        let key = key.into_inner().into_owned();
        match value_text(&value.into_inner()) {
            Some(text) => values.push((key, text)),
            None => {
                let why = "must be a text, a whole number, true, false or a list of those";
                faults.push(Fault {
                    at: source.place(&key),
                    why: why.to_owned(),
                });
            }
        }
    }
    (values, faults)
}

fn value_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => decimal(number),
        DeValue::Boolean(state) => Some(state.to_string()),
        DeValue::Array(items) => {
            let items: Option<Vec<_>> = items
                .iter()
                .map(|item| value_text(item.get_ref()))
                .collect();
            items.map(|items| items.join(","))
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn decimal(number: &DeInteger<'_>) -> Option<String> {
    let digits = number.as_str();
    i128::from_str_radix(digits, number.radix())
        .ok()
        .map(|number| number.to_string())
}
