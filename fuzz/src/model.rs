//! Which laws hold for customers' object definitions?

use protocol::lwm2m::model::definition;

use crate::FuzzOutcome;

/// A definition is parsed, or every fault is reported with its place.
pub(crate) fn definition(bytes: &[u8]) -> FuzzOutcome {
    let read = definition::parse(bytes);
    match &read {
        Ok(definition) => {
            let object = definition.object();
            let ids = object.resources().iter().map(|resource| resource.id());
            assert!(ids.is_sorted(), "resources stand by number");
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "a refusal has a reason");
            for fault in faults {
                assert!(fault.line > 0 && fault.column > 0, "a fault has a place");
                assert!(!fault.to_string().is_empty());
            }
        }
    }
    FuzzOutcome::of(&read)
}
