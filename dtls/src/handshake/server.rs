//! What does a server answer? RFC 5246 section 7.3 and figure 1 of RFC 6347, after the cookie.
//!
//! ```text
//! ClientHello -> AwaitClientKeyExchange -> AwaitPsk ---------------> AwaitFinished -> established
//!      |    \-> AwaitCertificate -> AwaitSignedKeyExchange              ^                 ^
//!      |          \-> AwaitCertificateVerify -> AwaitAdmission or AwaitName                |
//!      |                                                  \-----------/                  |
//!      \------> AwaitResumedFinished -----------------------------------------------------/
//! ```

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::alert::AlertDescription;
use crate::association::AssociationId;
use crate::cipher_suite::{CipherSuite, KeyExchange, RecordCipher};
use crate::config::{Config, ExtendedMasterSecret};
use crate::connection_id;
use crate::effect::Security;
use crate::identity::Identity;
use crate::key_agreement::{self, EphemeralKey, SECP256R1};
use crate::key_schedule::{
    MasterSecret, RANDOM_LENGTH, Randoms, Side, TranscriptHash, psk_premaster,
};
use crate::moment::{Moment, Timestamp};
use crate::presentation::{Reader, Writer};
use crate::record::PLAINTEXT_MAX;
use crate::session::{RecordParameters, Session};
use crate::signature;

use super::certificate::{self, CertificateType, ShownKey};
use super::extension::Extensions;
use super::hello::{ClientHello, EMPTY_RENEGOTIATION_INFO_SCSV, ServerHello};
use super::message::{Message, MessageType};
use super::resumption::{Resumable, SessionCache, SessionId};
use super::ticket::{self, TicketKey};
use super::transport::{Proposal, Transport};
use super::{Outcome, Refused, Step};

/// RFC 4279 section 5.3 has at least 128 bytes supported.
const PSK_IDENTITY_MAX: usize = 255;

/// What a server knows besides a handshake.
pub(crate) struct ServerContext<'c, 'e> {
    pub(crate) config: &'c Config,
    pub(crate) moment: &'c mut Moment<'e>,
    pub(crate) cache: &'c SessionCache,
    pub(crate) association: AssociationId,
}

/// The server's side of one handshake.
#[derive(Debug)]
pub(crate) struct ServerHandshake {
    client_random: [u8; RANDOM_LENGTH],
    state: State,
}

#[derive(Debug)]
enum State {
    AwaitClientHello,
    AwaitClientKeyExchange(Negotiated, Option<EphemeralKey>),
    AwaitPsk(Negotiated, KeyExchanged),
    AwaitCertificate(Negotiated, EphemeralKey, CertificateType),
    AwaitSignedKeyExchange(Negotiated, EphemeralKey, ShownKey),
    AwaitCertificateVerify(Negotiated, MasterSecret, ShownKey),
    /// Of the owner of a raw public key.
    AwaitAdmission(Negotiated, MasterSecret, Box<[u8]>),
    /// Of the owner of a certificate.
    AwaitName(Negotiated, MasterSecret),
    AwaitFinished(Negotiated, Identity),
    AwaitResumedFinished(Negotiated, Resumable),
    /// A message was refused, or the handshake is over.
    Ended,
}

/// What both hellos agreed on.
#[derive(Debug)]
struct Negotiated {
    suite: CipherSuite,
    cipher: RecordCipher,
    randoms: Randoms,
    has_extended_master_secret: bool,
    parameters: RecordParameters,
    /// Under which the session will be cached.
    session_id: Option<SessionId>,
    wants_ticket: bool,
}

/// What a ClientKeyExchange said.
#[derive(Debug)]
struct KeyExchanged {
    identity: Box<[u8]>,
    /// Of ephemeral keys.
    shared_secret: Option<Zeroizing<Vec<u8>>>,
    /// RFC 7627 section 3: of the messages up to here.
    session_hash: TranscriptHash,
}

impl ServerHandshake {
    /// Awaits the rest of the ClientHello with this random.
    pub(crate) fn new(client_random: [u8; RANDOM_LENGTH]) -> Self {
        Self {
            client_random,
            state: State::AwaitClientHello,
        }
    }

    /// The random of the ClientHello that it began with.
    pub(crate) fn begun_by(&self) -> [u8; RANDOM_LENGTH] {
        self.client_random
    }

