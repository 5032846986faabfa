//! Where do the names of a definition lie? End to end in one text, equal ones once.

use std::collections::HashMap;

use crate::lwm2m::model::Name;

/// The names placed so far.
#[derive(Default)]
pub(super) struct Names {
    text: String,
    name_by_text: HashMap<Box<str>, Name>,
}

/// There is no room for one more name.
pub(super) struct NamesFull;

impl Names {
    /// The length of a single name that has a place.
    pub(super) const LENGTH_MAX: usize = 255;

    /// The length of all names at which none finds a place any more.
    pub(super) const TEXT_MAX: usize = 65_535;

    /// Gives a name its place.
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
