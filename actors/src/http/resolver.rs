//! To which addresses does a name resolve? To those that may be called.
//!
//! A name is resolved for each connection and checked by its addresses at that time, so its owner
//! gains nothing by changing it in between (DNS rebinding).

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use engine::delivery::address::policy::AddressPolicy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::sync::OnceCell;

/// The addresses of a name; empty if it has none.
pub(crate) type Addresses = Pin<Box<dyn Future<Output = Vec<IpAddr>> + Send>>;

/// Looks up the addresses of names.
pub(crate) trait HostLookup: Send + Sync {
    /// All addresses of the name.
    fn addresses_of(&self, name: String) -> Addresses;
}

/// The system's resolver: its hosts file and its name servers.
pub(crate) struct SystemResolver;

impl HostLookup for SystemResolver {
    fn addresses_of(&self, name: String) -> Addresses {
        Box::pin(async move {
            let found = lookup_host((name, 0)).await;
            found.map_or_else(|_| Vec::new(), |found| found.map(|at| at.ip()).collect())
        })
    }
}

/// Why a name has no address to call.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum ResolveError {
    /// It has addresses, none of which may be called.
    #[error("none of its addresses may be called")]
    Forbidden,
    /// It has no address.
    #[error("it has no address")]
    Unknown,
}

/// Resolves names to addresses that may be called.
pub(crate) struct GuardedResolver {
    policy: AddressPolicy,
    lookup: Arc<dyn HostLookup>,
    /// Lookups in progress: the system uses a thread for each, and a name with slow servers must
    /// not take all of them.
    under_way: Mutex<HashMap<String, Weak<OnceCell<Vec<IpAddr>>>>>,
}

impl GuardedResolver {
    /// Passes on the addresses that the policy allows.
    pub(crate) fn new(policy: AddressPolicy, lookup: Arc<dyn HostLookup>) -> Self {
        Self {
            policy,
            lookup,
            under_way: Mutex::default(),
        }
    }

    /// The lookup of the name that is in progress, or a new one.
    fn joined(&self, name: &str) -> Arc<OnceCell<Vec<IpAddr>>> {
        // A map of weak references is consistent even after a panic.
        let under_way = self.under_way.lock();
        let mut under_way = under_way.unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|_, lookup| lookup.strong_count() > 0);
        if let Some(lookup) = under_way.get(name).and_then(Weak::upgrade) {
            return lookup;
        }
        let lookup = Arc::default();
        under_way.insert(name.to_owned(), Arc::downgrade(&lookup));
        lookup
    }
}

impl GuardedResolver {
    /// The addresses of a name that may be called, without their port.
    pub(crate) fn addresses(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Vec<SocketAddr>, ResolveError>> + use<> {
        let (joined, name) = (self.joined(name), name.to_owned());
        let lookup = Arc::clone(&self.lookup);
        let policy = self.policy;
        async move {
            let found = joined.get_or_init(|| lookup.addresses_of(name));
            allowed(found.await, policy)
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.addresses(name.as_str());
        Box::pin(async move {
            let addresses: Addrs = Box::new(addresses.await?.into_iter());
            Ok(addresses)
        })
    }
}

fn allowed(found: &[IpAddr], policy: AddressPolicy) -> Result<Vec<SocketAddr>, ResolveError> {
    if found.is_empty() {
        return Err(ResolveError::Unknown);
    }
    let allowed = found.iter().filter(|ip| policy.may_reach(**ip));
    // Port 0 is replaced by the port of the URL.
    let allowed: Vec<_> = allowed.map(|ip| SocketAddr::new(*ip, 0)).collect();
    if allowed.is_empty() {
        return Err(ResolveError::Forbidden);
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests;
