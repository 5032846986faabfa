//! How is the outcome of a request stored, with the request and in its event?

use engine::action::{Outcome, ResultPayload};
use engine::discovery;
use minicbor::{Decode, Encode};

use super::value::{NamedValueV1, named_value_records, read_named_value};
use super::{Unreadable, code, damaged};

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
    /// What a device lists, in the CoRE link format.
    #[n(5)]
    links: Option<String>,
}

/// An outcome, as part of a record.
pub(super) fn outcome_record(outcome: &Outcome) -> OutcomeV1<'_> {
    let (payload, values, links) = match &outcome.payload {
        None => (None, None, None),
        Some(ResultPayload::Text(text)) => (Some(&**text), None, None),
        Some(ResultPayload::Values(values)) => (None, Some(named_value_records(values)), None),
        Some(ResultPayload::Links(links)) => (None, None, Some(discovery::encode(links))),
    };
    OutcomeV1 {
        code: outcome.code.as_deref(),
        payload,
        values,
        links,
        payload_type: outcome.payload_type.map(code::of_payload_type),
        error: outcome.error.as_deref(),
    }
}

/// Reads an outcome.
pub(super) fn read_outcome(record: OutcomeV1<'_>) -> Result<Outcome, Unreadable> {
    let values = record.values.map(read_named_value).transpose()?;
    let links = record.links.map(|text| {
        let links = discovery::decode_all(text.as_bytes());
        links.map_err(damaged("no list of links"))
    });
    let links = links
        .transpose()?
        .map(|links| ResultPayload::Links(links.into()));
    let text = record.payload.map(|text| ResultPayload::Text(text.into()));
    Ok(Outcome {
        code: record.code.map(Into::into),
        payload: text.or(values.map(ResultPayload::Values)).or(links),
        payload_type: record.payload_type.map(code::payload_type).transpose()?,
        error: record.error.map(Into::into),
    })
}
