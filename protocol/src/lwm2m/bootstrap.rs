//! What does a device ask its bootstrap server, and what does the server answer with? (LwM2M Core
//! 1.2 sections 6.1.7 and 6.3)
//!
//! A device requests its bootstrap with `POST /bs`. The server then deletes, discovers and writes
//! objects of the device, which are always below its root, and finishes with `POST /bs` to the
//! device.

use std::collections::BTreeSet;

use thiserror::Error;

use super::links::discovery;
use super::operation::{self, ExchangeLabel, PlannedWrite};
use super::path::Path;
use super::payload::formats::WriteMethod;
use super::payload::{self, Reading, Unencodable};
use super::registration::ENDPOINT_BYTES_MAX;
use crate::coap::code::Code;
use crate::coap::content::ContentFormat;
use crate::coap::message::{Message, MessageKind};

/// The object of the accounts: how each server is reached, and with which keys.
pub const SECURITY_OBJECT: u16 = 0;

/// The object of the servers: lifetimes, bindings.
pub const SERVER_OBJECT: u16 = 1;

/// The formats of the values of an instance, those that most devices read first.
const FORMATS: [ContentFormat; 5] = [
    ContentFormat::LWM2M_TLV,
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_JSON,
    ContentFormat::LWM2M_CBOR,
];

/// A decoded Bootstrap-Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapRequest {
    /// The endpoint name of the device, if it names itself.
    pub endpoint: Option<Box<str>>,
    /// The format in which it prefers to be written, if that is one of several values.
    pub preferred: Option<ContentFormat>,
}

/// Why a Bootstrap-Request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BootstrapRefusal {
    /// The endpoint name is too long.
    #[error("the endpoint name is longer than {ENDPOINT_BYTES_MAX} bytes")]
    EndpointTooLong,
    /// A parameter that may occur once is repeated.
    #[error("a parameter is given twice")]
    Repeated,
}

impl BootstrapRequest {
    /// Reads the Uri-Query options of `POST /bs`. Unknown parameters are skipped, and so is a
    /// preferred format that no values are written in.
    pub fn decode<'a>(
        queries: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, BootstrapRefusal> {
        let (mut endpoint, mut preferred) = (None, None);
        for query in queries {
            let (name, value) = query.split_once('=').unwrap_or((query, ""));
            let place = match name {
                "ep" => &mut endpoint,
                "pct" => &mut preferred,
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(BootstrapRefusal::Repeated);
            }
        }
        let endpoint = endpoint.filter(|name| !name.is_empty());
        if endpoint.is_some_and(|name| name.len() > ENDPOINT_BYTES_MAX) {
            return Err(BootstrapRefusal::EndpointTooLong);
        }
        let preferred = preferred.and_then(|number| number.parse().ok().map(ContentFormat));
        Ok(Self {
            endpoint: endpoint.map(Into::into),
            preferred: preferred.filter(|format| FORMATS.contains(format)),
        })
    }

    /// Writes the Uri-Query options.
    pub fn queries(&self) -> Vec<String> {
        let endpoint = self.endpoint.iter().map(|name| format!("ep={name}"));
        let preferred = self.preferred.iter().map(|it| format!("pct={}", it.0));
        endpoint.chain(preferred).collect()
    }
}

/// The formats to write in, in the order in which they are tried.
pub fn formats_to_write(preferred: Option<ContentFormat>) -> impl Iterator<Item = ContentFormat> {
    let others = FORMATS.into_iter();
    preferred
        .into_iter()
        .chain(others.filter(move |format| Some(*format) != preferred))
}

/// Deletes everything but the account of the bootstrap server (Bootstrap-Delete of `/`).
pub fn delete_all(label: ExchangeLabel) -> Message {
    request(label, Code::DELETE)
}

/// Lists the instances of an object (Bootstrap-Discover).
pub fn discover(label: ExchangeLabel, object: u16) -> Message {
    operation::discover(label, "", Path::object(object))
}

