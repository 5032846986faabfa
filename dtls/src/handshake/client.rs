//! What does a client say? RFC 5246 section 7.3 and figure 1 of RFC 6347.
//!
//! ```text
//! AwaitServerHello -> AwaitServerHelloDone -> AwaitFinished -> established
//!   |    ^   |  \         ^                                       ^
//!   |    |   |   \-> AwaitCertificate -> AwaitSignedParameters    |
//!   |    |   |              -> AwaitCertificateRequest            |
//!   |    |   \-> AwaitResumedFinished ----------------------------/
//!   \----/ HelloVerifyRequest
//! ```

use zeroize::Zeroizing;

use crate::alert::AlertDescription;
use crate::association::AssociationId;
use crate::cipher_suite::{CipherSuite, KeyExchange, RecordCipher};
use crate::config::{ClientConfig, ConnectionIdOffer};
use crate::connection_id;
use crate::effect::Security;
use crate::identity::Identity;
use crate::key_agreement::{self, EphemeralKey, SECP256R1};
use crate::key_schedule::{MasterSecret, Randoms, Side, psk_premaster};
use crate::moment::{Moment, Timestamp};
use crate::presentation::{Reader, Writer};
use crate::record::VERSION;
use crate::session::{RecordParameters, Session};

use super::certificate::{self, CertificateType, ShownKey};
use super::extension::Extensions;
use super::hello::{self, ClientHello, ClientHelloStart, ServerHello};
use super::message::{Message, MessageType};
use super::resumption::{Resumable, ResumeBy, Resumption};
use super::server::verify_finished;
use super::ticket;
use super::transport::{Proposal, Transport};
use super::{Outcome, Refused, Step};

const UNEXPECTED: Refused = Refused(AlertDescription::UNEXPECTED_MESSAGE);

/// The client's side of one handshake.
#[derive(Debug)]
pub(crate) struct ClientHandshake {
    config: ClientConfig,
    connection_id: Vec<u8>,
    random: [u8; 32],
    session_id: Box<[u8]>,
    state: State,
}

#[derive(Debug)]
enum State {
    AwaitServerHello,
    AwaitCertificate(Negotiated, CertificateType),
    AwaitSignedParameters(Negotiated),
    AwaitCertificateRequest(Negotiated, ServerKey),
    AwaitServerHelloDone(Negotiated, Option<ServerKey>),
    AwaitFinished(Negotiated, Option<Box<[u8]>>),
    AwaitResumedFinished(Negotiated, Resumable, Option<Box<[u8]>>),
    /// A message was refused, or the handshake is over.
    Ended,
}

/// The ephemeral key of the server.
type ServerKey = Box<[u8]>;

/// What both hellos agreed on.
#[derive(Debug)]
struct Negotiated {
    suite: CipherSuite,
    cipher: RecordCipher,
    randoms: Randoms,
    has_extended_master_secret: bool,
    parameters: RecordParameters,
    session_id: Box<[u8]>,
    expects_ticket: bool,
}

impl ClientHandshake {
    /// Begins a handshake; the first flight is in the transport.
    pub(crate) fn begin(
        config: ClientConfig,
        prefix: &[u8],
        association: AssociationId,
        transport: &mut Transport,
        moment: &mut Moment<'_>,
    ) -> Self {
        let session_id = match config.resumption.as_ref().map(|it| &it.by) {
            Some(ResumeBy::SessionId(id)) => id.clone(),
            // RFC 5077 section 3.4: the server repeats it if it accepts the ticket.
            Some(ResumeBy::Ticket(_)) => moment.random::<32>().into(),
            None => Box::default(),
        };
        let connection_id = match config.connection_id {
            ConnectionIdOffer::Own => connection_id::encode(prefix, association),
            ConnectionIdOffer::Empty | ConnectionIdOffer::None => Vec::new(),
        };
        let handshake = Self {
            config,
            connection_id,
            random: moment.random(),
            session_id,
            state: State::AwaitServerHello,
        };
        handshake.push_hello(&[], transport);
        handshake
    }

