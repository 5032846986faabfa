//! What is the JSON of a plugin? Its configuration without the key.

use serde::Serialize;

use engine::delivery::destination::{Destination, DestinationState, Plugin, Replay};

use crate::api::destinations::MASKED;
use crate::api::words::{PluginStatus, Word as _};

/// The plugin was failed and is active again.
pub(super) const RESTARTED: &str = "RESTARTED";

/// The plugin was not failed.
pub(super) const UNCHANGED: &str = "UNCHANGED";

/// A plugin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct PluginBody {
    id: String,
    partner: String,
    server_domain: String,
    /// It is a credential: only that there is one is shown.
    webhook_key: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<String>,
    replaying: bool,
    created: String,
    updated: String,
}

/// The result of a restart.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct RestartedPluginBody {
    plugin: PluginBody,
    restart_status: &'static str,
    message: &'static str,
}

impl PluginBody {
    /// The plugin.
    pub(in crate::api) fn of(destination: &Destination, plugin: &Plugin) -> Self {
        Self {
            id: destination.id.to_string(),
            partner: plugin.partner.to_string(),
            server_domain: plugin.server_domain.to_string(),
            webhook_key: MASKED,
            status: PluginStatus(destination.state).word(),
            failure_reason: destination.failure.as_deref().map(Into::into),
            replaying: destination.replay == Replay::UnderWay,
            created: destination.created_at.iso().to_string(),
            updated: destination.updated_at.iso().to_string(),
        }
    }
}

impl RestartedPluginBody {
    /// The plugin after a restart, and the state it had before.
    pub(in crate::api) fn of(plugin: PluginBody, before: DestinationState) -> Self {
        let (restart_status, message) = match before {
            DestinationState::Failed => (RESTARTED, "Events are delivered again."),
            DestinationState::RolledOut | DestinationState::Active => {
                (UNCHANGED, "The plugin has not failed; nothing was changed.")
            }
        };
        Self {
            plugin,
            restart_status,
            message,
        }
    }
}