    pub(crate) fn handle_message(
        &mut self,
        message: &Message,
        transport: &mut Transport,
        context: &mut ServerContext<'_, '_>,
    ) -> Result<Step, Refused> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let (state, step) = match (state, message.message_type) {
            (State::AwaitClientHello, MessageType::ClientHello) => {
                client_hello(message, transport, context)?
            }
            (State::AwaitClientKeyExchange(negotiated, key), MessageType::ClientKeyExchange) => {
                client_key_exchange(negotiated, key, message, transport)?
            }
            (State::AwaitCertificate(negotiated, key, shown_as), MessageType::Certificate) => {
                transport.disarm();
                transport.record(message);
                let shown = ShownKey::decode(shown_as, &message.body)?;
                let state = State::AwaitSignedKeyExchange(negotiated, key, shown);
                (state, Step::Wait)
            }
            (
                State::AwaitSignedKeyExchange(negotiated, key, shown),
                MessageType::ClientKeyExchange,
            ) => signed_key_exchange(negotiated, &key, shown, message, transport)?,
            (
                State::AwaitCertificateVerify(negotiated, master, shown),
                MessageType::CertificateVerify,
            ) => {
                let proof = certificate::decode_certificate_verify(&message.body)?;
                signature::verify(&shown.public_key, &transport.transcript_hash(), proof)?;
                transport.record(message);
                match shown.chain {
                    Some(chain) => (
                        State::AwaitName(negotiated, master),
                        Step::AdmitCertificate(chain),
                    ),
                    None => {
                        let step = Step::AdmitPublicKey(shown.public_key.clone());
                        let key = shown.public_key;
                        (State::AwaitAdmission(negotiated, master, key), step)
                    }
                }
            }
            (State::AwaitFinished(negotiated, identity), MessageType::Finished) => {
                finished(negotiated, identity, message, transport, context)?
            }
            (State::AwaitResumedFinished(negotiated, session), MessageType::Finished) => {
                resumed_finished(&negotiated, session, message, transport)?
            }
            (
                State::AwaitClientHello
                | State::AwaitClientKeyExchange(..)
                | State::AwaitPsk(..)
                | State::AwaitCertificate(..)
                | State::AwaitSignedKeyExchange(..)
                | State::AwaitCertificateVerify(..)
                | State::AwaitAdmission(..)
                | State::AwaitName(..)
                | State::AwaitFinished(..)
                | State::AwaitResumedFinished(..)
                | State::Ended,
                _,
            ) => return Err(Refused(AlertDescription::UNEXPECTED_MESSAGE)),
        };
        self.state = state;
        Ok(step)
    }

    /// Takes the keys that the identity may have; none if nobody has it. The handshake then goes on
    /// as with a wrong key, so that nobody learns which identities exist.
    pub(crate) fn provide_psk(
        &mut self,
        candidates: &[&[u8]],
        transport: &mut Transport,
        moment: &mut Moment<'_>,
    ) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let State::AwaitPsk(negotiated, exchanged) = state else {
            self.state = state;
            return;
        };
        let unknown = Zeroizing::new(moment.random::<16>());
        let unknown: [&[u8]; 1] = [&*unknown];
        let candidates = match candidates {
            [] => &unknown,
            _ => candidates,
        };
        for psk in candidates {
            let shared_secret = exchanged.shared_secret.as_deref().map(Vec::as_slice);
            let premaster = psk_premaster(psk, shared_secret);
            let master = negotiated.master_secret(&premaster, &exchanged.session_hash);
            transport.propose(negotiated.proposal(master));
        }
        self.state = State::AwaitFinished(negotiated, Identity::Psk(exchanged.identity));
    }

    /// Goes on with a client whose raw public key is known.
    pub(crate) fn admit(&mut self, transport: &mut Transport) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let State::AwaitAdmission(negotiated, master, public_key) = state else {
            self.state = state;
            return;
        };
        transport.propose(negotiated.proposal(master));
        self.state = State::AwaitFinished(negotiated, Identity::RawPublicKey(public_key));
    }

    /// Goes on with a client whose certificate is known under this name.
    pub(crate) fn admit_as(&mut self, name: &[u8], transport: &mut Transport) {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let State::AwaitName(negotiated, master) = state else {
            self.state = state;
            return;
        };
        transport.propose(negotiated.proposal(master));
        self.state = State::AwaitFinished(negotiated, Identity::Certificate(name.into()));
    }
}

