//! How is a bootstrap configuration parsed? Every fault is reported at once.

use serde_json::Value as Json;

use engine::bootstrap::{AccountSecurity, BootstrapConfig, BootstrapServer};
use engine::directory::bootstrap::{
    ConfigFault, check_uri, configured, parse_binding, parse_uri, parse_value,
};
use engine::limits::LIFETIME_S_MAX;
use engine::policy::CustomerSettings;

use crate::api::error::ApiError;
use crate::api::fields::{FieldFault, Fields};
use crate::api::words::Word;

/// The security of an account that this version cannot give to devices.
const UNSUPPORTED: [&str; 2] = ["RPK", "X509"];

/// A configuration; its values have the types of the object model of the customer.
pub(super) fn new_config(
    mut fields: Fields,
    settings: &CustomerSettings,
) -> Result<BootstrapConfig, ApiError> {
    let servers = fields.objects("servers", server);
    if servers.is_none() && !fields.has_faults() {
        fields.fault("servers", FieldFault::required("is required"));
    }
    let catalog = settings.catalog();
    let objects = match fields.has("objects") {
        true => fields.values_by_name("objects", |path, value| {
            Ok(parse_value(&catalog, path, &scalar(value)?)?)
        }),
        false => Some(Vec::new()),
    };
    let config = servers.zip(objects).and_then(|(servers, objects)| {
        let config = configured(servers, objects);
        let faults = config.as_ref().err().into_iter().flatten();
        for fault in faults {
            fields.fault(&field_of(fault), wrong(fault));
        }
        config.ok()
    });
    fields.finish(config)
}

fn server(fields: &mut Fields) -> Option<BootstrapServer> {
    let short_id = fields.required_number("shortId", 1..=65_534);
    let lifetime_s = fields.required_number("lifetime", 1..=LIFETIME_S_MAX);
    let binding = fields.required("binding", parse_binding);
    let security = fields.required("security", |text| match UNSUPPORTED.contains(&text) {
        true => Err(format!(
            "{text} is not supported: the service has no key pairs or certificates to give to \
             devices; use PSK"
        )),
        false => AccountSecurity::read(text),
    });
    let has_uri = fields.has("uri");
    let uri = fields.optional("uri", |text| {
        let uri = parse_uri(text)?;
        security.map_or(Ok(()), |security| check_uri(&uri, security))?;
        Ok::<_, engine::directory::bootstrap::InvalidServerUri>(uri)
    });
    if has_uri && uri.is_none() {
        return None;
    }
    Some(BootstrapServer {
        short_id: u16::try_from(short_id?).ok()?,
        uri,
        lifetime_s: lifetime_s?,
        binding: binding?,
        security: security?,
    })
}

/// A value in its text form.
fn scalar(value: &Json) -> Result<String, FieldFault> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Number(number) => Ok(number.to_string()),
        Json::Bool(truth) => Ok(truth.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            Err(FieldFault::wrong_type("a string, a number or a boolean"))
        }
    }
}

fn field_of(fault: &ConfigFault) -> String {
    match fault {
        ConfigFault::ServerCount => "servers".to_owned(),
        ConfigFault::ShortIdRepeated(place) => format!("servers[{place}].shortId"),
        ConfigFault::ValueCount => "objects".to_owned(),
        ConfigFault::Overlap(path) | ConfigFault::NoServer(path) => format!("objects.{path}"),
    }
}

fn wrong(fault: &ConfigFault) -> FieldFault {
    match fault {
        ConfigFault::ServerCount | ConfigFault::ValueCount => FieldFault::out_of_range(fault),
        ConfigFault::ShortIdRepeated(_) | ConfigFault::Overlap(_) => {
            FieldFault::repeated_item(fault)
        }
        ConfigFault::NoServer(_) => FieldFault::from(fault),
    }
}
