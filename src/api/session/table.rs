//! Who is signed in to the console? The sessions and one-time codes, in memory: a restart signs
//! everybody out. Knows no HTTP and no clock.

use std::collections::HashMap;

use engine::customer::SecretDigest;
use engine::ids::ClientId;
use engine::moment::Timestamp;

use crate::api::oidc::SignedInPerson;

/// Sessions of one API client, of one person, or of the operator; one more ends the one that was
/// unused longest.
const SESSIONS_PER_PRINCIPAL_MAX: usize = 32;

/// Sessions of all; one more ends the one that was unused longest.
const SESSIONS_MAX: usize = 10_000;

/// Codes that wait to be used; one more ends the oldest.
const CODES_MAX: usize = 1_000;

/// How long a one-time code is valid.
pub(in crate::api) const CODE_LIFETIME_S: u32 = 600;

/// Whose credentials a session was opened with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::api) enum Principal {
    /// An API client of a customer.
    Client(ClientId),
    /// The operator.
    Operator,
    /// A person, by the subject that the identity provider names.
    Person(Box<str>),
}

/// By what the calls of a session are authorised.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::api) enum SessionAuthority {
    /// The token with which the API is called for the session.
    Token(String),
    /// What the person may do. There is no token that could be taken elsewhere.
    Person(SignedInPerson),
}

/// What a session lets its browser do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::api) struct Session {
    /// Whose session it is.
    pub(in crate::api) principal: Principal,
    /// By what its calls are authorised.
    pub(in crate::api) authority: SessionAuthority,
    /// What calls that change anything repeat in a header, which no other site can do.
    pub(in crate::api) csrf: String,
    /// When it ends, however much it is used.
    pub(in crate::api) ends_at: Timestamp,
}

/// How long sessions last.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct SessionLifetime {
    /// From its last use by a person.
    pub(in crate::api) idle_s: u32,
    /// From its beginning.
    pub(in crate::api) total_s: u32,
}

/// A session and when it was last used.
#[derive(Clone, Debug)]
struct OpenSession {
    session: Session,
    used_at: Timestamp,
}

/// Every session, by the digest of its cookie, and every code, by its own.
#[derive(Debug)]
pub(in crate::api) struct SessionTable {
    lifetime: SessionLifetime,
    session_by_digest: HashMap<SecretDigest, OpenSession>,
    code_by_digest: HashMap<SecretDigest, (ClientId, Timestamp)>,
}

impl SessionTable {
    /// No session.
    pub(in crate::api) fn new(lifetime: SessionLifetime) -> Self {
        Self {
            lifetime,
            session_by_digest: HashMap::new(),
            code_by_digest: HashMap::new(),
        }
    }

    /// How long sessions last.
    pub(in crate::api) fn lifetime(&self) -> SessionLifetime {
        self.lifetime
    }

    /// Opens a session for the browser that has the secret of this digest.
    pub(in crate::api) fn open(&mut self, digest: SecretDigest, session: Session, now: Timestamp) {
        let idle_ms = self.idle_ms();
        self.session_by_digest
            .retain(|_, open| open.is_open(idle_ms, now));
        let principal = session.principal.clone();
        let is_its = |open: &OpenSession| open.session.principal == principal;
        self.make_room(SESSIONS_PER_PRINCIPAL_MAX, is_its);
        self.make_room(SESSIONS_MAX, |_| true);
        let open = OpenSession {
            session,
            used_at: now,
        };
        self.session_by_digest.insert(digest, open);
    }

    /// The session, unless it has ended.
    pub(in crate::api) fn find(&self, digest: &SecretDigest, now: Timestamp) -> Option<&Session> {
        let open = self.session_by_digest.get(digest)?;
        open.is_open(self.idle_ms(), now).then_some(&open.session)
    }

    /// Notes that a person used the session.
    pub(in crate::api) fn touch(&mut self, digest: &SecretDigest, now: Timestamp) {
        if let Some(open) = self.session_by_digest.get_mut(digest) {
            open.used_at = now;
        }
    }

    /// Ends a session.
    pub(in crate::api) fn close(&mut self, digest: &SecretDigest) {
        self.session_by_digest.remove(digest);
    }

    /// Ends every session and every code of an API client, of a person, or of the operator.
    pub(in crate::api) fn close_all(&mut self, principal: &Principal) {
        self.session_by_digest
            .retain(|_, open| open.session.principal != *principal);
        self.code_by_digest
            .retain(|_, (client, _)| Principal::Client(client.clone()) != *principal);
    }