impl Negotiated {
    fn master_secret(&self, premaster: &[u8], session_hash: &TranscriptHash) -> MasterSecret {
        let is_extended = self.has_extended_master_secret;
        MasterSecret::agreed(is_extended, premaster, session_hash, &self.randoms)
    }

    fn proposal(&self, master: MasterSecret) -> Proposal {
        let keys = master.traffic_keys(self.cipher, &self.randoms);
        let session = Session::of_server(self.suite, keys, self.parameters.clone());
        Proposal { master, session }
    }

    fn security(&self, authenticated_at: Timestamp, transport: &Transport) -> Security {
        Security {
            suite: self.suite,
            has_connection_id: self.parameters.has_connection_id,
            has_extended_master_secret: self.has_extended_master_secret,
            is_resumed: false,
            authenticated_at,
            psk_index: transport.chosen_index(),
        }
    }
}

fn client_hello(
    message: &Message,
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) -> Result<(State, Step), Refused> {
    transport.record(message);
    let hello = ClientHello::decode(&message.body)?;
    let config = context.config;
    let extensions = &hello.extensions;
    // RFC 5746 section 3.6: nothing to renegotiate.
    if extensions
        .renegotiation_info
        .is_some_and(|info| !info.is_empty())
    {
        return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
    }
    let requires_extended = config.extended_master_secret == ExtendedMasterSecret::Required;
    if requires_extended && !extensions.extended_master_secret {
        return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
    }
    let resumed = resumable(&hello, context)?;
    let suite = match &resumed {
        Some((session, _)) => session.suite,
        None => choose_suite(&hello, config)?,
    };
    let has_extended_master_secret = extensions.extended_master_secret;
    let negotiated = Negotiated {
        suite,
        cipher: extensions.record_cipher(suite),
        randoms: Randoms {
            client: hello.start.random,
            server: context.moment.random(),
        },
        has_extended_master_secret,
        parameters: RecordParameters {
            peer_connection_id: extensions.connection_id.unwrap_or_default().into(),
            has_connection_id: extensions.connection_id.is_some(),
            checks_paths: checks_paths(extensions),
            plaintext_max: extensions.plaintext_max()?,
        },
        session_id: None,
        wants_ticket: has_extended_master_secret
            && extensions.session_ticket.is_some()
            && !config.ticket_keys.is_empty(),
    };
    transport.limits.plaintext_max = negotiated.parameters.plaintext_max.into();
    transport.begin_flight();
    match resumed {
        Some(resumed) => Ok(resume(&hello, negotiated, resumed, transport, context)),
        None => begin(&hello, negotiated, transport, context),
    }
}

/// The session that the client may resume with this hello, and the id that it was found under if
/// not in a ticket.
fn resumable(
    hello: &ClientHello<'_>,
    context: &ServerContext<'_, '_>,
) -> Result<Option<(Resumable, Option<SessionId>)>, Refused> {
    let ticket = hello.extensions.session_ticket;
    let by_ticket = ticket.and_then(|it| TicketKey::open(&context.config.ticket_keys, it));
    // RFC 5077 section 3.4: a ticket goes before a session id.
    let (session, id) = match by_ticket {
        Some(session) => (session, None),
        None => match context.cache.find(hello.start.session_id) {
            Some((id, session)) => (session.clone(), Some(id)),
            None => return Ok(None),
        },
    };
    // RFC 7627 section 5.3: the session has an extended master secret.
    if !hello.extensions.extended_master_secret {
        return Err(Refused(AlertDescription::HANDSHAKE_FAILURE));
    }
    let (now, config) = (context.moment.now, context.config);
    let is_young = now.since_ms(session.renewed_at) < u64::from(config.resumption_s) * 1_000
        && now.since_ms(session.authenticated_at) < u64::from(config.authentication_s) * 1_000;
    let is_offered =
        is_offered(hello, session.suite, config) && config.cipher_suites.contains(&session.suite);
    Ok((is_young && is_offered).then_some((session, id)))
}

/// With CBC, only if the client encrypts before it authenticates (RFC 7366 section 3), or need not.
fn is_offered(hello: &ClientHello<'_>, suite: CipherSuite, config: &Config) -> bool {
    let is_bare = suite.has_cbc() && !hello.extensions.encrypt_then_mac;
    hello.offers(suite.number()) && (config.accepts_bare_cbc || !is_bare)
}

