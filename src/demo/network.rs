//! What does the mobile network do in the demo? It hands in SMS of devices, takes SMS to devices,
//! and reports that they were delivered.

use serde_json::{Value, json};

use crate::rest_client::{CallError, ClientCredentials, RestClient};

const SMS: &str = "/operator-api/v1/network/sms";

/// The network, which calls the operator API.
pub(super) struct DemoNetwork {
    /// Takes SMS, with the operator's token.
    operator: RestClient,
    /// Hands in messages and reports, with a token of an API client of the network.
    gateway: RestClient,
}

impl DemoNetwork {
    /// Creates an API client of the network and gets a token for it. Returns its id, too.
    pub(super) async fn admitted(
        base: &str,
        operator: RestClient,
    ) -> Result<(Self, String), CallError> {
        let key = operator.create_network_key("demo").await?;
        let mut gateway = RestClient::new(base, ClientCredentials::None)?;
        gateway.authorize(&key).await?;
        Ok((Self { operator, gateway }, key.id))
    }

    /// Hands in a message of the device with a number.
    pub(super) async fn hand_in(&self, msisdn: &str, text: &str) -> Result<(), CallError> {
        let message = json!({
            "source_address": msisdn, "dest_address": "1234", "payload": text, "dcs": 0, "pid": 0,
        });
        let path = format!("{SMS}/mo");
        self.gateway.post(&path, &message).await.map(drop)
    }

    /// Takes the SMS that wait, and returns their ids.
    pub(super) async fn take(&self) -> Result<Vec<u64>, CallError> {
        let taken = self.operator.post(&format!("{SMS}/mt"), &json!({})).await?;
        taken.items()?.iter().map(|sms| sms.number("/id")).collect()
    }

    /// Reports that an SMS reached its device.
    pub(super) async fn report_delivered(&self, id: u64) -> Result<(), CallError> {
        let report: Value = json!({ "id": id, "status": "DELIVERED" });
        let path = format!("{SMS}/dlr");
        self.gateway.post(&path, &report).await.map(drop)
    }
}
