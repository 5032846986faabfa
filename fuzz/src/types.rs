//! Which types do resources have?

use protocol::lwm2m::model;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::DataType;
use protocol::lwm2m::version::Version;

/// The source of the types. The same bytes are decoded with each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types {
    /// The registry's definitions.
    Model,
    /// No resource has a type.
    Unknown,
    /// Each resource has a type by its number, so that every type meets every form of value.
    ByNumber(u16),
}

impl Types {
    /// The sources for one input; the input chooses the third.
    pub(crate) fn for_input(bytes: &[u8]) -> [Self; 3] {
        let chosen = bytes.last().copied().unwrap_or_default();
        [Self::Model, Self::Unknown, Self::ByNumber(chosen.into())]
    }

    /// The type of a resource.
    pub(crate) fn of(self, path: Path) -> Option<DataType> {
        let resource = path.resource_id()?;
        match self {
            Self::Model => {
                model::resource(path.object_id(), Version::new(1, 1), resource)?.data_type()
            }
            Self::Unknown => None,
            Self::ByNumber(salt) => {
                let place = usize::from(resource.wrapping_add(salt)) % DataType::ALL.len();
                DataType::ALL.get(place).copied()
            }
        }
    }
}