fn choose_suite(hello: &ClientHello<'_>, config: &Config) -> Result<CipherSuite, Refused> {
    // RFC 8422 section 4: a client without the extension leaves the choice to the server.
    let has_curve = hello.extensions.supported_groups.is_none_or(|groups| {
        let mut numbers = groups.chunks_exact(2);
        numbers.any(|number| number == SECP256R1.to_be_bytes())
    });
    let has_certificates = CertificateTypes::choose(hello, config)?.is_some();
    let mut suites = config.cipher_suites.iter().copied();
    let chosen = suites.find(|suite| {
        let is_possible = match suite.key_exchange() {
            KeyExchange::Psk => true,
            KeyExchange::EcdhePsk => has_curve,
            KeyExchange::EcdheEcdsa => has_curve && has_certificates,
        };
        is_possible && is_offered(hello, *suite, config)
    });
    chosen.ok_or(Refused(AlertDescription::HANDSHAKE_FAILURE))
}

/// How both sides show their keys (RFC 7250 section 4).
struct CertificateTypes {
    client: CertificateType,
    /// Whether the client has named it, or it is the default.
    is_client_named: bool,
    server: CertificateType,
    is_server_named: bool,
}

impl CertificateTypes {
    /// None if there is no way that both sides have. The client's preference decides.
    fn choose(hello: &ClientHello<'_>, config: &Config) -> Result<Option<Self>, Refused> {
        let extensions = &hello.extensions;
        let Some(key) = &config.server_key else {
            return Ok(None);
        };
        let of_client = CertificateType::offered(extensions.client_certificate_type)?;
        let is_checkable = certificate::has_signature_algorithm(extensions.signature_algorithms);
        let Some(client) = of_client.into_iter().next().filter(|_| is_checkable) else {
            return Ok(None);
        };
        let of_server = CertificateType::offered(extensions.server_certificate_type)?;
        let mut possible = of_server.into_iter().filter(|it| match it {
            CertificateType::X509 => !key.certificates.is_empty(),
            CertificateType::RawPublicKey => true,
        });
        Ok(possible.next().map(|server| Self {
            client,
            is_client_named: extensions.client_certificate_type.is_some(),
            server,
            is_server_named: extensions.server_certificate_type.is_some(),
        }))
    }
}

/// RFC 9853 section 3: without a Connection ID the address never changes.
fn checks_paths(offered: &Extensions<'_>) -> bool {
    offered.return_routability_check && offered.connection_id.is_some()
}

/// The extensions of our hello: answers to those of the client.
fn answers<'a>(
    hello: &ClientHello<'a>,
    suite: CipherSuite,
    connection_id: &'a [u8],
    promises_ticket: bool,
) -> Extensions<'a> {
    let offered = &hello.extensions;
    let is_secure = offered.renegotiation_info.is_some();
    let is_secure = is_secure || hello.offers(EMPTY_RENEGOTIATION_INFO_SCSV);
    let record_size_limit = offered.record_size_limit.map(|_| PLAINTEXT_MAX as u16);
    let fragment_length = offered.max_fragment_length;
    Extensions {
        renegotiation_info: is_secure.then_some(&[]),
        encrypt_then_mac: suite.has_cbc() && offered.encrypt_then_mac,
        extended_master_secret: offered.extended_master_secret,
        max_fragment_length: fragment_length.filter(|_| record_size_limit.is_none()),
        record_size_limit,
        session_ticket: promises_ticket.then_some(&[]),
        connection_id: offered.connection_id.map(|_| connection_id),
        return_routability_check: checks_paths(offered),
        ..Extensions::default()
    }
}

