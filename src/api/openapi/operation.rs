//! How is an operation described? Its parameters, its body and every response.
//!
//! Each resource describes what is specific to it. `rules` adds what all routes of a kind share:
//! credentials, path parameters, and the responses of an overloaded service.

use std::collections::BTreeMap;

use super::schema::Schema;
use crate::api::error::described::error_of;

/// JSON.
pub(in crate::api) const JSON: &str = "application/json";

const RETRY_AFTER: &str = "Retry-After";

/// The group an operation belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::api) enum Tag {
    /// Tokens.
    Tokens,
    /// Devices.
    Devices,
    /// Action requests.
    Actions,
    /// Firmware images and campaigns.
    Firmware,
    /// The administration log.
    Log,
    /// Cloud integrations.
    Clouds,
    /// Plugins of partners.
    Plugins,
    /// SMS.
    Sms,
    /// SMS, for the network.
    Network,
    /// Settings.
    Settings,
    /// Customers and their clients.
    Customers,
    /// The service as a whole.
    Service,
}

/// One operation.
#[derive(Debug)]
pub(in crate::api) struct ApiOperation {
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    pub(super) summary: &'static str,
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<RequestBodySpec>,
    pub(super) answers: BTreeMap<u16, Response>,
    /// Codes of a 400 response that other operations do not have.
    pub(super) faults: Vec<&'static str>,
    /// Credentials other than those that the access of the route requires.
    pub(super) credentials: Option<SecurityScheme>,
    /// Whether it uses the store or a device.
    pub(super) can_fail: bool,
}

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum ParameterLocation {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// Among the headers.
    Header,
}

/// A parameter in the path, the query or a header.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) place: ParameterLocation,
    pub(super) name: &'static str,
    pub(super) need: Presence,
    pub(super) schema: Schema,
    pub(super) why: String,
}

/// Whether a parameter is required.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// It is required.
    Required,
    /// It is optional.
    Optional,
}

/// A request body.
#[derive(Debug)]
pub(super) struct RequestBodySpec {
    pub(super) why: &'static str,
    pub(super) media: Vec<(&'static str, Schema)>,
}

/// A response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) why: String,
    pub(super) headers: Vec<ResponseHeader>,
    pub(super) media: Vec<(&'static str, Schema)>,
    pub(super) links: Vec<Link>,
}

/// A header of a response.
#[derive(Debug)]
pub(super) struct ResponseHeader {
    pub(super) name: &'static str,
    pub(super) need: Presence,
    pub(super) schema: Schema,
    pub(super) why: &'static str,
}

/// Another operation that takes parameters from a response.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) operation: &'static str,
    /// The names of its parameters, and runtime expressions for their values.
    pub(super) parameters: Vec<(&'static str, &'static str)>,
}

/// Credentials beside bearer tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SecurityScheme {
    /// The id and the secret of a client, in the header or in the body.
    ClientSecret,
}

