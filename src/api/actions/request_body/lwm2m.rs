//! How is an LwM2M request parsed? (seed 4.2)

use engine::action::parse::lwm2m::{Lwm2mDraft, Lwm2mFault, Lwm2mField};
use engine::action::{Lwm2mRequest, Operation};

use super::{given, text};
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// The request, unless it has faults. Its text has at most `bytes_max` bytes.
pub(super) fn request(fields: &mut Fields, bytes_max: usize) -> Option<Lwm2mRequest> {
    let operation = fields.required("action", Operation::read);
    let address = text(fields, "resourceAddress");
    let data = given(fields, "data", |text| Ok(text.to_owned()));
    let draft = Lwm2mDraft {
        operation,
        address: address.as_deref(),
        data: data.as_deref(),
    };
    draft.read(bytes_max).unwrap_or_else(|faults| {
        for fault in faults {
            fields.fault(field_of(fault), wrong(fault));
        }
        None
    })
}

fn field_of(fault: Lwm2mFault) -> &'static str {
    match fault.part() {
        Lwm2mField::Address => "resourceAddress",
        Lwm2mField::Data => "data",
    }
}

fn wrong(fault: Lwm2mFault) -> FieldFault {
    match fault {
        Lwm2mFault::DataMissing => FieldFault::required(fault),
        Lwm2mFault::Address(_)
        | Lwm2mFault::NoResource
        | Lwm2mFault::ResourceInstance
        | Lwm2mFault::DataUnwanted
        | Lwm2mFault::DataTooLong { .. } => fault.into(),
    }
}