/// A full handshake: our flight up to ServerHelloDone.
fn begin(
    hello: &ClientHello<'_>,
    mut negotiated: Negotiated,
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) -> Result<(State, Step), Refused> {
    let config = context.config;
    let is_cached = negotiated.has_extended_master_secret
        && !negotiated.wants_ticket
        && config.cached_sessions_max > 0;
    negotiated.session_id = is_cached.then(|| context.moment.random());
    let connection_id = connection_id::encode(&config.connection_id_prefix, context.association);
    let certificate_types = match negotiated.suite.key_exchange() {
        KeyExchange::EcdheEcdsa => CertificateTypes::choose(hello, config)?,
        KeyExchange::Psk | KeyExchange::EcdhePsk => None,
    };
    let types = certificate_types.as_ref();
    // What the client did not name is the default, which is not answered.
    let named_client = types.filter(|types| types.is_client_named);
    let named_client = named_client.map(|types| [types.client.number()]);
    let named_server = types.filter(|types| types.is_server_named);
    let named_server = named_server.map(|types| [types.server.number()]);
    let extensions = Extensions {
        client_certificate_type: named_client.as_ref().map(|it| &it[..]),
        server_certificate_type: named_server.as_ref().map(|it| &it[..]),
        // Only after an offer of the client that a suite of ours needs.
        ec_point_formats: hello.extensions.ec_point_formats
            && negotiated.suite.key_exchange() != KeyExchange::Psk,
        ..answers(
            hello,
            negotiated.suite,
            &connection_id,
            negotiated.wants_ticket,
        )
    };
    let session_id = negotiated.session_id;
    let answer = ServerHello {
        random: negotiated.randoms.server,
        session_id: session_id.as_ref().map_or(&[], |id| &id[..]),
        cipher_suite: negotiated.suite.number(),
        extensions,
    };
    transport.push(MessageType::ServerHello, answer.encode());
    let key = match negotiated.suite.key_exchange() {
        KeyExchange::Psk => None,
        KeyExchange::EcdhePsk => {
            let key = EphemeralKey::generate(context.moment)?;
            let mut body = Vec::with_capacity(80);
            // RFC 5489 section 2: the hint, empty, and the parameters.
            body.put_vector16(&[]);
            key_agreement::encode_parameters(key.public(), &mut body);
            transport.push(MessageType::ServerKeyExchange, body);
            Some(key)
        }
        KeyExchange::EcdheEcdsa => {
            let types = certificate_types.ok_or(Refused(AlertDescription::INTERNAL_ERROR))?;
            let key = show_key(&negotiated, &types, transport, context)?;
            transport.push(MessageType::ServerHelloDone, Vec::new());
            let state = State::AwaitCertificate(negotiated, key, types.client);
            return Ok((state, Step::SendFlight));
        }
    };
    transport.push(MessageType::ServerHelloDone, Vec::new());
    let state = State::AwaitClientKeyExchange(negotiated, key);
    Ok((state, Step::SendFlight))
}

/// Our certificate, an ephemeral key that it signs, and the request for the client's.
fn show_key(
    negotiated: &Negotiated,
    types: &CertificateTypes,
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) -> Result<EphemeralKey, Refused> {
    let server_key = context.config.server_key.as_ref();
    let server_key = server_key.ok_or(Refused(AlertDescription::INTERNAL_ERROR))?;
    let shown = certificate::encode_certificate(server_key, types.server);
    transport.push(MessageType::Certificate, shown);
    let key = EphemeralKey::generate(context.moment)?;
    let randoms = &negotiated.randoms;
    let body = certificate::encode_signed_parameters(server_key, randoms, key.public())?;
    transport.push(MessageType::ServerKeyExchange, body);
    let request = certificate::encode_certificate_request();
    transport.push(MessageType::CertificateRequest, request);
    Ok(key)
}

/// An abbreviated handshake: our hello, a new ticket and our Finished (RFC 5246 figure 2, RFC 5077
/// figure 2).
fn resume(
    hello: &ClientHello<'_>,
    mut negotiated: Negotiated,
    (session, id): (Resumable, Option<SessionId>),
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) -> (State, Step) {
    negotiated.session_id = id;
    let session = Resumable {
        renewed_at: context.moment.now,
        ..session
    };
    let prefix = &context.config.connection_id_prefix;
    let connection_id = connection_id::encode(prefix, context.association);
    let answer = ServerHello {
        random: negotiated.randoms.server,
        // RFC 5077 section 3.4: it tells a client with a ticket that the ticket was accepted.
        session_id: hello.start.session_id,
        cipher_suite: negotiated.suite.number(),
        extensions: answers(
            hello,
            negotiated.suite,
            &connection_id,
            negotiated.wants_ticket,
        ),
    };
    transport.push(MessageType::ServerHello, answer.encode());
    push_ticket(&negotiated, &session, transport, context);
    transport.choose_only(negotiated.proposal(session.master.clone()));
    let hash = transport.transcript_hash();
    let verify_data = session.master.verify_data(Side::Server, &hash);
    transport.push_finished(verify_data.to_vec());
    let state = State::AwaitResumedFinished(negotiated, session);
    (state, Step::SendFlight)
}

