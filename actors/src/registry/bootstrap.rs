//! What is a device given in its bootstrap? Reads its profile and configuration, makes keys for it,
//! and saves those before the device may get them.

use std::rc::Rc;

use engine::bootstrap::{
    BootstrapConfig, BootstrapFault, BootstrapOrder, BootstrapPlan, BootstrapScope,
};
use engine::directory::bootstrap::{BootstrapKeys, FreshKey, ServiceUris, prepare};
use engine::ids::DeviceKey;
use engine::key_pair::KeyPair;
use engine::profile::Profile;
use engine::sealed::Sealed;
use engine::sealing::SecretOwner;
use store::CommitError;
use tracing::{debug, warn};
use zeroize::Zeroizing;

use super::context::ArbiterContext;
use crate::clock;

/// As many bytes as the keys of AES-128 have. Many devices support no more.
const PSK_BYTES: usize = 16;

/// How often a bootstrap is prepared anew because the profile of its device changed meanwhile.
const TRIES: u32 = 3;

/// Prepares the bootstrap of a device. What it returns is durable.
pub(super) async fn prepared(
    context: Rc<ArbiterContext>,
    device: DeviceKey,
    order: BootstrapOrder,
    uris: ServiceUris,
) -> Result<BootstrapPlan, BootstrapFault> {
    let uris = context.uris_for(&order, &uris);
    for _ in 0..TRIES {
        let Some(profile) = read(context.store.profile(device).await)? else {
            return Err(BootstrapFault::Unstored);
        };
        let config = config_of(&context, &profile, &order).await?;
        let of_bootstrap = SecretOwner::Bootstrap(device).context();
        let open = |key: &Sealed| context.master_key.open(key, &of_bootstrap).ok();
        let keys = context.fresh_keys(device, &open);
        let prepared = prepare(&profile, &config, &uris, &keys, context.clock.now())?;
        let Some(batch) = prepared.batch else {
            return Ok(prepared.plan);
        };
        match context.commits.commit(batch).await {
            Ok(()) => return Ok(prepared.plan),
            Err(CommitError::Conflict) => {
                debug!(%device, "the profile of a device changed during its bootstrap");
            }
            Err(error) => {
                warn!(%device, %error, "the key of a bootstrap was not saved");
                return Err(BootstrapFault::Unstored);
            }
        }
    }
    Err(BootstrapFault::Unstored)
}

/// The configuration of a device, or else that of its customer, or else the default.
async fn config_of(
    context: &ArbiterContext,
    profile: &Profile,
    order: &BootstrapOrder,
) -> Result<BootstrapConfig, BootstrapFault> {
    let scopes = [
        BootstrapScope::Device(profile.key()),
        BootstrapScope::Customer(profile.customer.clone()),
    ];
    for scope in scopes {
        if let Some(config) = read(context.store.bootstrap_config(scope).await)? {
            return Ok(config);
        }
    }
    let security = order.security(&profile.credentials);
    Ok(BootstrapConfig::of_this_service(security))
}

fn read<T>(answer: Result<T, store::Unavailable>) -> Result<T, BootstrapFault> {
    answer.map_err(|store::Unavailable| BootstrapFault::Unstored)
}

impl ArbiterContext {
    fn fresh_keys<'k>(
        &self,
        device: DeviceKey,
        open: &'k dyn Fn(&Sealed) -> Option<Zeroizing<Vec<u8>>>,
    ) -> BootstrapKeys<'k> {
        BootstrapKeys {
            psk: self.fresh_psk(device),
            pair: &|| KeyPair::generate(&mut clock::fill),
            server: self.associations.borrow().server_key().clone(),
            open,
        }
    }

    fn fresh_psk(&self, device: DeviceKey) -> FreshKey {
        let mut bytes = Zeroizing::new(vec![0; PSK_BYTES]);
        clock::fill(&mut bytes);
        let sealed = self
            .master_key
            .seal(&bytes, &SecretOwner::Device(device).context());
        FreshKey { bytes, sealed }
    }

    /// The URIs of the service: those that are set, or else where the device came to.
    fn uris_for(&self, order: &BootstrapOrder, set: &ServiceUris) -> ServiceUris {
        let address = self
            .sockets
            .of(order.peer.transport)
            .address_for(order.peer);
        let address = address.map(|ip| ip.to_string());
        let host = order.host.as_deref().or(address.as_deref());
        set.or_at(host, (self.sockets.coap.port(), self.sockets.coaps.port()))
    }
}
