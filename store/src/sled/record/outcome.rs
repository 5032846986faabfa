//! How is the outcome of a request stored, with the request and in its event?

use engine::action::{Outcome, ResultPayload};
use minicbor::{Decode, Encode};

use super::value::{NamedValueV1, named_value_records, read_named_value};
use super::{Unreadable, code};

/// The outcome of a request.
#[derive(Decode, Encode)]
#[cbor(array)]
pub(super) struct OutcomeV1<'a> {
    #[b(0)]
    code: Option<&'a str>,
    #[b(1)]
    payload: Option<&'a str>,
    #[n(2)]
    payload_type: Option<u8>,
    #[b(3)]
    error: Option<&'a str>,
    /// A payload of several values; a text is in `payload`.
    #[n(4)]
    values: Option<Vec<NamedValueV1>>,
}

/// An outcome, as part of a record.
pub(super) fn outcome_record(outcome: &Outcome) -> OutcomeV1<'_> {
    let (payload, values) = match &outcome.payload {
        None => (None, None),
        Some(ResultPayload::Text(text)) => (Some(&**text), None),
        Some(ResultPayload::Values(values)) => (None, Some(named_value_records(values))),
    };
    OutcomeV1 {
        code: outcome.code.as_deref(),
        payload,
        values,
        payload_type: outcome.payload_type.map(code::of_payload_type),
        error: outcome.error.as_deref(),
    }
}

/// Reads an outcome.
pub(super) fn read_outcome(record: OutcomeV1<'_>) -> Result<Outcome, Unreadable> {
    let values = record.values.map(read_named_value).transpose()?;
    let text = record.payload.map(|text| ResultPayload::Text(text.into()));
    Ok(Outcome {
        code: record.code.map(Into::into),
        payload: text.or(values.map(ResultPayload::Values)),
        payload_type: record.payload_type.map(code::payload_type).transpose()?,
        error: record.error.map(Into::into),
    })
}
