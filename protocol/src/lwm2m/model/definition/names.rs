//! How are the names of a definition stored? End to end in one text, equal ones once.

use std::collections::HashMap;

use crate::lwm2m::model::Name;

/// The names stored so far.
#[derive(Default)]
pub(super) struct Names {
    text: String,
    name_by_text: HashMap<Box<str>, Name>,
}

/// There is no room for one more name.
pub(super) struct NamesFull;

impl Names {
    /// The longest name that can be stored.
    pub(super) const LENGTH_MAX: usize = 255;

    /// The length of all names together that can be stored.
    pub(super) const TEXT_MAX: usize = 65_535;

    /// Stores a name and returns its position.
    pub(super) fn place(&mut self, name: &str) -> Result<Name, NamesFull> {
        if let Some(placed) = self.name_by_text.get(name) {
            return Ok(*placed);
        }
        let placed = Name {
            at: u16::try_from(self.text.len()).map_err(|_| NamesFull)?,
            length: u8::try_from(name.len()).map_err(|_| NamesFull)?,
        };
        self.text.push_str(name);
        self.name_by_text.insert(name.into(), placed);
        Ok(placed)
    }

    pub(super) fn into_text(self) -> Box<str> {
        self.text.into()
    }
}
