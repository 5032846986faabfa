//! Decisions about customers, API clients and tokens.

use std::num::NonZeroU32;

use crate::certificate_authorities::CertificateAuthorities;
use crate::change::{Batch, Change, Expect, UniqueName};
use crate::customer::{
    AccessToken, ApiClient, ClientOwner, ClientSecret, Customer, Scopes, SecretDigest,
};
use crate::directory::amending::FieldAmendment;
use crate::directory::{Decision, DirectoryRefusal, decided, draw_number, guarded};
use crate::ids::{ClientId, CustomerId, SecretId};
use crate::limits::{CLIENT_SECRETS_MAX, CLIENTS_MAX};
use crate::moment::{Moment, Timestamp};
use crate::network::Network;
use crate::wake_up::WakeUpMessage;

/// A customer to be created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewCustomer {
    /// Its id; generated if there is none.
    pub id: Option<CustomerId>,
    /// Its display name.
    pub name: Box<str>,
}

/// An API client to be created.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewApiClient {
    /// Its display name.
    pub name: Box<str>,
    /// Its scopes.
    pub scopes: Scopes,
    /// Digest of its secret.
    pub secret: SecretDigest,
}

/// The customer as it would be created. It has its id, so that the caller can check whether the id
/// is free.
pub fn draft_customer(m: &mut Moment, new: NewCustomer) -> Customer {
    let id = new.id.unwrap_or_else(|| {
        CustomerId::parse(&m.uuid().to_string()).expect("a UUID is letters, digits and dashes")
    });
    Customer {
        id,
        number: draw_number(m),
        name: new.name,
        created_at: m.now(),
        networks: Box::default(),
        wake_up: None,
        offline_after_s: None,
        authorities: None,
    }
}

/// Creates a customer; `holder` is the customer that has the id already, if any.
pub fn create_customer(
    customer: Customer,
    holder: Option<Customer>,
) -> Result<Decision<Customer>, DirectoryRefusal> {
    if holder.is_some() {
        return Err(DirectoryRefusal::CustomerExists);
    }
    let expects = vec![Expect::Free(UniqueName::Customer(customer.id.clone()))];
    let put = Change::PutCustomer(customer.clone());
    Ok(decided(expects, put, customer))
}

/// Sets the networks of a customer.
pub fn put_networks(customer: Customer, networks: &[Network]) -> Decision<()> {
    let networks = networks.into();
    put_customer(customer, |it| Customer { networks, ..it })
}

/// Sets or removes the SMS that wakes the devices of a customer.
pub fn put_wake_up(customer: Customer, wake_up: Option<WakeUpMessage>) -> Decision<()> {
    put_customer(customer, |it| Customer { wake_up, ..it })
}

/// Sets or removes how long the devices of a customer may be silent before they are offline.
pub fn put_offline_after(
    customer: Customer,
    amended: FieldAmendment<NonZeroU32>,
) -> Decision<Option<NonZeroU32>> {
    let offline_after_s = amended.apply(customer.offline_after_s);
    let put = put_customer(customer, |it| Customer {
        offline_after_s,
        ..it
    });
    Decision {
        batch: put.batch,
        answer: offline_after_s,
    }
}

/// Sets or removes who certifies the devices of a customer.
pub fn put_authorities(
    customer: Customer,
    authorities: Option<CertificateAuthorities>,
) -> Decision<()> {
    put_customer(customer, |it| Customer { authorities, ..it })
}

fn put_customer(was: Customer, change: impl FnOnce(Customer) -> Customer) -> Decision<()> {
    let expects = vec![Expect::Customer(Box::new(was.clone()))];
    decided(expects, Change::PutCustomer(change(was)), ())
}

/// Removes action requests of a customer whose devices are removed: some of them, if there are
/// many.
pub fn remove_actions(customer: &CustomerId) -> Decision<()> {
    decided(Vec::new(), Change::RemoveActions(customer.clone()), ())
}

/// Removes a customer whose devices and action requests are removed, with all that belongs to it.
pub fn remove_customer(customer: Option<Customer>) -> Result<Decision<()>, DirectoryRefusal> {
    let id = customer.ok_or(DirectoryRefusal::CustomerUnknown)?.id;
    let expects = vec![Expect::Taken(UniqueName::Customer(id.clone()))];
    Ok(decided(expects, Change::RemoveCustomer(id), ()))
}