    /// Accepts the code of this digest, once, in place of the credentials of an API client.
    pub(in crate::api) fn add_code(
        &mut self,
        digest: SecretDigest,
        client: ClientId,
        now: Timestamp,
    ) {
        self.code_by_digest.retain(|_, (_, ends_at)| now < *ends_at);
        let codes = self.code_by_digest.iter();
        let oldest = codes.min_by_key(|(_, (_, ends_at))| *ends_at);
        if let Some((oldest, _)) = oldest.filter(|_| self.code_by_digest.len() >= CODES_MAX) {
            let oldest = *oldest;
            self.code_by_digest.remove(&oldest);
        }
        let ends_at = now.plus_s(CODE_LIFETIME_S.into());
        self.code_by_digest.insert(digest, (client, ends_at));
    }

    /// Uses a code up, and returns whose it was.
    pub(in crate::api) fn redeem(
        &mut self,
        digest: &SecretDigest,
        now: Timestamp,
    ) -> Option<ClientId> {
        let (client, ends_at) = self.code_by_digest.remove(digest)?;
        (now < ends_at).then_some(client)
    }

    fn idle_ms(&self) -> i64 {
        i64::from(self.lifetime.idle_s) * 1_000
    }

    /// Ends those that were unused longest until there is room for one more.
    fn make_room(&mut self, max: usize, counts: impl Fn(&OpenSession) -> bool) {
        let counted = self.session_by_digest.iter();
        let counted = counted.filter(|(_, open)| counts(open));
        let mut counted: Vec<_> = counted
            .map(|(digest, open)| (open.used_at, *digest))
            .collect();
        counted.sort_by_key(|(used_at, _)| *used_at);
        let surplus = (counted.len() + 1).saturating_sub(max);
        for (_, digest) in counted.into_iter().take(surplus) {
            self.session_by_digest.remove(&digest);
        }
    }
}

impl OpenSession {
    fn is_open(&self, idle_ms: i64, now: Timestamp) -> bool {
        now < self.session.ends_at && now.since_ms(self.used_at) < idle_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_when_it_is_idle_or_old() {
        let mut table = table();
        table.open(digest("a"), session("one"), at(0));
        assert!(table.find(&digest("a"), at(59)).is_some());
        assert!(table.find(&digest("a"), at(60)).is_none(), "idle");
        for minute in 1..10 {
            table.touch(&digest("a"), at(minute * 59));
        }
        assert!(table.find(&digest("a"), at(599)).is_none(), "idle again");
        table.touch(&digest("a"), at(590));
        assert!(table.find(&digest("a"), at(599)).is_some());
        assert!(table.find(&digest("a"), at(600)).is_none(), "old");
    }

    #[test]
    fn closing_all_sessions_spares_those_of_others() {
        let mut table = table();
        table.open(digest("a"), session("one"), at(0));
        table.open(digest("b"), session("one"), at(0));
        table.open(digest("c"), session("other"), at(0));
        table.add_code(digest("d"), client("one"), at(0));
        table.close_all(&Principal::Client(client("one")));
        assert!(table.find(&digest("a"), at(1)).is_none());
        assert!(table.find(&digest("b"), at(1)).is_none());
        assert!(table.find(&digest("c"), at(1)).is_some());
        assert_eq!(table.redeem(&digest("d"), at(1)), None);
        table.close(&digest("c"));
        assert!(table.find(&digest("c"), at(1)).is_none());
    }

    #[test]
    fn one_session_too_many_ends_the_one_unused_longest() {
        let mut table = table();
        for number in 0..=SESSIONS_PER_PRINCIPAL_MAX {
            let name = number.to_string();
            table.open(digest(&name), session("one"), at(1));
            if number == 0 {
                table.touch(&digest("0"), at(2));
            }
        }
        assert!(table.find(&digest("0"), at(3)).is_some(), "it was used");
        let open = (0..=SESSIONS_PER_PRINCIPAL_MAX)
            .filter(|number| table.find(&digest(&number.to_string()), at(3)).is_some());
        assert_eq!(open.count(), SESSIONS_PER_PRINCIPAL_MAX);
    }

    #[test]
    fn a_code_is_used_once_within_ten_minutes() {
        let mut table = table();
        table.add_code(digest("a"), client("one"), at(0));
        table.add_code(digest("b"), client("one"), at(0));
        assert_eq!(table.redeem(&digest("c"), at(0)), None, "unknown");
        assert_eq!(table.redeem(&digest("a"), at(599)), Some(client("one")));
        assert_eq!(table.redeem(&digest("a"), at(599)), None, "used");
        assert_eq!(table.redeem(&digest("b"), at(600)), None, "too late");
    }

    fn table() -> SessionTable {
        SessionTable::new(SessionLifetime {
            idle_s: 60,
            total_s: 600,
        })
    }

    fn session(of: &str) -> Session {
        Session {
            principal: Principal::Client(client(of)),
            authority: SessionAuthority::Token("bearer".to_owned()),
            csrf: "csrf".to_owned(),
            ends_at: at(600),
        }
    }

    fn client(id: &str) -> ClientId {
        ClientId::parse(id).unwrap()
    }

    fn digest(secret: &str) -> SecretDigest {
        SecretDigest::of(secret)
    }

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(0).plus_s(s)
    }
}