impl ApiOperation {
    /// An operation with its id, tag and summary.
    pub(in crate::api) fn new(id: &'static str, tag: Tag, summary: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            description: String::new(),
            parameters: Vec::new(),
            body: None,
            answers: BTreeMap::new(),
            faults: Vec::new(),
            credentials: None,
            can_fail: true,
        }
    }

    /// Whether it reads a body.
    #[cfg(test)]
    pub(in crate::api) fn reads(&self) -> bool {
        self.body.is_some()
    }

    /// With a description.
    pub(in crate::api) fn description(self, text: impl Into<String>) -> Self {
        Self {
            description: text.into(),
            ..self
        }
    }

    /// With an optional query parameter.
    pub(in crate::api) fn query(self, name: &'static str, schema: Schema, why: &str) -> Self {
        self.parameter(
            ParameterLocation::Query,
            name,
            Presence::Optional,
            schema,
            why,
        )
    }

    /// With a required query parameter.
    pub(in crate::api) fn needed_query(
        self,
        name: &'static str,
        schema: Schema,
        why: &str,
    ) -> Self {
        self.parameter(
            ParameterLocation::Query,
            name,
            Presence::Required,
            schema,
            why,
        )
    }

    /// With an optional request header.
    pub(in crate::api) fn header(self, name: &'static str, schema: Schema, why: &str) -> Self {
        self.parameter(
            ParameterLocation::Header,
            name,
            Presence::Optional,
            schema,
            why,
        )
    }

    /// With a required JSON body.
    pub(in crate::api) fn json(self, schema: Schema, why: &'static str) -> Self {
        self.body(vec![(JSON, schema)], why)
    }

    /// With a required body in one of these media types.
    pub(in crate::api) fn body(
        self,
        media: Vec<(&'static str, Schema)>,
        why: &'static str,
    ) -> Self {
        Self {
            body: Some(RequestBodySpec { why, media }),
            ..self
        }
    }

    /// With a JSON response.
    pub(in crate::api) fn answer(self, status: u16, schema: Schema, why: &str) -> Self {
        self.answer_in(status, vec![(JSON, schema)], why)
    }

    /// With a response without a body.
    pub(in crate::api) fn answer_empty(self, status: u16, why: &str) -> Self {
        self.answer_in(status, Vec::new(), why)
    }

    /// With a response in one of these media types.
    pub(in crate::api) fn answer_in(
        mut self,
        status: u16,
        media: Vec<(&'static str, Schema)>,
        why: &str,
    ) -> Self {
        let answer = Response {
            why: why.to_owned(),
            headers: Vec::new(),
            media,
            links: Vec::new(),
        };
        let known = self.answers.insert(status, answer);
        assert!(known.is_none(), "{}: {status} is described twice", self.id);
        self
    }

    /// With a header of a response that was added before.
    pub(in crate::api) fn answer_header(
        self,
        status: u16,
        name: &'static str,
        schema: Schema,
        why: &'static str,
    ) -> Self {
        self.with_header(
            status,
            ResponseHeader {
                name,
                need: Presence::Required,
                schema,
                why,
            },
        )
    }

    /// With the header that names the accepted authentication scheme.
    pub(in crate::api) fn challenged(self, status: u16) -> Self {
        let why = "The accepted authentication scheme (RFC 6750 section 3).";
        self.answer_header(status, "WWW-Authenticate", Schema::text(), why)
    }

    /// With a `Retry-After` header.
    pub(in crate::api) fn retried(self, status: u16) -> Self {
        let why = "Seconds to wait before the next attempt.";
        self.answer_header(status, RETRY_AFTER, Schema::count(), why)
    }

    /// With a `Retry-After` header that some of the responses have.
    pub(in crate::api) fn retried_sometimes(self, status: u16) -> Self {
        let header = ResponseHeader {
            name: RETRY_AFTER,
            need: Presence::Optional,
            schema: Schema::count(),
            why: "Seconds to wait before the next attempt. Absent if a retry cannot succeed.",
        };
        self.with_header(status, header)
    }

    /// With links to operations that take parameters from a response that was added before.
    pub(in crate::api) fn leads_to(
        mut self,
        status: u16,
        operations: &[&'static str],
        parameters: &[(&'static str, &'static str)],
    ) -> Self {
        let answer = self.answers.get_mut(&status);
        let answer = answer.expect("an answer is described before its links");
        answer.links.extend(operations.iter().map(|operation| Link {
            operation,
            parameters: parameters.to_vec(),
        }));
        self
    }

    /// With an error response and its codes; the description lists the codes it does not explain.
    pub(in crate::api) fn refusal(self, status: u16, codes: &[&'static str], why: &str) -> Self {
        let codes_of_it = codes.iter().map(|code| format!("`{code}`"));
        let unexplained: Vec<_> = codes_of_it.filter(|code| !why.contains(code)).collect();
        let why = match unexplained.is_empty() {
            true => why.to_owned(),
            false => format!("{why} Codes: {}.", unexplained.join(", ")),
        };
        self.answer(status, error_of(codes), &why)
    }

    /// With codes of a 400 response that other operations do not have.
    pub(in crate::api) fn faults(self, faults: &[&'static str]) -> Self {
        Self {
            faults: faults.to_vec(),
            ..self
        }
    }

    /// The credentials are the id and the secret of a client.
    pub(in crate::api) fn by_client_secret(self) -> Self {
        Self {
            credentials: Some(SecurityScheme::ClientSecret),
            ..self
        }
    }

    /// It uses neither the store nor a device.
    pub(in crate::api) fn never_fails(self) -> Self {
        Self {
            can_fail: false,
            ..self
        }
    }

    fn with_header(mut self, status: u16, header: ResponseHeader) -> Self {
        let answer = self.answers.get_mut(&status);
        let answer = answer.expect("an answer is described before its headers");
        answer.headers.push(header);
        self
    }

    pub(super) fn parameter(
        mut self,
        place: ParameterLocation,
        name: &'static str,
        need: Presence,
        schema: Schema,
        why: &str,
    ) -> Self {
        self.parameters.push(Parameter {
            place,
            name,
            need,
            schema,
            why: why.to_owned(),
        });
        self
    }
}

impl Tag {
    /// Every tag, in the order of a first use.
    pub(in crate::api) const ALL: [Self; 12] = [
        Self::Customers,
        Self::Tokens,
        Self::Devices,
        Self::Actions,
        Self::Firmware,
        Self::Log,
        Self::Clouds,
        Self::Plugins,
        Self::Sms,
        Self::Settings,
        Self::Network,
        Self::Service,
    ];

    /// The name of the tag.
    pub(in crate::api) fn name(self) -> &'static str {
        match self {
            Self::Customers => "Customers",
            Self::Tokens => "Tokens",
            Self::Devices => "Devices",
            Self::Actions => "Actions",
            Self::Firmware => "Firmware",
            Self::Log => "Administration log",
            Self::Clouds => "Cloud integrations",
            Self::Plugins => "Partner plugins",
            Self::Sms => "SMS",
            Self::Network => "Network",
            Self::Settings => "Settings",
            Self::Service => "Service",
        }
    }

    /// The description of the tag.
    pub(in crate::api) fn description(self) -> &'static str {
        match self {
            Self::Customers => {
                "The operator API: manage customers and the API clients of each customer."
            }
            Self::Tokens => "Exchange API client credentials for an access token.",
            Self::Devices => "Manage devices, inspect their state and read their messages.",
            Self::Actions => {
                "Action requests: send a datagram, a CoAP request or an LwM2M operation to a \
                 device, poll for the result, and cancel requests that are still scheduled."
            }
            Self::Firmware => {
                "Store firmware images, and have devices install them in campaigns: a few at a \
                 time, halted when too many fail."
            }
            Self::Log => "Errors and notable events of a customer's devices and integrations.",
            Self::Clouds => {
                "Webhooks deliver device events to your systems. The schemas of the events are \
                 `WebhookTelemetryData`, `WebhookLifecycle`, `WebhookError`, \
                 `WebhookActionResult` and `WebhookTestMessage`."
            }
            Self::Plugins => {
                "A plugin forwards every event of your devices to a partner, in the format of \
                 webhook events. Installing it shares the data of all your devices with that \
                 partner."
            }
            Self::Sms => {
                "Send SMS to devices, read the SMS of a SIM, and have SMS of devices and delivery \
                 reports forwarded to your endpoint."
            }
            Self::Network => {
                "The network side of SMS: hand in SMS of devices and delivery reports, with the \
                 token of the operator or of an API client of the network; take SMS to devices; \
                 manage the API clients of the network."
            }
            Self::Settings => "Settings and LwM2M object definitions of a customer.",
            Self::Service => "Health, metrics and documentation of the service.",
        }
    }
}
