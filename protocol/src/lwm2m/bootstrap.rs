//! What does a device ask its bootstrap server, and what does the server answer with? (LwM2M Core
//! 1.2 sections 6.1.7 and 6.3)
//!
//! A device requests its bootstrap with `POST /bs`. The server then deletes, discovers and writes
//! objects of the device, which are always below its root, and finishes with `POST /bs` to the
//! device. Since LwM2M 1.2 a device may request everything at once with `GET /bspack`
//! (Bootstrap-Pack-Request).

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

/// The formats of a Bootstrap-Pack, the one of a request without Accept first.
const PACK_FORMATS: [ContentFormat; 3] = [
    ContentFormat::SENML_CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::LWM2M_CBOR,
];

/// The instances of the object of accounts in which that of the bootstrap server commonly is.
const COMMON_ACCOUNTS: [u16; 2] = [0, 1];

/// A decoded Bootstrap-Request or Bootstrap-Pack-Request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapRequest {
    /// The endpoint name of the device, if it names itself.
    pub endpoint: Option<Box<str>>,
    /// The format in which it prefers to be written, if that is one of several values.
    pub preferred: Option<ContentFormat>,
    /// The instances of the object of accounts in which that of the bootstrap server is, if it says
    /// so, as a Bootstrap-Pack-Request may since 1.2.1.
    pub own_accounts: Option<BTreeSet<u16>>,
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
    /// The instances of the account of the bootstrap server are unreadable.
    #[error("acc is no list of instances, as </0/0>")]
    UnreadableAccounts,
}

impl BootstrapRequest {
    /// Reads the Uri-Query options of `POST /bs` and `GET /bspack`. Unknown parameters are skipped,
    /// and so is a preferred format that no values are written in.
    pub fn decode<'a>(
        queries: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, BootstrapRefusal> {
        let (mut endpoint, mut preferred, mut accounts) = (None, None, None);
        for query in queries {
            let (name, value) = query.split_once('=').unwrap_or((query, ""));
            let place = match name {
                "ep" => &mut endpoint,
                "pct" => &mut preferred,
                "acc" => &mut accounts,
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
            own_accounts: accounts.map(accounts_in).transpose()?,
        })
    }

    /// Whether an instance of the object of accounts may be that of the bootstrap server, which a
    /// Bootstrap-Pack must not replace.
    pub fn may_be_own_account(&self, instance: u16) -> bool {
        match &self.own_accounts {
            Some(own) => own.contains(&instance),
            None => COMMON_ACCOUNTS.contains(&instance),
        }
    }

    /// Writes the Uri-Query options.
    pub fn queries(&self) -> Vec<String> {
        let endpoint = self.endpoint.iter().map(|name| format!("ep={name}"));
        let preferred = self.preferred.iter().map(|it| format!("pct={}", it.0));
        let accounts = self.own_accounts.iter().map(|own| {
            let links = own.iter().map(|it| format!("</{SECURITY_OBJECT}/{it}>"));
            format!("acc={}", links.collect::<Vec<_>>().join(","))
        });
        endpoint.chain(preferred).chain(accounts).collect()
    }
}

/// The formats to write in, in the order in which they are tried.
pub fn formats_to_write(preferred: Option<ContentFormat>) -> impl Iterator<Item = ContentFormat> {
    let others = FORMATS.into_iter();
    preferred
        .into_iter()
        .chain(others.filter(move |format| Some(*format) != preferred))
}

/// The format of a Bootstrap-Pack for a request that accepts this one, if it is one of them.
pub fn pack_format(accept: Option<ContentFormat>) -> Option<ContentFormat> {
    let mut formats = PACK_FORMATS.into_iter();
    formats.find(|format| accept.is_none_or(|accept| accept == *format))
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

/// Reads links to instances without attributes; those of other objects that belong to the account
/// are skipped.
fn accounts_in(links: &str) -> Result<BTreeSet<u16>, BootstrapRefusal> {
    let mut own = BTreeSet::new();
    for link in links.split(',').filter(|link| !link.is_empty()) {
        let path = link.strip_prefix('<').and_then(|it| it.strip_suffix('>'));
        let path = path.and_then(|path| Path::parse(path).ok());
        let path = path.filter(|path| path.resource_id().is_none());
        let instance = path.and_then(|path| Some((path.object_id(), path.instance_id()?)));
        let (object, instance) = instance.ok_or(BootstrapRefusal::UnreadableAccounts)?;
        if object == SECURITY_OBJECT {
            own.insert(instance);
        }
    }
    Ok(own)
}

fn request(label: ExchangeLabel, code: Code) -> Message {
    let ExchangeLabel { message_id, token } = label;
    Message::request(MessageKind::Confirmable, code, message_id, token)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
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
        for accounts in ["acc=0", "acc=</0>", "acc=</0/0/1>", "acc=</0/0>;ssid=1"] {
            let unreadable = BootstrapRequest::decode([accounts]);
            let expected = Err(BootstrapRefusal::UnreadableAccounts);
            assert_eq!(unreadable, expected, "{accounts}");
        }
        let long = format!("ep={}", "x".repeat(ENDPOINT_BYTES_MAX + 1));
        let long = BootstrapRequest::decode([long.as_str()]);
        assert_eq!(long, Err(BootstrapRefusal::EndpointTooLong));
    }

    #[test]
    fn the_account_of_the_bootstrap_server_is_where_the_request_says_or_where_it_commonly_is() {
        let own = |queries: &[&str]| {
            let request = BootstrapRequest::decode(queries.iter().copied()).unwrap();
            let own = (0..9).filter(|it| request.may_be_own_account(*it));
            own.collect::<Vec<_>>()
        };
        assert_eq!(own(&["ep=meter"]), [0, 1]);
        assert_eq!(own(&["acc=</0/2>,</21/0>"]), [2]);
        assert_eq!(own(&["acc="]), [0; 0]);
    }

    #[test]
    fn a_pack_has_the_format_that_is_accepted_and_none_but_three() {
        assert_eq!(pack_format(None), Some(ContentFormat::SENML_CBOR));
        for format in PACK_FORMATS {
            assert_eq!(pack_format(Some(format)), Some(format));
        }
        assert_eq!(pack_format(Some(ContentFormat::LWM2M_TLV)), None);
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
        fn a_request_survives_its_queries(
            name in "[a-z:=0-9]{1,20}",
            format in 0..FORMATS.len(),
            own in proptest::option::of(btree_set(any::<u16>(), 0..3)),
        ) {
            let request = BootstrapRequest {
                own_accounts: own,
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