/// The ticket that the client wants: a new one in every handshake, so that its age is that of the
/// session (RFC 5077 section 3.3).
fn push_ticket(
    negotiated: &Negotiated,
    session: &Resumable,
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) {
    if negotiated.wants_ticket
        && let Some(key) = context.config.ticket_keys.first()
    {
        let ticket = key.seal(session, context.moment);
        let lifetime_s = context.config.resumption_s;
        let body = ticket::encode_new_session_ticket(lifetime_s, &ticket);
        transport.push(MessageType::NewSessionTicket, body);
    }
}

fn client_key_exchange(
    negotiated: Negotiated,
    key: Option<EphemeralKey>,
    message: &Message,
    transport: &mut Transport,
) -> Result<(State, Step), Refused> {
    transport.disarm();
    transport.record(message);
    let mut reader = Reader::new(&message.body);
    let identity: Box<[u8]> = reader.vector16()?.into();
    let shared_secret = match key {
        Some(key) => Some(key.agree(reader.vector8()?)?),
        None => None,
    };
    reader.end()?;
    if identity.len() > PSK_IDENTITY_MAX {
        return Err(Refused(AlertDescription::ILLEGAL_PARAMETER));
    }
    let exchanged = KeyExchanged {
        identity: identity.clone(),
        shared_secret,
        session_hash: transport.transcript_hash(),
    };
    let state = State::AwaitPsk(negotiated, exchanged);
    Ok((state, Step::LookUpPsk(identity)))
}

/// A ClientKeyExchange between a Certificate and its proof.
fn signed_key_exchange(
    negotiated: Negotiated,
    key: &EphemeralKey,
    shown: ShownKey,
    message: &Message,
    transport: &mut Transport,
) -> Result<(State, Step), Refused> {
    transport.record(message);
    let mut reader = Reader::new(&message.body);
    let premaster = key.agree(reader.vector8()?)?;
    reader.end()?;
    let master = negotiated.master_secret(&premaster, &transport.transcript_hash());
    let state = State::AwaitCertificateVerify(negotiated, master, shown);
    Ok((state, Step::Wait))
}

fn finished(
    negotiated: Negotiated,
    identity: Identity,
    message: &Message,
    transport: &mut Transport,
    context: &mut ServerContext<'_, '_>,
) -> Result<(State, Step), Refused> {
    let master = verify_finished(Side::Client, message, transport)?;
    transport.record(message);
    transport.begin_flight();
    let now = context.moment.now;
    let session = Resumable {
        master: master.clone(),
        suite: negotiated.suite,
        identity,
        authenticated_at: now,
        renewed_at: now,
    };
    push_ticket(&negotiated, &session, transport, context);
    let hash = transport.transcript_hash();
    transport.push_finished(master.verify_data(Side::Server, &hash).to_vec());
    let security = negotiated.security(now, transport);
    let step = establish(&negotiated, session, transport, security)?;
    Ok((State::Ended, step))
}

fn resumed_finished(
    negotiated: &Negotiated,
    session: Resumable,
    message: &Message,
    transport: &mut Transport,
) -> Result<(State, Step), Refused> {
    verify_finished(Side::Client, message, transport)?;
    let security = Security {
        is_resumed: true,
        ..negotiated.security(session.authenticated_at, transport)
    };
    let step = establish(negotiated, session, transport, security)?;
    Ok((State::Ended, step))
}

fn establish(
    negotiated: &Negotiated,
    resumable: Resumable,
    transport: &mut Transport,
    security: Security,
) -> Result<Step, Refused> {
    let finished = transport.finish();
    let (session, last_flight) = finished.ok_or(Refused(AlertDescription::INTERNAL_ERROR))?;
    Ok(Step::Establish(Box::new(Outcome {
        session,
        identity: resumable.identity.clone(),
        // Of a resumed session the last flight is the client's.
        last_flight: (!security.is_resumed).then_some(last_flight),
        security,
        resumption: None,
        cached: negotiated.session_id.map(|id| (id, resumable)),
    })))
}

/// Checks a Finished of the peer (RFC 5246 section 7.4.9) and returns the secret that both have.
pub(super) fn verify_finished(
    side: Side,
    message: &Message,
    transport: &Transport,
) -> Result<MasterSecret, Refused> {
    let proposal = transport.chosen();
    let proposal = proposal.ok_or(Refused(AlertDescription::UNEXPECTED_MESSAGE))?;
    let hash = transport.transcript_hash();
    let expected = proposal.master.verify_data(side, &hash);
    if bool::from(expected.ct_eq(&message.body)) {
        Ok(proposal.master.clone())
    } else {
        Err(Refused(AlertDescription::DECRYPT_ERROR))
    }
}
