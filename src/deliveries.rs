//! What do deliveries need? Destinations, and an HTTP client, which is made from the configuration
//! and checked before anything starts.

use std::sync::Arc;
use std::time::Duration;

use actors::broker::BrokerConnector;
use actors::clock::Clock;
use actors::delivery::{BrokerConnections, CommandCall, DeliveryParts};
use actors::http::{HttpClient, HttpError, HttpOptions};

use engine::delivery::destination::Destination;
use store::{Store, Unavailable};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::warn;

use crate::config::Config;
use crate::setting_file::{UnreadableSettingFile, read_if_set};
use crate::storage::Storage;

/// The pause before the destinations are read again.
const RETRY: Duration = Duration::from_millis(500);

/// Why events could not be delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The file with CA certificates cannot be read.
    #[error(transparent)]
    CaFile(#[from] UnreadableSettingFile),
    /// The HTTP client cannot be made.
    #[error("cannot set up deliveries: {0}")]
    Http(#[from] HttpError),
}

/// All destinations, once they can be read.
pub(crate) async fn all_destinations(store: &dyn Store) -> Vec<Destination> {
    loop {
        match store.all_customer_settings().await {
            Ok(settings) => {
                let destinations = settings.into_iter().flat_map(|it| it.destinations);
                return destinations.collect();
            }
            Err(Unavailable) => warn!("the destinations cannot be read"),
        }
        sleep(RETRY).await;
    }
}

/// What deliveries need; they give the commands of brokers to `commands`.
pub(crate) fn parts(
    config: &Config,
    storage: &Storage,
    clock: &Clock,
    commands: mpsc::Sender<CommandCall>,
) -> Result<DeliveryParts, DeliveryError> {
    let http = http(config)?;
    Ok(DeliveryParts {
        clock: clock.clone(),
        commits: storage.store.clone(),
        store: storage.store.clone(),
        brokers: BrokerConnector::beside(&http),
        connections: BrokerConnections::default(),
        http,
        commands,
        policy: config.policy(),
        master_key: Arc::clone(&storage.master_key),
        rules: Arc::new(config.delivery_rules()),
    })
}

/// The HTTP client for deliveries.
pub fn http(config: &Config) -> Result<HttpClient, DeliveryError> {
    Ok(HttpClient::new(outbound(config)?)?)
}

fn outbound(config: &Config) -> Result<HttpOptions, DeliveryError> {
    let authorities = read_if_set("delivery_ca_file", config.delivery_ca_file.as_deref())?;
    let usual = HttpOptions::under(config.policy());
    let timeout = Duration::from_millis(u64::from(config.delivery_timeout_ms));
    Ok(HttpOptions {
        timeout,
        connect_timeout: usual.connect_timeout.min(timeout),
        idle_per_host_max: config.delivery_parallel_max as usize,
        authorities,
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use engine::delivery::address::policy::AddressPolicy;

    use super::*;

    #[test]
    fn private_addresses_are_called_only_if_the_operator_allows_it() {
        let usual = outbound(&Config::of_defaults()).unwrap();
        assert_eq!(usual.policy, AddressPolicy::PublicOnly);
        assert_eq!(usual.timeout, Duration::from_secs(20));
        assert_eq!(usual.idle_per_host_max, 64);
        assert!(usual.authorities.is_none());
        let allowed = Config {
            allow_private_destinations: true,
            delivery_timeout_ms: 50,
            delivery_parallel_max: 200,
            ..Config::of_defaults()
        };
        let allowed = outbound(&allowed).unwrap();
        assert_eq!(allowed.policy, AddressPolicy::PrivateAllowed);
        let timeouts = (allowed.timeout, allowed.connect_timeout);
        assert_eq!(
            timeouts,
            (Duration::from_millis(50), Duration::from_millis(50))
        );
        assert_eq!(allowed.idle_per_host_max, 200);
    }

    #[test]
    fn a_missing_certificate_file_is_named() {
        let config = Config {
            delivery_ca_file: Some("/nowhere/authorities.pem".into()),
            ..Config::of_defaults()
        };
        let error = outbound(&config).unwrap_err().to_string();
        assert!(error.contains("/nowhere/authorities.pem"), "{error}");
    }
}
