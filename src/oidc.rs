//! Which identity provider does the configuration describe? Checked before anything starts.

use std::path::{Path, PathBuf};

use actors::http::HttpError;
use actors::http::identity_provider::IdentityProviderHttp;

use crate::config::{Config, GroupRule, SecretText};
use crate::setting_file::{UnreadableSettingFile, read, read_if_set};

/// Why people could not sign in with the identity provider.
#[derive(Debug, thiserror::Error)]
pub enum IdentityProviderError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] UnreadableSettingFile),
    /// The file with the secret has none.
    #[error("oidc_client_secret_file {0}: there is no secret in it")]
    NoSecret(PathBuf),
    /// TLS cannot be set up.
    #[error("cannot use oidc_ca_file: {0}")]
    Tls(#[from] HttpError),
}

/// An identity provider, and what its groups may do here.
#[derive(Clone, Debug)]
pub struct IdentityProviderOptions {
    /// Its issuer identifier.
    pub issuer: String,
    /// The id that it knows the service by.
    pub client_id: String,
    /// The secret of that client, if it has one.
    pub client_secret: Option<SecretText>,
    /// What people know it as.
    pub name: String,
    /// The scopes it is asked for.
    pub scope: String,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// Which group may do what.
    pub rules: Vec<GroupRule>,
    /// Where browsers reach the console, if they do not say.
    pub console: Option<String>,
    /// Calls it.
    pub http: IdentityProviderHttp,
}

/// The identity provider, if one is configured.
pub fn options(config: &Config) -> Result<Option<IdentityProviderOptions>, IdentityProviderError> {
    let Some(issuer) = config.oidc_issuer.clone() else {
        return Ok(None);
    };
    let authorities = read_if_set("oidc_ca_file", config.oidc_ca_file.as_deref())?;
    let secret = config.oidc_client_secret_file.as_deref();
    Ok(Some(IdentityProviderOptions {
        issuer,
        client_id: config.oidc_client_id.clone(),
        client_secret: secret.map(secret_of).transpose()?,
        name: config.oidc_name.clone(),
        scope: config.oidc_scope.clone(),
        groups_claim: config.oidc_groups_claim.clone(),
        rules: config.oidc_groups.clone(),
        console: config.public_console.clone(),
        http: IdentityProviderHttp::new(authorities.as_deref())?,
    }))
}

fn secret_of(path: &Path) -> Result<SecretText, IdentityProviderError> {
    let octets = read("oidc_client_secret_file", path)?;
    let text = String::from_utf8(octets).unwrap_or_default();
    match text.trim() {
        "" => Err(IdentityProviderError::NoSecret(path.to_owned())),
        secret => Ok(SecretText::of(secret)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_in_a_file_whose_faults_name_it() {
        assert!(options(&Config::of_defaults()).unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let given = || {
            options(&Config {
                oidc_issuer: Some("https://id.example".to_owned()),
                oidc_client_secret_file: Some(path.clone()),
                ..Config::of_defaults()
            })
        };
        let missing = given().unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot read oidc_client_secret_file"),
            "{missing}"
        );
        std::fs::write(&path, "\n").unwrap();
        assert!(given().unwrap_err().to_string().contains("no secret"));
        std::fs::write(&path, "a secret\n").unwrap();
        let secret = given().unwrap().unwrap().client_secret.unwrap();
        assert_eq!(secret.expose(), "a secret");
    }
}