    pub(crate) fn handle_message(
        &mut self,
        message: &Message,
        transport: &mut Transport,
        moment: &mut Moment<'_>,
    ) -> Result<Step, Refused> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let (state, step) = match (state, message.message_type) {
            (State::AwaitServerHello, MessageType::HelloVerifyRequest) => {
                let cookie = hello::decode_hello_verify_request(&message.body)?;
                transport.restart_transcript();
                transport.begin_flight();
                self.push_hello(cookie, transport);
                (State::AwaitServerHello, Step::SendFlight)
            }
            (State::AwaitServerHello, MessageType::ServerHello) => {
                transport.disarm();
                (self.server_hello(message, transport)?, Step::Wait)
            }
            (State::AwaitCertificate(negotiated, shown_as), MessageType::Certificate) => {
                transport.record(message);
                let shown = ShownKey::decode(shown_as, &message.body)?;
                if shown.public_key != self.config.server_public_key {
                    return Err(Refused(AlertDescription::BAD_CERTIFICATE));
                }
                (State::AwaitSignedParameters(negotiated), Step::Wait)
            }
            (State::AwaitSignedParameters(negotiated), MessageType::ServerKeyExchange) => {
                transport.record(message);
                let known = &self.config.server_public_key;
                let randoms = &negotiated.randoms;
                let key = certificate::decode_signed_parameters(known, randoms, &message.body)?;
                (State::AwaitCertificateRequest(negotiated, key), Step::Wait)
            }
            (State::AwaitCertificateRequest(negotiated, key), MessageType::CertificateRequest) => {
                transport.record(message);
                (
                    State::AwaitServerHelloDone(negotiated, Some(key)),
                    Step::Wait,
                )
            }
            (State::AwaitServerHelloDone(negotiated, None), MessageType::ServerKeyExchange) => {
                transport.record(message);
                let key = server_key(&negotiated, &message.body)?;
                (State::AwaitServerHelloDone(negotiated, key), Step::Wait)
            }
            (State::AwaitServerHelloDone(negotiated, key), MessageType::ServerHelloDone) => {
                transport.record(message);
                self.key_exchange(&negotiated, key, transport, moment)?;
                (State::AwaitFinished(negotiated, None), Step::SendFlight)
            }
            (State::AwaitFinished(negotiated, None), MessageType::NewSessionTicket)
                if negotiated.expects_ticket =>
            {
                transport.record(message);
                let ticket = ticket::decode_new_session_ticket(&message.body)?;
                (
                    State::AwaitFinished(negotiated, Some(ticket.into())),
                    Step::Wait,
                )
            }
            (State::AwaitFinished(negotiated, ticket), MessageType::Finished) => {
                let master = verify_finished(Side::Server, message, transport)?;
                let resumption = self.resumption(&negotiated, ticket, master, moment.now);
                let security = negotiated.security(moment.now);
                (
                    State::Ended,
                    self.establish(transport, security, resumption)?,
                )
            }
            (
                State::AwaitResumedFinished(negotiated, session, None),
                MessageType::NewSessionTicket,
            ) if negotiated.expects_ticket => {
                transport.record(message);
                let ticket = ticket::decode_new_session_ticket(&message.body)?.into();
                let state = State::AwaitResumedFinished(negotiated, session, Some(ticket));
                (state, Step::Wait)
            }
            (State::AwaitResumedFinished(negotiated, session, ticket), MessageType::Finished) => {
                let master = verify_finished(Side::Server, message, transport)?;
                transport.record(message);
                transport.begin_flight();
                let hash = transport.transcript_hash();
                transport.push_finished(master.verify_data(Side::Client, &hash).to_vec());
                let security = Security {
                    is_resumed: true,
                    ..negotiated.security(session.authenticated_at)
                };
                let by = match ticket.filter(|ticket| !ticket.is_empty()) {
                    Some(ticket) => Some(ResumeBy::Ticket(ticket)),
                    None => self.config.resumption.as_ref().map(|it| it.by.clone()),
                };
                let session = Resumable {
                    renewed_at: moment.now,
                    ..session
                };
                let resumption = by.map(|by| Resumption { session, by });
                (
                    State::Ended,
                    self.establish(transport, security, resumption)?,
                )
            }
            (
                State::AwaitServerHello
                | State::AwaitCertificate(..)
                | State::AwaitSignedParameters(..)
                | State::AwaitCertificateRequest(..)
                | State::AwaitServerHelloDone(..)
                | State::AwaitFinished(..)
                | State::AwaitResumedFinished(..)
                | State::Ended,
                _,
            ) => return Err(UNEXPECTED),
        };
        self.state = state;
        Ok(step)
    }

    fn push_hello(&self, cookie: &[u8], transport: &mut Transport) {
        let suites = self.config.cipher_suites.iter();
        let numbers: Vec<u8> = suites
            .flat_map(|suite| suite.number().to_be_bytes())
            .collect();
        let mut suites = self.config.cipher_suites.iter();
        let has_curves = suites.any(|suite| suite.key_exchange() != KeyExchange::Psk);
        let mut suites = self.config.cipher_suites.iter();
        let has_cbc = suites.any(|suite| suite.has_cbc());
        let groups = SECP256R1.to_be_bytes();
        let ticket: &[u8] = match self.config.resumption.as_ref().map(|it| &it.by) {
            Some(ResumeBy::Ticket(ticket)) => ticket,
            Some(ResumeBy::SessionId(_)) | None => &[],
        };
        let has_connection_id = self.config.connection_id != ConnectionIdOffer::None;
        let key = self.config.signing_key.as_ref();
        let of_client = key.map(|key| [1, CertificateType::of(key).number()]);
        // RFC 7250 section 3: the length of the list, then either type.
        let of_server = [
            2,
            CertificateType::RawPublicKey.number(),
            CertificateType::X509.number(),
        ];
        let algorithms = certificate::ECDSA_SHA256.to_be_bytes();
        let hello = ClientHello {
            start: ClientHelloStart {
                version: VERSION,
                random: self.random,
                session_id: &self.session_id,
                cookie,
            },
            cipher_suites: &numbers,
            extensions: Extensions {
                renegotiation_info: Some(&[]),
                encrypt_then_mac: has_cbc && self.config.offers_encrypt_then_mac,
                extended_master_secret: true,
                record_size_limit: self.config.record_size_limit,
                max_fragment_length: self.config.max_fragment_length.map(|it| it as u8),
                supported_groups: has_curves.then_some(&groups[..]),
                client_certificate_type: of_client.as_ref().map(|it| &it[..]),
                server_certificate_type: key.map(|_| &of_server[..]),
                signature_algorithms: key.map(|_| &algorithms[..]),
                ec_point_formats: has_curves,
                session_ticket: self.config.accepts_tickets.then_some(ticket),
                connection_id: has_connection_id.then_some(&self.connection_id),
                return_routability_check: has_connection_id,
            },
        };
        transport.push(MessageType::ClientHello, hello.encode());
    }

    fn server_hello(&self, message: &Message, transport: &mut Transport) -> Result<State, Refused> {
        transport.record(message);
        let hello = ServerHello::decode(&message.body)?;
        let suite = CipherSuite::from_number(hello.cipher_suite);
        let suite = suite.filter(|suite| self.config.cipher_suites.contains(suite));
        let suite = suite.ok_or(Refused(AlertDescription::ILLEGAL_PARAMETER))?;
        let extensions = &hello.extensions;
        let offers_connection_id = self.config.connection_id != ConnectionIdOffer::None;
        let limit_was_offered = self.config.record_size_limit.is_some();
        if extensions.connection_id.is_some() && !offers_connection_id
            || extensions.return_routability_check && extensions.connection_id.is_none()
            || extensions.record_size_limit.is_some() && !limit_was_offered
        {
            return Err(Refused(AlertDescription::UNSUPPORTED_EXTENSION));
        }
        let fragment_length = self.config.max_fragment_length.map(|it| it as u8);
        if extensions
            .max_fragment_length
            .is_some_and(|it| Some(it) != fragment_length)
        {
            return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
        }
        let is_expected = suite.has_cbc() && self.config.offers_encrypt_then_mac;
        if extensions.encrypt_then_mac != is_expected {
            return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
        }
        let plaintext_max = extensions.plaintext_max()?;
        transport.limits.plaintext_max = plaintext_max.into();
        let negotiated = Negotiated {
            suite,
            cipher: extensions.record_cipher(suite),
            randoms: Randoms {
                client: self.random,
                server: hello.random,
            },
            has_extended_master_secret: extensions.extended_master_secret,
            parameters: RecordParameters {
                peer_connection_id: extensions.connection_id.unwrap_or_default().into(),
                has_connection_id: extensions.connection_id.is_some()
                    && !self.connection_id.is_empty(),
                checks_paths: extensions.return_routability_check,
                plaintext_max,
            },
            session_id: hello.session_id.into(),
            expects_ticket: extensions.session_ticket.is_some(),
        };
        let is_resumed = !hello.session_id.is_empty() && *hello.session_id == *self.session_id;
        let Some(resumption) = self.config.resumption.as_ref().filter(|_| is_resumed) else {
            return Ok(match suite.key_exchange() {
                KeyExchange::EcdheEcdsa => {
                    let shown_as = CertificateType::chosen(extensions.server_certificate_type)?;
                    State::AwaitCertificate(negotiated, shown_as)
                }
                KeyExchange::Psk | KeyExchange::EcdhePsk => {
                    State::AwaitServerHelloDone(negotiated, None)
                }
            });
        };
        let session = resumption.session.clone();
        if session.suite != suite || !negotiated.has_extended_master_secret {
            return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
        }
        transport.choose_only(negotiated.proposal(session.master.clone()));
        Ok(State::AwaitResumedFinished(negotiated, session, None))
    }

    /// Our flight from ClientKeyExchange to Finished.
    fn key_exchange(
        &self,
        negotiated: &Negotiated,
        server_key: Option<ServerKey>,
        transport: &mut Transport,
        moment: &mut Moment<'_>,
    ) -> Result<(), Refused> {
        transport.begin_flight();
        let key_exchange = negotiated.suite.key_exchange();
        let signing_key = self.config.signing_key.as_ref();
        let signing_key = signing_key.filter(|_| key_exchange == KeyExchange::EcdheEcdsa);
        if let Some(key) = signing_key {
            let shown = certificate::encode_certificate(key, CertificateType::of(key));
            transport.push(MessageType::Certificate, shown);
        }
        let mut body = Vec::with_capacity(96);
        if key_exchange != KeyExchange::EcdheEcdsa {
            body.put_vector16(&self.config.psk_identity);
        }
        let shared_secret = match (key_exchange, server_key) {
            (KeyExchange::Psk, _) => None,
            (KeyExchange::EcdhePsk | KeyExchange::EcdheEcdsa, Some(server_key)) => {
                let key = EphemeralKey::generate(moment)?;
                body.put_vector8(key.public());
                Some(key.agree(&server_key)?)
            }
            (KeyExchange::EcdhePsk | KeyExchange::EcdheEcdsa, None) => return Err(UNEXPECTED),
        };
        transport.push(MessageType::ClientKeyExchange, body);
        let premaster: Zeroizing<Vec<u8>> = match (key_exchange, shared_secret) {
            (KeyExchange::EcdheEcdsa, Some(secret)) => secret,
            (_, secret) => psk_premaster(&self.config.psk, secret.as_deref().map(Vec::as_slice)),
        };
        let hash = transport.transcript_hash();
        let is_extended = negotiated.has_extended_master_secret;
        let master = MasterSecret::agreed(is_extended, &premaster, &hash, &negotiated.randoms);
        if let Some(key) = signing_key {
            let proof = certificate::encode_certificate_verify(&key.sign_hash(&hash)?);
            transport.push(MessageType::CertificateVerify, proof);
        }
        let verify_data = master.verify_data(Side::Client, &transport.transcript_hash());
        transport.choose_only(negotiated.proposal(master));
        transport.push_finished(verify_data.to_vec());
        Ok(())
    }

    fn resumption(
        &self,
        negotiated: &Negotiated,
        ticket: Option<Box<[u8]>>,
        master: MasterSecret,
        now: Timestamp,
    ) -> Option<Resumption> {
        if !negotiated.has_extended_master_secret {
            return None;
        }
        let by = match ticket.filter(|ticket| !ticket.is_empty()) {
            Some(ticket) => ResumeBy::Ticket(ticket),
            None if negotiated.session_id.is_empty() => return None,
            None => ResumeBy::SessionId(negotiated.session_id.clone()),
        };
        let session = Resumable {
            master,
            suite: negotiated.suite,
            identity: self.identity(negotiated.suite),
            authenticated_at: now,
            renewed_at: now,
        };
        Some(Resumption { session, by })
    }

    /// What the server has proved: the key of this identity, or its own.
    fn identity(&self, suite: CipherSuite) -> Identity {
        match suite.has_psk() {
            true => Identity::Psk(self.config.psk_identity.clone()),
            false => Identity::RawPublicKey(self.config.server_public_key.clone()),
        }
    }

    fn establish(
        &self,
        transport: &mut Transport,
        security: Security,
        resumption: Option<Resumption>,
    ) -> Result<Step, Refused> {
        let finished = transport.finish();
        let (session, flight) = finished.ok_or(Refused(AlertDescription::INTERNAL_ERROR))?;
        Ok(Step::Establish(Box::new(Outcome {
            session,
            identity: self.identity(security.suite),
            last_flight: security.is_resumed.then_some(flight),
            security,
            resumption,
            cached: None,
        })))
    }
}

