//! How is the body that installs a plugin parsed?

use engine::delivery::address::plugin::{ServerDomain, WebhookKey};
use engine::delivery::address::policy::AddressPolicy;
use engine::delivery::partner::Partner;
use engine::directory::destination::NewPlugin;

use crate::api::error::ApiError;
use crate::api::fields::Fields;

/// The plugin of a partner that a body installs.
pub(super) fn new_plugin(
    mut fields: Fields,
    partner: &'static Partner,
    policy: AddressPolicy,
) -> Result<NewPlugin, ApiError> {
    let server = fields.required("serverDomain", |text| ServerDomain::parse(text, policy));
    let key = fields.required("webhookKey", WebhookKey::parse);
    let new = server
        .zip(key)
        .map(|(server_domain, webhook_key)| NewPlugin {
            partner,
            server_domain,
            webhook_key,
        });
    fields.finish(new)
}
