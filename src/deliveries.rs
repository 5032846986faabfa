//! With which HTTP client are events delivered? Made from the configuration and checked before
//! anything starts.

use std::time::Duration;

use actors::http::{HttpClient, HttpError, HttpOptions};

use crate::config::Config;
use crate::setting_file::{UnreadableSettingFile, read_if_set};

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
