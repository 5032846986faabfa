//! How is an operation described? What a caller may send, and every answer it may be given.
//!
//! A resource says here what is its own. What holds for every route of a kind (who may call, what
//! its path names, that the service may be busy) is added by `rules`.

use std::collections::BTreeMap;

use super::schema::Schema;
use crate::api::error::described::error_of;

/// JSON.
pub(in crate::api) const JSON: &str = "application/json";

const RETRY_AFTER: &str = "Retry-After";

/// What an operation is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::api) enum Tag {
    /// Tokens.
    Tokens,
    /// Devices.
    Devices,
    /// Action requests.
    Actions,
    /// The administration log.
    Log,
    /// Cloud integrations.
    Clouds,
    /// Settings.
    Settings,
    /// Customers and their clients.
    Customers,
    /// The service as a whole.
    Service,
}

/// One operation.
#[derive(Debug)]
pub(in crate::api) struct Operation {
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    pub(super) summary: &'static str,
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) answers: BTreeMap<u16, Answer>,
    /// What may be wrong beside what may be wrong everywhere.
    pub(super) faults: Vec<&'static str>,
    /// Credentials other than those that the access of the route says.
    pub(super) credentials: Option<Credentials>,
    /// Whether it asks anything of the store or of a device.
    pub(super) can_fail: bool,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// Among the headers.
    Header,
}

/// Something a caller says beside the body.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) place: Place,
    pub(super) name: &'static str,
    pub(super) need: Need,
    pub(super) schema: Schema,
    pub(super) why: String,
}

/// Whether a parameter has to be there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Need {
    /// It does.
    Required,
    /// It does not.
    Optional,
}

/// A body that is sent.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) why: &'static str,
    pub(super) media: Vec<(&'static str, Schema)>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) why: String,
    pub(super) headers: Vec<Header>,
    pub(super) media: Vec<(&'static str, Schema)>,
    pub(super) links: Vec<Link>,
}

/// A header of an answer.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) need: Need,
    pub(super) schema: Schema,
    pub(super) why: &'static str,
}

/// Another operation that takes something of an answer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) operation: &'static str,
    /// Names of its parameters, and where their values are.
    pub(super) parameters: Vec<(&'static str, &'static str)>,
}

/// Credentials beside bearer tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Credentials {
    /// The id and the secret of a client, in the header or in the body.
    ClientSecret,
}

impl Operation {
    /// An operation with a name for programs and one for people.
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

