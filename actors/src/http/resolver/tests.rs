//! Is each name checked by the addresses it has, each time anew?

use tokio::task::yield_now;

use super::*;

#[tokio::test]
async fn a_name_resolves_to_its_public_addresses() {
    let found = [
        "10.0.0.1",
        "93.184.216.34",
        "::1",
        "::ffff:127.0.0.1",
        "2606:4700::1",
    ];
    let guarded = guarded(AddressPolicy::PublicOnly, vec![&found]);
    let led_to = resolved(&guarded, "mixed.example").await;
    assert_eq!(
        led_to,
        Ok(vec!["93.184.216.34:0".into(), "[2606:4700::1]:0".into()])
    );
}

#[tokio::test]
async fn a_name_is_checked_again_when_its_addresses_change() {
    let guarded = guarded(
        AddressPolicy::PublicOnly,
        vec![
            &["93.184.216.34"],
            &["127.0.0.1"],
            &["::ffff:169.254.169.254", "fd00:ec2::254"],
            &[],
            &["93.184.216.35"],
        ],
    );
    let resolved = async || resolved(&guarded, "rebinding.example").await;
    assert_eq!(resolved().await, Ok(vec!["93.184.216.34:0".into()]));
    assert_eq!(resolved().await, Err(ResolveError::Forbidden));
    assert_eq!(resolved().await, Err(ResolveError::Forbidden));
    assert_eq!(resolved().await, Err(ResolveError::Unknown));
    assert_eq!(resolved().await, Ok(vec!["93.184.216.35:0".into()]));
}

#[tokio::test]
async fn a_name_may_resolve_to_private_addresses_where_they_are_allowed() {
    let guarded = guarded(
        AddressPolicy::PrivateAllowed,
        vec![&["127.0.0.1", "10.0.0.1"]],
    );
    let led_to = resolved(&guarded, "inside.example").await;
    assert_eq!(led_to, Ok(vec!["127.0.0.1:0".into(), "10.0.0.1:0".into()]));
}

#[tokio::test]
async fn localhost_is_private() {
    let guarded = GuardedResolver::new(AddressPolicy::PublicOnly, Arc::new(SystemResolver));
    let led_to = resolved(&guarded, "localhost").await;
    assert_eq!(led_to, Err(ResolveError::Forbidden));
}

#[tokio::test]
async fn concurrent_lookups_of_a_name_are_shared() {
    let guarded = guarded(
        AddressPolicy::PublicOnly,
        vec![&["93.184.216.34"], &["93.184.216.35"]],
    );
    let (one, other) = tokio::join!(
        resolved(&guarded, "busy.example"),
        resolved(&guarded, "busy.example")
    );
    assert_eq!(one, Ok(vec!["93.184.216.34:0".into()]));
    assert_eq!(other, one);
    let later = resolved(&guarded, "busy.example").await;
    assert_eq!(later, Ok(vec!["93.184.216.35:0".into()]));
    assert_eq!(
        guarded.under_way.lock().unwrap().len(),
        1,
        "what is over is forgotten"
    );
}

/// Answers one lookup after another with these addresses.
struct ScriptedResolver(Mutex<Vec<Vec<IpAddr>>>);

impl HostLookup for ScriptedResolver {
    fn addresses_of(&self, _name: String) -> Addresses {
        let mut left = self.0.lock().unwrap();
        let next = left.remove(0);
        Box::pin(async {
            // Name servers take time: other tasks look the name up meanwhile.
            yield_now().await;
            next
        })
    }
}

fn guarded(policy: AddressPolicy, lookups: Vec<&[&str]>) -> GuardedResolver {
    let parsed = |found: &[&str]| found.iter().map(|ip| ip.parse().unwrap()).collect();
    let lookups = lookups.into_iter().map(parsed).collect();
    GuardedResolver::new(policy, Arc::new(ScriptedResolver(Mutex::new(lookups))))
}

async fn resolved(guarded: &GuardedResolver, name: &str) -> Result<Vec<String>, ResolveError> {
    let found = guarded.resolve(name.parse().unwrap()).await;
    found
        .map(|found| found.map(|at| at.to_string()).collect())
        .map_err(|error| *error.downcast_ref().unwrap())
}