impl Negotiated {
    fn proposal(&self, master: MasterSecret) -> Proposal {
        let keys = master.traffic_keys(self.cipher, &self.randoms);
        let session = Session::of_client(self.suite, keys, self.parameters.clone());
        Proposal { master, session }
    }

    fn security(&self, authenticated_at: Timestamp) -> Security {
        Security {
            suite: self.suite,
            has_connection_id: !self.parameters.peer_connection_id.is_empty(),
            has_extended_master_secret: self.has_extended_master_secret,
            is_resumed: false,
            authenticated_at,
            psk_index: 0,
        }
    }
}

/// The ephemeral key in a ServerKeyExchange; without one the message has only a hint for the choice
/// of an identity (RFC 4279 section 2).
fn server_key(negotiated: &Negotiated, body: &[u8]) -> Result<Option<ServerKey>, Refused> {
    let mut reader = Reader::new(body);
    reader.vector16()?;
    let key: Option<ServerKey> = match negotiated.suite.key_exchange() {
        KeyExchange::Psk => None,
        KeyExchange::EcdhePsk => Some(key_agreement::decode_parameters(&mut reader)?.into()),
        KeyExchange::EcdheEcdsa => return Err(UNEXPECTED),
    };
    reader.end()?;
    Ok(key)
}
