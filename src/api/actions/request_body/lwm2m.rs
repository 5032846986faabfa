//! How is an LwM2M request parsed? (seed 4.2)

use serde_json::Value;

use engine::action::parse::lwm2m::{Lwm2mDraft, Lwm2mFault, Lwm2mField, RawData};
use engine::action::{Lwm2mRequest, Operation};

use super::{given, present};
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// The data of a request: a string, or values by name.
enum GivenData {
    Text(String),
    Values(Vec<(String, String)>),
}

/// The request, unless it has faults. Its data has at most `bytes_max` bytes.
pub(super) fn request(fields: &mut Fields, bytes_max: usize) -> Option<Lwm2mRequest> {
    let operation = fields.required("action", Operation::read);
    let address = given(fields, "resourceAddress", |text| Ok(text.to_owned()));
    let addresses = present(fields, "resourceAddresses", |fields, name| {
        fields.texts(name, |texts| Ok::<_, String>(texts.to_vec()))
    });
    let data = present(fields, "data", data);
    let attributes = present(fields, "attributes", |fields, name| {
        fields.values_by_name(name, |name, value| {
            let text = (!value.is_null()).then(|| scalar(value)).transpose()?;
            Ok((name.to_owned(), text))
        })
    });
    let replace = present(fields, "replace", Fields::truth);
    let draft = Lwm2mDraft {
        operation,
        address: address.as_deref(),
        addresses: addresses.as_ref().map(Vec::as_slice),
        data: data.as_ref().map(|data| match data {
            GivenData::Text(text) => RawData::Text(text),
            GivenData::Values(values) => RawData::Values(values),
        }),
        attributes: attributes.as_ref().map(Vec::as_slice),
        replace,
    };
    draft.read(bytes_max).unwrap_or_else(|faults| {
        for fault in faults {
            fields.fault(&field_of(&fault), wrong(fault));
        }
        None
    })
}

fn data(fields: &mut Fields, name: &str) -> Option<GivenData> {
    if !fields.has_object(name) {
        let text = fields.optional(name, |text| Ok::<_, String>(text.to_owned()));
        return text.map(GivenData::Text);
    }
    let values = fields.values_by_name(name, |name, value| {
        scalar(value).map(|text| (name.to_owned(), text))
    });
    values.map(GivenData::Values)
}

/// A value in the form that callers write as a string.
fn scalar(value: &Value) -> Result<String, FieldFault> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(FieldFault::wrong_type("a string, a number or a boolean"))
        }
    }
}

fn field_of(fault: &Lwm2mFault) -> String {
    match fault.part() {
        Lwm2mField::Address => "resourceAddress".to_owned(),
        Lwm2mField::Addresses(None) => "resourceAddresses".to_owned(),
        Lwm2mField::Addresses(Some(place)) => format!("resourceAddresses[{place}]"),
        Lwm2mField::Data(None) => "data".to_owned(),
        Lwm2mField::Data(Some(name)) => format!("data.{name}"),
        Lwm2mField::Attributes(None) => "attributes".to_owned(),
        Lwm2mField::Attributes(Some(name)) => format!("attributes.{name}"),
        Lwm2mField::Replace => "replace".to_owned(),
    }
}

fn wrong(fault: Lwm2mFault) -> FieldFault {
    match fault {
        Lwm2mFault::Missing(_) => FieldFault::required(fault),
        Lwm2mFault::Count(_) => FieldFault::out_of_range(fault),
        Lwm2mFault::Repeated(_) | Lwm2mFault::Overlap(_) => FieldFault::repeated_item(fault),
        Lwm2mFault::NoText => FieldFault::wrong_type("a string"),
        Lwm2mFault::NoValues => FieldFault::wrong_type("an object of values"),
        Lwm2mFault::Unwanted(_)
        | Lwm2mFault::Address(..)
        | Lwm2mFault::Level(_)
        | Lwm2mFault::DataTooLong { .. }
        | Lwm2mFault::ResourceName(_)
        | Lwm2mFault::ValuePath(_)
        | Lwm2mFault::Attribute(_)
        | Lwm2mFault::AttributeLevel(_) => fault.into(),
    }
}
