//! What must hold for a codec whatever its input is?
//!
//! Each target is a plain function: it decodes, and panics where a law is broken. libFuzzer drives
//! it with a nightly compiler, the short run with any. A target returns whether the bytes decoded,
//! so that a run shows that it reaches the decoder.

mod coap;
mod dtls_endpoint;
mod model;
mod payload;
mod script;
mod sending;
mod smpp;
mod taking;
mod types;

/// The result of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzOutcome {
    /// The bytes decoded.
    Read,
    /// The bytes were rejected.
    Refused,
}

/// One codec, or a few that share an input.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its libFuzzer program and of its corpus.
    pub name: &'static str,
    /// Decodes, and panics where a law is broken.
    pub run: fn(&[u8]) -> FuzzOutcome,
}

/// Every target.
pub const TARGETS: [Target; 18] = [
    Target {
        name: "coap_message",
        run: coap::message,
    },
    Target {
        name: "coap_blocks_sent",
        run: sending::blocks_sent,
    },
    Target {
        name: "coap_blocks_taken",
        run: taking::blocks_taken,
    },
    Target {
        name: "link_format",
        run: coap::links,
    },
    Target {
        name: "text_and_opaque",
        run: payload::text_and_opaque,
    },
    Target {
        name: "tlv",
        run: payload::tlv,
    },
    Target {
        name: "lwm2m_json",
        run: payload::lwm2m_json,
    },
    Target {
        name: "cbor",
        run: payload::cbor,
    },
    Target {
        name: "senml_json",
        run: payload::senml_json,
    },
    Target {
        name: "senml_cbor",
        run: payload::senml_cbor,
    },
    Target {
        name: "lwm2m_cbor",
        run: payload::lwm2m_cbor,
    },
    Target {
        name: "object_definition",
        run: model::definition,
    },
    Target {
        name: "dtls_records",
        run: |bytes| FuzzOutcome::read_if(dtls::fuzzing::records(bytes)),
    },
    Target {
        name: "dtls_handshake_messages",
        run: |bytes| FuzzOutcome::read_if(dtls::fuzzing::handshake_messages(bytes)),
    },
    Target {
        name: "dtls_kept_sessions",
        run: |bytes| FuzzOutcome::read_if(dtls::fuzzing::kept_sessions(bytes)),
    },
    Target {
        name: "dtls_server",
        run: dtls_endpoint::server,
    },
    Target {
        name: "dtls_conversation",
        run: dtls_endpoint::conversation,
    },
    Target {
        name: "smpp",
        run: smpp::pdu,
    },
];

/// Runs the target with this name.
///
/// # Panics
///
/// If there is no such target, or a law is broken.
pub fn run(name: &str, bytes: &[u8]) -> FuzzOutcome {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of that name").run)(bytes)
}

impl FuzzOutcome {
    /// The outcome of a decoder's result.
    fn of<T, E>(decoded: &Result<T, E>) -> Self {
        if decoded.is_ok() {
            Self::Read
        } else {
            Self::Refused
        }
    }

    /// `Read` if something was.
    fn read_if(is_read: bool) -> Self {
        if is_read { Self::Read } else { Self::Refused }
    }

    /// `Read` if one of the two is.
    fn or(self, other: Self) -> Self {
        match self {
            Self::Read => Self::Read,
            Self::Refused => other,
        }
    }
}