    /// Its name for programs.
    #[cfg(test)]
    pub(in crate::api) fn id(&self) -> &'static str {
        self.id
    }

    /// Whether it reads a body.
    #[cfg(test)]
    pub(in crate::api) fn reads(&self) -> bool {
        self.body.is_some()
    }

    /// With what a caller should know.
    pub(in crate::api) fn description(self, text: impl Into<String>) -> Self {
        Self {
            description: text.into(),
            ..self
        }
    }

    /// With a parameter of the query that may be there.
    pub(in crate::api) fn query(self, name: &'static str, schema: Schema, why: &str) -> Self {
        self.parameter(Place::Query, name, Need::Optional, schema, why)
    }

    /// With a parameter of the query that must be there.
    pub(in crate::api) fn needed_query(
        self,
        name: &'static str,
        schema: Schema,
        why: &str,
    ) -> Self {
        self.parameter(Place::Query, name, Need::Required, schema, why)
    }

    /// With a header that may be there.
    pub(in crate::api) fn header(self, name: &'static str, schema: Schema, why: &str) -> Self {
        self.parameter(Place::Header, name, Need::Optional, schema, why)
    }

    /// With a body in JSON that must be there.
    pub(in crate::api) fn json(self, schema: Schema, why: &'static str) -> Self {
        self.body(vec![(JSON, schema)], why)
    }

    /// With a body that must be there, in one of these media types.
    pub(in crate::api) fn body(
        self,
        media: Vec<(&'static str, Schema)>,
        why: &'static str,
    ) -> Self {
        Self {
            body: Some(Body { why, media }),
            ..self
        }
    }

    /// With an answer in JSON.
    pub(in crate::api) fn answer(self, status: u16, schema: Schema, why: &str) -> Self {
        self.answer_in(status, vec![(JSON, schema)], why)
    }

    /// With an answer without a body.
    pub(in crate::api) fn answer_empty(self, status: u16, why: &str) -> Self {
        self.answer_in(status, Vec::new(), why)
    }

    /// With an answer in one of these media types.
    pub(in crate::api) fn answer_in(
        mut self,
        status: u16,
        media: Vec<(&'static str, Schema)>,
        why: &str,
    ) -> Self {
        let answer = Answer {
            why: why.to_owned(),
            headers: Vec::new(),
            media,
            links: Vec::new(),
        };
        let known = self.answers.insert(status, answer);
        assert!(known.is_none(), "{}: {status} is described twice", self.id);
        self
    }

    /// With a header of an answer described before.
    pub(in crate::api) fn answer_header(
        self,
        status: u16,
        name: &'static str,
        schema: Schema,
        why: &'static str,
    ) -> Self {
        self.with_header(
            status,
            Header {
                name,
                need: Need::Required,
                schema,
                why,
            },
        )
    }

    /// With the header that says what credentials would do.
    pub(in crate::api) fn challenged(self, status: u16) -> Self {
        let why = "What credentials would do (RFC 6750 section 3).";
        self.answer_header(status, "WWW-Authenticate", Schema::text(), why)
    }

    /// With the header that says when to come again.
    pub(in crate::api) fn retried(self, status: u16) -> Self {
        let why = "Seconds to wait before the next try.";
        self.answer_header(status, RETRY_AFTER, Schema::count(), why)
    }

    /// With the header that says when to come again, where there is a time.
    pub(in crate::api) fn retried_sometimes(self, status: u16) -> Self {
        let header = Header {
            name: RETRY_AFTER,
            need: Need::Optional,
            schema: Schema::count(),
            why: "Seconds to wait before the next try, where waiting helps.",
        };
        self.with_header(status, header)
    }

    /// With other operations that take something of an answer described before.
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

    /// With a failure in the shape of every other, and the codes it may have.
    pub(in crate::api) fn refusal(self, status: u16, codes: &[&'static str], why: &str) -> Self {
        let named: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
        let why = format!("{why} Codes: {}.", named.join(", "));
        self.answer(status, error_of(codes), &why)
    }

    /// With codes of a 400 that others do not have; the description says when.
    pub(in crate::api) fn faults(self, faults: &[&'static str]) -> Self {
        Self {
            faults: faults.to_vec(),
            ..self
        }
    }

    /// The credentials are the id and the secret of a client.
    pub(in crate::api) fn by_client_secret(self) -> Self {
        Self {
            credentials: Some(Credentials::ClientSecret),
            ..self
        }
    }

    /// It needs nothing that could fail it.
    pub(in crate::api) fn never_fails(self) -> Self {
        Self {
            can_fail: false,
            ..self
        }
    }

    fn with_header(mut self, status: u16, header: Header) -> Self {
        let answer = self.answers.get_mut(&status);
        let answer = answer.expect("an answer is described before its headers");
        answer.headers.push(header);
        self
    }

    pub(super) fn parameter(
        mut self,
        place: Place,
        name: &'static str,
        need: Need,
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
    /// Every tag, in the order in which somebody who begins meets them.
    pub(in crate::api) const ALL: [Self; 8] = [
        Self::Customers,
        Self::Tokens,
        Self::Devices,
        Self::Actions,
        Self::Log,
        Self::Clouds,
        Self::Settings,
        Self::Service,
    ];

    /// What it is called.
    pub(in crate::api) fn name(self) -> &'static str {
        match self {
            Self::Customers => "Customers",
            Self::Tokens => "Tokens",
            Self::Devices => "Devices",
            Self::Actions => "Actions",
            Self::Log => "Administration log",
            Self::Clouds => "Cloud integrations",
            Self::Settings => "Settings",
            Self::Service => "Service",
        }
    }

    /// What it is about.
    pub(in crate::api) fn description(self) -> &'static str {
        match self {
            Self::Customers => {
                "The operator's API: whose devices the service serves, and the API clients that \
                 act for each customer."
            }
            Self::Tokens => "How an API client takes an access token.",
            Self::Devices => {
                "What devices there are, how they are recognised, and what each is doing."
            }
            Self::Actions => {
                "Ask a device to do something, follow the request, take it back while it waits."
            }
            Self::Log => "What happened to a customer's devices that somebody should know.",
            Self::Clouds => {
                "The customer's own systems, which are told what its devices say and do. What is \
                 posted to them is under Schemas: `WebhookTelemetryData`, `WebhookLifecycle`, \
                 `WebhookError`, `WebhookActionResult`, `WebhookTestMessage`."
            }
            Self::Settings => "What a customer switches on and off.",
            Self::Service => "For whoever watches the service.",
        }
    }
}
