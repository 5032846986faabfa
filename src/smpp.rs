//! Which link to an SMS centre does the configuration describe? Checked before anything starts.

use std::path::{Path, PathBuf};

use actors::http::HttpError;
use actors::smpp::LinkOptions;
use engine::smpp::link::LinkRules;
use engine::smpp_pdu::pdu::Credentials;

use crate::config::{Config, SecretText, smpp_password};
use crate::setting_file::{UnreadableSettingFile, read, read_if_set};

/// Why SMS could not be sent and received.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] UnreadableSettingFile),
    /// The file with the password has something else.
    #[error("smpp_password_file {path}: the password {why}")]
    Password {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// TLS cannot be set up.
    #[error("cannot use smpp_ca_file: {0}")]
    Tls(#[from] HttpError),
}

/// The link, if one is configured.
pub fn options(config: &Config) -> Result<Option<LinkOptions>, LinkError> {
    if config.smpp_url.is_empty() {
        return Ok(None);
    }
    let authorities = read_if_set("smpp_ca_file", config.smpp_ca_file.as_deref())?;
    Ok(Some(LinkOptions {
        servers: config.smpp_url.clone(),
        rules: LinkRules {
            credentials: Credentials {
                system_id: config.smpp_system_id.as_str().into(),
                password: password(config)?.expose().into(),
                system_type: config.smpp_system_type.as_str().into(),
            },
            servers: config.smpp_url.len(),
            window: config.smpp_window,
            enquire_link_ms: config.smpp_enquire_link_ms.into(),
            response_timeout_ms: config.smpp_response_timeout_ms.into(),
            back_off_ms_max: config.smpp_reconnect_max_ms.into(),
        },
        authorities,
    }))
}

fn password(config: &Config) -> Result<SecretText, LinkError> {
    let refused = |path: &Path, why| LinkError::Password {
        path: path.to_owned(),
        why,
    };
    match (&config.smpp_password, config.smpp_password_file.as_deref()) {
        (Some(password), _) => Ok(password.clone()),
        (None, Some(path)) => {
            let octets = read("smpp_password_file", path)?;
            let text = String::from_utf8(octets);
            let text = text.map_err(|_| refused(path, "must be ASCII".to_owned()))?;
            smpp_password(text.trim_end_matches(['\r', '\n'])).map_err(|why| refused(path, why))
        }
        // The configuration has one of the two.
        (None, None) => Ok(SecretText::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_configured_by_default() {
        assert!(options(&Config::of_defaults()).unwrap().is_none());
    }

    #[test]
    fn a_password_may_be_in_a_file_and_its_faults_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let given = || {
            options(&Config {
                smpp_url: vec![actors::smpp::SmppServer {
                    host: "smsc.example".into(),
                    port: 2775,
                    is_tls: false,
                }],
                smpp_password_file: Some(path.clone()),
                ..Config::of_defaults()
            })
        };
        let missing = given().err().unwrap().to_string();
        assert!(
            missing.starts_with("cannot read smpp_password_file"),
            "{missing}"
        );
        std::fs::write(&path, "secret08\n").unwrap();
        let password = given().unwrap().unwrap().rules.credentials.password;
        assert_eq!(&*password, "secret08");
        std::fs::write(&path, "secret089").unwrap();
        let long = given().err().unwrap().to_string();
        assert!(
            long.contains("at most 8") && !long.contains("secret"),
            "{long}"
        );
    }
}
