//! Which rows take the unique names of devices, and which device has a name?
//!
//! A device whose ICCID, endpoint name and PSK identity are one text, as they are unless a caller
//! says otherwise, has one row for them. Every other name has a row of its own. So a name is taken
//! by either of two rows, and no device can have one while another has the other.

use engine::change::UniqueName;
use engine::ids::DeviceKey;
use engine::profile::Profile;

use super::fault::Fault;
use super::key::{self, Key};
use super::kv::Rows;
use crate::record::number::read_name_owner;

/// The rows of the names of a device, without its own row.
pub(super) fn name_rows(profile: &Profile) -> Vec<Key> {
    let text = profile.endpoint.as_str();
    let is_common = profile.iccid.as_str() == text && profile.psk_identity() == text;
    let common = is_common.then(|| key::common_name(text));
    let names = UniqueName::all_of(profile).into_iter();
    let names = names.filter(|name| !matches!(name, UniqueName::Device(_)));
    let mut rows: Vec<Key> = common.iter().cloned().collect();
    rows.extend(
        names
            .filter(|name| common.is_none() || key::common_name_of(name) != common)
            .map(|name| key::name(&name)),
    );
    rows
}

/// The device that has a name which has no row of another meaning.
pub(super) fn owner_of(rows: &impl Rows, name: &UniqueName) -> Result<Option<DeviceKey>, Fault> {
    let own = key::name(name);
    // A change moves a name from one row to the other at once, but these are read one by one.
    let places = match key::common_name_of(name) {
        Some(common) => vec![common.clone(), own, common],
        None => vec![own],
    };
    for place in places {
        if let Some(row) = rows.row(&place)? {
            return Ok(Some(read_name_owner(&row)?));
        }
    }
    Ok(None)
}
