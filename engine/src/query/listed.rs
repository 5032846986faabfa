//! What does a list show of long items? Long data is left out, so that the size of a page is
//! bounded for callers and memory.

use protocol::lwm2m::value::Value;

use crate::action::{Action, Outcome, Request, ResultPayload};
use crate::delivery::backlog::Sequence;
use crate::event::Event;

use crate::limits::LISTED_BYTES_MAX;

/// An action request in a list: data that is too long for a list is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedAction {
    /// The request without what is left out.
    pub action: Action,
    /// What is left out.
    pub omitted: Vec<Omitted>,
}

/// What can be left out of a listed request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Omitted {
    /// Its data.
    RequestData,
    /// The payload of its result.
    ResultPayload,
}

impl ListedAction {
    /// The request as it is listed.
    pub fn of(mut action: Action) -> Self {
        let mut omitted = Vec::new();
        if action.request.data_bytes() > LISTED_BYTES_MAX && omit_data(&mut action.request) {
            omitted.push(Omitted::RequestData);
        }
        if let Some(outcome) = &mut action.outcome
            && payload_bytes(outcome) > LISTED_BYTES_MAX
        {
            outcome.payload = None;
            outcome.payload_type = None;
            omitted.push(Omitted::ResultPayload);
        }
        Self { action, omitted }
    }
}

/// A page of the history of a device, newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryPage {
    /// The events.
    pub events: Vec<Event>,
    /// The number of the event that the next page begins behind; none if nothing older is left.
    pub next: Option<Sequence>,
}

/// Leaves out the data of a request, and returns whether it did: a datagram is nothing but data.
fn omit_data(request: &mut Request) -> bool {
    match request {
        Request::Udp(_) => false,
        Request::Coap(request) => request.content.take().is_some(),
        Request::Lwm2m(request) => {
            request.clear_data();
            true
        }
    }
}

fn payload_bytes(outcome: &Outcome) -> usize {
    match &outcome.payload {
        None => 0,
        Some(ResultPayload::Text(text)) => text.len(),
        Some(ResultPayload::Values(values)) => {
            values.iter().map(|(_, value)| value_bytes(value)).sum()
        }
        Some(ResultPayload::Links(links)) => {
            let parts = links.iter().flat_map(|link| &link.attributes);
            let parts: usize = parts.map(|(name, value)| name.len() + value.len()).sum();
            parts + size_of_val(&**links)
        }
    }
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::CoreLink(text) | Value::String(text) => text.len(),
        Value::Opaque(bytes) => bytes.len(),
        Value::Boolean(_)
        | Value::Float(_)
        | Value::Integer(_)
        | Value::ObjectLink(_)
        | Value::Time(_)
        | Value::UnsignedInteger(_) => size_of::<Value>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{CoapRequest, Content, ContentEncoding, Method, UdpRequest};
    use crate::{Path, PathAndQuery};

    #[test]
    fn long_data_is_left_out_and_named() {
        let long = "x".repeat(LISTED_BYTES_MAX + 1);
        let content = |text: &str| Content::parse(ContentEncoding::String, text).unwrap();
        let coap = |text: &str| {
            Request::Coap(CoapRequest {
                method: Method::Put,
                port: 5683.try_into().unwrap(),
                target: PathAndQuery::parse("/a").unwrap(),
                content: Some(content(text)),
            })
        };
        let mut request = coap(&long);
        assert!(omit_data(&mut request));
        assert_eq!(request.data_bytes(), 0);
        let mut datagram = Request::Udp(UdpRequest {
            content: content(&long),
            port: 5683.try_into().unwrap(),
        });
        assert!(!omit_data(&mut datagram));
        assert_eq!(datagram.data_bytes(), long.len());
        let payload = |payload| Outcome {
            payload: Some(payload),
            ..Outcome::default()
        };
        let values = Box::from([(Path::resource(5, 0, 0), Value::Opaque(vec![0; 5_000]))]);
        assert_eq!(payload_bytes(&payload(long.as_str().into())), long.len());
        assert_eq!(
            payload_bytes(&payload(ResultPayload::Values(values))),
            5_000
        );
    }
}