/// Writes an instance, which the device creates if it does not have it (Bootstrap-Write).
pub fn write(
    label: ExchangeLabel,
    instance: Path,
    values: &Reading,
    format: ContentFormat,
) -> Result<Message, Unencodable> {
    let planned = PlannedWrite {
        method: WriteMethod::Replace,
        target: instance,
        format,
        payload: payload::encode(format, instance, values)?,
    };
    Ok(operation::write(label, "", planned))
}

/// Tells the device that it has everything (Bootstrap-Finish).
pub fn finish(label: ExchangeLabel) -> Message {
    request(label, Code::POST).with_uri_path(["bs"])
}

/// The instances that the answer to a Bootstrap-Discover lists; none if it is no list.
pub fn instances_in(object: u16, payload: &[u8]) -> BTreeSet<u16> {
    let links = discovery::decode("", Path::object(object), payload);
    let links = links.unwrap_or_default();
    links
        .iter()
        .filter_map(|it| it.path.instance_id())
        .collect()
}

fn request(label: ExchangeLabel, code: Code) -> Message {
    let ExchangeLabel { message_id, token } = label;
    Message::request(MessageKind::Confirmable, code, message_id, token)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_request_has_the_name_and_the_preferred_format_of_the_device() {
        for (queries, endpoint, preferred) in [
            (&["ep=meter", "pct=112"][..], Some("meter"), Some(112)),
            (&["pct=110", "ep=a=b", "x=1"], Some("a=b"), Some(110)),
            (&["ep=meter"], Some("meter"), None),
            (&["ep="], None, None),
            (&["ep=meter", "pct=0"], Some("meter"), None),
            (&["ep=meter", "pct=soon"], Some("meter"), None),
            (&["pct=99999999"], None, None),
        ] {
            let read = BootstrapRequest::decode(queries.iter().copied()).unwrap();
            assert_eq!(read.endpoint.as_deref(), endpoint, "{queries:?}");
            assert_eq!(read.preferred.map(|it| it.0), preferred, "{queries:?}");
        }
    }

    #[test]
    fn a_request_that_is_ambiguous_or_too_long_is_refused() {
        let twice = BootstrapRequest::decode(["ep=a", "ep=b"]);
        assert_eq!(twice, Err(BootstrapRefusal::Repeated));
        let long = format!("ep={}", "x".repeat(ENDPOINT_BYTES_MAX + 1));
        let long = BootstrapRequest::decode([long.as_str()]);
        assert_eq!(long, Err(BootstrapRefusal::EndpointTooLong));
    }

    #[test]
    fn the_preferred_format_is_tried_first_and_each_once() {
        let formats: Vec<u16> = formats_to_write(Some(ContentFormat::SENML_JSON))
            .map(|it| it.0)
            .collect();
        assert_eq!(formats, [110, 11542, 112, 11543, 11544]);
        let first = formats_to_write(None).next();
        assert_eq!(first, Some(ContentFormat::LWM2M_TLV));
    }

    #[test]
    fn the_account_of_the_bootstrap_server_is_among_the_instances_listed() {
        let listed = br#"</>;lwm2m=1.1,</0>;ver=1.1,</0/2>;uri="coaps://bs.example",</0/7>;ssid=1"#;
        assert_eq!(instances_in(0, listed), BTreeSet::from([2, 7]));
        assert_eq!(instances_in(0, b"no list"), BTreeSet::new());
    }

    proptest! {
        #[test]
        fn any_request_is_read_or_refused(queries in vec("\\PC{0,12}", 0..4)) {
            let _ = BootstrapRequest::decode(queries.iter().map(String::as_str));
        }

        #[test]
        fn a_request_survives_its_queries(name in "[a-z:=0-9]{1,20}", format in 0..FORMATS.len()) {
            let request = BootstrapRequest {
                endpoint: Some(name.into()),
                preferred: FORMATS.get(format).copied(),
            };
            let queries = request.queries();
            let read = BootstrapRequest::decode(queries.iter().map(String::as_str));
            prop_assert_eq!(read, Ok(request));
        }

        #[test]
        fn any_answer_to_a_discover_is_read(payload in vec(any::<u8>(), 0..64)) {
            let _ = instances_in(0, &payload);
        }
    }
}
