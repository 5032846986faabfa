//! What happens to the rows of a customer's definitions of objects when one is put or removed?

use engine::definition::{Definition, DefinitionId};
use engine::ids::CustomerId;
use sled::IVec;

use super::fault::Fault;
use super::key::{self, Key};
use super::kv::{Rows, Value};
use super::overlay::Overlay;
use crate::record::definition::{Defined, TextId, read_defined, write_defined, write_text};

/// A definition to be put.
pub(super) struct DefinitionPut {
    key: Key,
    row: Vec<u8>,
    text_key: Key,
    text: Value,
}

impl DefinitionPut {
    /// A definition to be put, with its text under an id of its own.
    pub(super) fn of(definition: &Definition) -> Self {
        let mut text: TextId = TextId::default();
        getrandom::fill(&mut text).expect("the operating system has random bytes once it runs");
        let text_key = key::definition::text(text);
        let at = definition.at;
        Self {
            key: key::definition::definition(&definition.id),
            row: write_defined(&Defined { at, text }),
            text: Value::cut(&text_key, &write_text(&definition.xml)),
            text_key,
        }
    }

    /// The memory it takes while it is queued.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.row.len() + self.text_key.len() + self.text.bytes()
    }

    /// Replaces the definition before it and removes that one's text.
    pub(super) fn apply(self, rows: &mut Overlay<'_>) -> Result<(), Fault> {
        erase_text_of(&self.key, rows)?;
        rows.put(self.key.into(), self.row.into());
        rows.replace(self.text_key.into(), self.text)
    }
}

/// Removes a definition with its text.
pub(super) fn remove(id: &DefinitionId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    let key = key::definition::definition(id);
    erase_text_of(&key, rows)?;
    rows.remove(key);
    Ok(())
}

/// Removes the definitions of a customer. Their texts may be many rows: they are marked removed and
/// swept later.
pub(super) fn remove_all(customer: &CustomerId, rows: &mut Overlay<'_>) -> Result<(), Fault> {
    for key in rows.keys(&key::definition::of_customer(customer), usize::MAX)? {
        if let Some(row) = rows.row(&key)? {
            let mark = key::definition::removed_text(read_defined(&row)?.text);
            rows.put(mark.into(), IVec::default());
        }
        rows.remove(key);
    }
    Ok(())
}

fn erase_text_of(definition: &[u8], rows: &mut Overlay<'_>) -> Result<(), Fault> {
    if let Some(row) = rows.row(definition)? {
        rows.erase(key::definition::text(read_defined(&row)?.text))?;
    }
    Ok(())
}
