//! Which browsers are on their way to the identity provider and back? In memory; knows no HTTP and
//! no clock.

use std::collections::HashMap;

use engine::customer::SecretDigest;
use engine::moment::Timestamp;

/// Attempts that are not finished; one more ends the oldest. Anybody can begin one.
const ATTEMPTS_MAX: usize = 10_000;

/// How long a person may take at the identity provider.
pub(in crate::api) const ATTEMPT_LIFETIME_S: u32 = 600;

/// A browser that was sent to the identity provider.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::api) struct SignInAttempt {
    /// The digest of the cookie of the browser: no other one may finish what it began.
    pub(in crate::api) browser: SecretDigest,
    /// What the ID token repeats, so that it was issued for this attempt.
    pub(in crate::api) nonce: String,
    /// What proves to the provider that whoever has the code began the attempt (RFC 7636).
    pub(in crate::api) verifier: String,
    /// Where the provider sends the browser back.
    pub(in crate::api) redirect_uri: String,
    /// The view of the console that the person wanted.
    pub(in crate::api) view: String,
}

/// Every attempt, by the digest of its `state` (RFC 6749 section 10.12).
#[derive(Debug, Default)]
pub(in crate::api) struct AttemptTable {
    attempt_by_state: HashMap<SecretDigest, (SignInAttempt, Timestamp)>,
}

impl AttemptTable {
    /// Expects the browser back.
    pub(in crate::api) fn add(
        &mut self,
        state: SecretDigest,
        attempt: SignInAttempt,
        now: Timestamp,
    ) {
        self.attempt_by_state
            .retain(|_, (_, ends_at)| now < *ends_at);
        if self.attempt_by_state.len() >= ATTEMPTS_MAX {
            let attempts = self.attempt_by_state.iter();
            let oldest = attempts.min_by_key(|(_, (_, ends_at))| *ends_at);
            let oldest = oldest.map(|(state, _)| *state);
            oldest.and_then(|state| self.attempt_by_state.remove(&state));
        }
        let ends_at = now.plus_s(ATTEMPT_LIFETIME_S.into());
        self.attempt_by_state.insert(state, (attempt, ends_at));
    }

    /// Ends an attempt, whatever comes of it, and returns it.
    pub(in crate::api) fn take(
        &mut self,
        state: &SecretDigest,
        now: Timestamp,
    ) -> Option<SignInAttempt> {
        let (attempt, ends_at) = self.attempt_by_state.remove(state)?;
        (now < ends_at).then_some(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_finished_once_within_ten_minutes() {
        let mut table = AttemptTable::default();
        for state in ["a", "b"] {
            table.add(digest(state), attempt(state), at(0));
        }
        assert_eq!(table.take(&digest("c"), at(0)), None, "unknown");
        assert_eq!(table.take(&digest("a"), at(599)), Some(attempt("a")));
        assert_eq!(table.take(&digest("a"), at(599)), None, "finished");
        assert_eq!(table.take(&digest("b"), at(600)), None, "too late");
    }

    #[test]
    fn one_attempt_too_many_ends_the_oldest() {
        let mut table = AttemptTable::default();
        for number in 0..=ATTEMPTS_MAX {
            let state = number.to_string();
            let now = at(i64::from(number > 0));
            table.add(digest(&state), attempt(&state), now);
        }
        assert_eq!(table.attempt_by_state.len(), ATTEMPTS_MAX);
        assert_eq!(table.take(&digest("0"), at(2)), None);
        assert!(table.take(&digest("1"), at(2)).is_some());
    }

    fn attempt(name: &str) -> SignInAttempt {
        SignInAttempt {
            browser: digest(name),
            nonce: name.to_owned(),
            verifier: name.to_owned(),
            redirect_uri: name.to_owned(),
            view: name.to_owned(),
        }
    }

    fn digest(secret: &str) -> SecretDigest {
        SecretDigest::of(secret)
    }

    fn at(s: i64) -> Timestamp {
        Timestamp::from_ms(0).plus_s(s)
    }
}