/// Creates an API client for a customer, if that exists, or for the network; `others` are those
/// that it has already.
pub fn create_client(
    m: &mut Moment,
    owner: Option<ClientOwner>,
    others: &[ApiClient],
    new: NewApiClient,
) -> Result<Decision<ApiClient>, DirectoryRefusal> {
    let owner = owner.ok_or(DirectoryRefusal::CustomerUnknown)?;
    if others.len() >= CLIENTS_MAX {
        return Err(DirectoryRefusal::TooManyClients { max: CLIENTS_MAX });
    }
    let id = ClientId::parse(&m.uuid().to_string()).expect("a UUID is letters, digits and dashes");
    let client = ApiClient {
        id,
        owner,
        name: new.name,
        secrets: vec![secret_of(m, new.secret, None)],
        scopes: new.scopes,
        created_at: m.now(),
    };
    let mut expects = vec![Expect::Free(UniqueName::Client(client.id.clone()))];
    match &client.owner {
        ClientOwner::Customer(id) => {
            expects.push(Expect::Taken(UniqueName::Customer(id.clone())));
        }
        ClientOwner::Network => {}
    }
    let put = Change::PutClient(client.clone());
    Ok(decided(expects, put, client))
}

/// Removes an API client of an owner, which revokes its tokens.
pub fn remove_client(
    owner: &ClientOwner,
    client: Option<ApiClient>,
) -> Result<Decision<()>, DirectoryRefusal> {
    let id = client_of(owner, client)?.id;
    let expects = vec![Expect::Taken(UniqueName::Client(id.clone()))];
    Ok(decided(expects, Change::RemoveClient(id), ()))
}

/// Gives an API client of an owner one more secret, which expires after `expires_in_s`. Its
/// expired secrets are removed.
pub fn add_secret(
    m: &mut Moment,
    owner: &ClientOwner,
    client: Option<ApiClient>,
    digest: SecretDigest,
    expires_in_s: Option<u32>,
) -> Result<Decision<ClientSecret>, DirectoryRefusal> {
    let was = client_of(owner, client)?;
    let mut client = was.clone();
    client.secrets.retain(|secret| secret.is_valid(m.now()));
    if client.secrets.len() >= CLIENT_SECRETS_MAX {
        let max = CLIENT_SECRETS_MAX;
        return Err(DirectoryRefusal::TooManySecrets { max });
    }
    let secret = secret_of(m, digest, expires_in_s);
    client.secrets.push(secret.clone());
    Ok(changed(was, client, secret))
}

/// Removes a secret of an API client of an owner, but not the only valid one. Tokens that were
/// issued for it stay valid until they expire.
pub fn remove_secret(
    now: Timestamp,
    owner: &ClientOwner,
    client: Option<ApiClient>,
    id: SecretId,
) -> Result<Decision<()>, DirectoryRefusal> {
    let was = client_of(owner, client)?;
    let mut client = was.clone();
    client.secrets.retain(|secret| secret.id != id);
    if client.secrets.len() == was.secrets.len() {
        return Err(DirectoryRefusal::SecretUnknown);
    }
    if !client.secrets.iter().any(|secret| secret.is_valid(now)) {
        return Err(DirectoryRefusal::LastSecret);
    }
    Ok(changed(was, client, ()))
}

fn client_of(
    owner: &ClientOwner,
    client: Option<ApiClient>,
) -> Result<ApiClient, DirectoryRefusal> {
    let client = client.filter(|client| client.owner == *owner);
    client.ok_or(DirectoryRefusal::ClientUnknown)
}

fn changed<T>(was: ApiClient, client: ApiClient, answer: T) -> Decision<T> {
    let expects = vec![Expect::Client(Box::new(was))];
    decided(expects, Change::PutClient(client), answer)
}

fn secret_of(m: &mut Moment, digest: SecretDigest, expires_in_s: Option<u32>) -> ClientSecret {
    ClientSecret {
        id: SecretId::new(m.uuid()),
        digest,
        created_at: m.now(),
        expires_at: expires_in_s.map(|s| m.now().plus_s(i64::from(s))),
    }
}

