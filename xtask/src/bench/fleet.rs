//! How does a service come to know a fleet? A customer, its API client, and devices by the
//! million over the API.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::service::{OPERATOR, Service};
use crate::steps::Stop;

/// The first address devices send from: the first of the network `signalbox load` gives them.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 64, 0, 0]);

/// How long a small request may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an import may take.
const IMPORT_PATIENCE: Duration = Duration::from_secs(1_800);

const JSON: &str = "application/json";

/// A customer's program: what proves who it is.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    id: String,
    secret: String,
}

impl Owner {
    /// Makes a customer with one API client.
    pub(crate) fn make(service: &Service) -> Result<Self, Stop> {
        let operator = service.client(OPERATOR, PATIENCE);
        let path = "/operator-api/v1/customers";
        let body = json!({ "id": "scale", "name": "Scale" }).to_string();
        operator.post(path, JSON, &body, 201)?;
        let path = "/operator-api/v1/customers/scale/clients";
        let made = operator.post(path, JSON, &json!({ "name": "bench" }).to_string(), 201)?;
        Ok(Self {
            id: text(&made, "clientId")?,
            secret: text(&made, "clientSecret")?,
        })
    }

    /// A new access token, good for longer than any round.
    pub(crate) fn token(&self, service: &Service) -> Result<String, Stop> {
        let body = json!({
            "grant_type": "client_credentials",
            "client_id": self.id,
            "client_secret": self.secret,
        });
        let nobody = service.client("", PATIENCE);
        let path = "/management-api/oauth/token";
        text(
            &nobody.post(path, JSON, &body.to_string(), 200)?,
            "access_token",
        )
    }

    /// Makes so many devices known; returns after how many seconds all of them are durable.
    pub(crate) fn import(&self, service: &Service, devices: u32) -> Result<f64, Stop> {
        let client = service.client(&self.token(service)?, IMPORT_PATIENCE);
        let path = "/management-api/v1/devices/import";
        let begun_at = Instant::now();
        let lines = (0..devices).map(line);
        let told = client.post_lines(path, "application/x-ndjson", lines, 200)?;
        let took_s = begun_at.elapsed().as_secs_f64();
        if told["created"].as_u64() == Some(devices.into()) {
            return Ok(took_s);
        }
        Err(Stop::Failed(format!(
            "{devices} devices are to be imported: {told}"
        )))
    }
}

/// A device as the import reads it: named and addressed as `signalbox load` names and addresses
/// it, so that it may register without DTLS.
fn line(number: u32) -> String {
    let ip = Ipv4Addr::from_bits(FIRST_ADDRESS + number);
    format!(r#"{{"deviceId":"{number:019}","ip":"{ip}"}}"#)
}

fn text(body: &Value, name: &str) -> Result<String, Stop> {
    let text = body[name].as_str().map(str::to_owned);
    text.ok_or_else(|| Stop::Failed(format!("no {name} in {body}")))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_device_is_imported_as_it_will_register() {
        let json = r#"{"deviceId":"0000000000000065537","ip":"127.65.0.1"}"#;
        assert_eq!(line(65_537), json);
    }
}