/// Issues an access token with this digest to a client.
pub fn issue_token(
    m: &Moment,
    client: &ApiClient,
    scopes: Scopes,
    digest: SecretDigest,
    lifetime_s: u32,
) -> Batch {
    let token = AccessToken {
        digest,
        client: client.id.clone(),
        scopes,
        expires_at: m.now().plus_s(i64::from(lifetime_s)),
    };
    let expects = vec![Expect::Taken(UniqueName::Client(client.id.clone()))];
    guarded(expects, Change::PutToken(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customer::Scope;
    use crate::moment::Timestamp;

    #[test]
    fn a_customer_is_created_if_its_id_is_free() {
        let acme = draft("acme");
        let decided = create_customer(acme.clone(), None).unwrap();
        let name = UniqueName::Customer(acme.id.clone());
        let batch = Batch {
            expects: vec![Expect::Free(name)],
            changes: vec![Change::PutCustomer(acme.clone())],
            ..Batch::default()
        };
        assert_eq!(
            decided,
            Decision {
                batch,
                answer: acme.clone()
            }
        );
        assert_eq!(
            create_customer(acme.clone(), Some(acme)),
            Err(DirectoryRefusal::CustomerExists)
        );
    }

    #[test]
    fn a_customer_without_an_id_gets_a_generated_one() {
        let mut m = moment();
        let new = NewCustomer {
            id: None,
            name: "Acme".into(),
        };
        let first = draft_customer(&mut m, new.clone());
        let second = draft_customer(&mut m, new);
        assert_ne!(first.id, second.id);
        assert_ne!(first.number, second.number);
    }

    #[test]
    fn removing_a_customer_expects_that_it_exists() {
        let acme = draft("acme");
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Customer(acme.id.clone()))],
            changes: vec![Change::RemoveCustomer(acme.id.clone())],
            ..Batch::default()
        };
        assert_eq!(
            remove_customer(Some(acme)),
            Ok(Decision { batch, answer: () })
        );
        assert_eq!(
            remove_customer(None),
            Err(DirectoryRefusal::CustomerUnknown)
        );
    }

    #[test]
    fn a_client_is_created_for_an_existing_customer() {
        let acme = draft("acme");
        let owner = ClientOwner::Customer(acme.id.clone());
        let decided = create_client(&mut moment(), Some(owner.clone()), &[], new_client()).unwrap();
        let client = decided.answer;
        assert_eq!(
            (client.owner.clone(), client.scopes),
            (owner, new_client().scopes)
        );
        let batch = Batch {
            expects: vec![
                Expect::Free(UniqueName::Client(client.id.clone())),
                Expect::Taken(UniqueName::Customer(acme.id)),
            ],
            changes: vec![Change::PutClient(client)],
            ..Batch::default()
        };
        assert_eq!(decided.batch, batch);
        let without = create_client(&mut moment(), None, &[], new_client());
        assert_eq!(without, Err(DirectoryRefusal::CustomerUnknown));
    }

    #[test]
    fn a_client_of_the_network_is_of_no_customer() {
        let network = ClientOwner::Network;
        let decided =
            create_client(&mut moment(), Some(network.clone()), &[], new_client()).unwrap();
        let client = decided.answer;
        let free = Expect::Free(UniqueName::Client(client.id.clone()));
        assert_eq!(decided.batch.expects, [free]);
        let acme = ClientOwner::Customer(draft("acme").id);
        let unknown = Err(DirectoryRefusal::ClientUnknown);
        assert_eq!(remove_client(&acme, Some(client.clone())), unknown);
        assert_eq!(remove_client(&network, Some(made("acme"))), unknown);
        assert!(remove_client(&network, Some(client)).is_ok());
    }

    #[test]
    fn the_clients_of_a_customer_have_a_bound() {
        let others = vec![made("acme"); CLIENTS_MAX];
        let refused = create_client(&mut moment(), Some(owner("acme")), &others, new_client());
        assert_eq!(
            refused,
            Err(DirectoryRefusal::TooManyClients { max: CLIENTS_MAX })
        );
    }

    #[test]
    fn a_client_of_another_customer_is_unknown() {
        let client = made("acme");
        let acme = client.owner.clone();
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Client(client.id.clone()))],
            changes: vec![Change::RemoveClient(client.id.clone())],
            ..Batch::default()
        };
        let decided = Ok(Decision { batch, answer: () });
        assert_eq!(remove_client(&acme, Some(client.clone())), decided);
        let umbrella = owner("umbrella");
        assert_eq!(
            remove_client(&umbrella, Some(client)),
            Err(DirectoryRefusal::ClientUnknown)
        );
        assert_eq!(
            remove_client(&acme, None),
            Err(DirectoryRefusal::ClientUnknown)
        );
    }

    #[test]
    fn a_client_has_two_valid_secrets_at_most_and_one_at_least() {
        let acme = owner("acme");
        let add = |client: &ApiClient, secret, expires_in_s| {
            let digest = SecretDigest::of(secret);
            let m = &mut Moment::new(Timestamp::from_ms(1_000), secret.len() as u128);
            add_secret(m, &acme, Some(client.clone()), digest, expires_in_s)
        };
        let put = |batch: Batch| match &batch.changes[..] {
            [Change::PutClient(client)] => client.clone(),
            other => panic!("{other:?}"),
        };
        let one = made("acme");
        let added = add(&one, "second", Some(60)).unwrap();
        let expects = vec![Expect::Client(Box::new(one.clone()))];
        assert_eq!(added.batch.expects, expects);
        let second = added.answer;
        assert_eq!(second.expires_at, Some(Timestamp::from_ms(61_000)));
        let two = put(added.batch);
        assert_eq!(two.secrets, [one.secrets[0].clone(), second.clone()]);
        let refused = DirectoryRefusal::TooManySecrets { max: 2 };
        assert_eq!(add(&two, "a third", None), Err(refused));

        let remove = |client: &ApiClient, id, now_ms| {
            let now = Timestamp::from_ms(now_ms);
            remove_secret(now, &acme, Some(client.clone()), id)
        };
        let first = one.secrets[0].id;
        let left = put(remove(&two, first, 2_000).unwrap().batch);
        assert_eq!(left.secrets, [second]);
        assert_eq!(
            remove(&left, first, 2_000),
            Err(DirectoryRefusal::SecretUnknown)
        );
        // The second has expired, so the first is the only one; and it makes room for another.
        assert_eq!(
            remove(&two, first, 61_000),
            Err(DirectoryRefusal::LastSecret)
        );
        let m = &mut Moment::new(Timestamp::from_ms(61_000), 7);
        let third = add_secret(m, &acme, Some(two), SecretDigest::of("third"), None).unwrap();
        let kept = put(third.batch).secrets;
        assert_eq!(kept, [one.secrets[0].clone(), third.answer]);
        let umbrella = owner("umbrella");
        let theirs = remove_secret(Timestamp::from_ms(1_000), &umbrella, Some(one), first);
        assert_eq!(theirs, Err(DirectoryRefusal::ClientUnknown));
    }

    #[test]
    fn a_token_is_valid_for_its_lifetime_and_only_with_its_client() {
        let client = made("acme");
        let scopes = Scopes::NONE.with(Scope::LogsRead);
        let digest = SecretDigest::of("token");
        let token = AccessToken {
            digest,
            client: client.id.clone(),
            scopes,
            expires_at: Timestamp::from_ms(1_000 + 3_600_000),
        };
        let batch = Batch {
            expects: vec![Expect::Taken(UniqueName::Client(client.id.clone()))],
            changes: vec![Change::PutToken(token)],
            ..Batch::default()
        };
        let issued = issue_token(&moment(), &client, scopes, digest, 3_600);
        assert_eq!(issued, batch);
    }

    fn moment() -> Moment {
        Moment::new(Timestamp::from_ms(1_000), 7)
    }

    fn draft(id: &str) -> Customer {
        let id = Some(CustomerId::parse(id).unwrap());
        draft_customer(
            &mut moment(),
            NewCustomer {
                id,
                name: "Acme".into(),
            },
        )
    }

    fn new_client() -> NewApiClient {
        let scopes = Scopes::NONE.with(Scope::LogsRead);
        NewApiClient {
            name: "meter reader".into(),
            scopes,
            secret: SecretDigest::of("secret"),
        }
    }

    fn owner(customer: &str) -> ClientOwner {
        ClientOwner::Customer(CustomerId::parse(customer).unwrap())
    }

    fn made(customer: &str) -> ApiClient {
        create_client(&mut moment(), Some(owner(customer)), &[], new_client())
            .unwrap()
            .answer
    }
}
