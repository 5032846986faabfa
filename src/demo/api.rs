//! How does the demo call the API, and parse its responses?
//!
//! It uses only calls that any program could make over HTTP; it has no other access to the service.

use serde_json::{Value, json};

use crate::rest_client::{
    ACTIONS, AccessToken, ApiKey, CallError, ClientCredentials, DEVICES, JsonAnswer, REQUESTS,
    RestClient,
};

/// The path of webhooks.
pub(super) const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";
/// The path of the administration log.
pub(super) const LOG: &str = "/management-api/v1/administrationLogs";

const SMS_FORWARDER: &str = "/management-api/v1/sms/forwarder";

const PLUGINS: &str = "/management-api/v1/partners/plugins";

/// The partner of the demo's plugin.
const PARTNER: &str = "gateway";

/// The path of the SMS of a SIM.
pub(super) fn sms_of(iccid: &str) -> String {
    format!("/management-api/v1/sims/{iccid}/sms")
}

/// The protocol of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DemoProtocol {
    Udp,
    Coap,
    Lwm2m,
}

const CODES: &str = "/console/codes";

const SETTINGS: &str = "/management-api/v1/settings";

/// The name of the demo's webhook.
const WEBHOOK_NAME: &str = "Demo endpoint";

/// A customer's program with an access token.
pub(super) struct DemoCaller {
    api: RestClient,
    key: ApiKey,
    token: AccessToken,
}

/// An action request in the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ShownAction {
    pub(super) id: String,
    /// The operation and the device, as in `read /3/0/0 of meter`.
    pub(super) operation: String,
    pub(super) status: String,
    pub(super) attempts: u64,
    pub(super) attempts_left: u64,
    pub(super) code: Option<String>,
    pub(super) payload: Option<String>,
    pub(super) error: Option<String>,
}

/// An entry of the administration log in the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ShownEntry {
    pub(super) message: String,
    pub(super) description: String,
    pub(super) category: String,
}

/// A device in the inspector.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ShownDevice {
    pub(super) iccid: String,
    /// Whether it is awake, asleep or not registered.
    pub(super) presence: String,
    pub(super) registration: Option<ShownRegistration>,
}

/// A registration in the inspector.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ShownRegistration {
    pub(super) version: String,
    pub(super) lifetime_s: u64,
    pub(super) queue_mode: bool,
    pub(super) objects: Vec<u64>,
}

impl DemoCaller {
    /// A caller with a new token for this key.
    pub(super) async fn with_key(base: &str, key: ApiKey) -> Result<Self, CallError> {
        let mut api = RestClient::new(base, ClientCredentials::None)?;
        let token = api.authorize(&key).await?;
        Ok(Self { api, key, token })
    }

    /// Replaces the token with a new one.
    pub(super) async fn renew_token(&mut self) -> Result<(), CallError> {
        self.token = self.api.authorize(&self.key).await?;
        Ok(())
    }

    /// A code that signs in to the console once, in the next ten minutes.
    pub(super) async fn sign_in_code(&self) -> Result<String, CallError> {
        let body = json!({ "clientId": self.key.id, "clientSecret": self.key.secret });
        self.api.post(CODES, &body).await?.text("/code")
    }

    /// Creates a device; one of an earlier run is kept if it belongs to this customer.
    pub(super) async fn ensure_device(&self, device: &Value) -> Result<(), CallError> {
        let made = self.api.post(DEVICES, device).await;
        made.map(drop).or_else(CallError::forgive_conflict)
    }

    /// Enables passive reporting: devices are read when they register or update their registration.
    pub(super) async fn enable_passive_reporting(&self, platform: &str) -> Result<(), CallError> {
        let path = format!("{SETTINGS}/{platform}/LWM2M_PASSIVE_REPORTING");
        let body = json!({ "state": "ENABLED" });
        self.api.patch(&path, &body).await.map(drop)
    }

    /// Creates a webhook with this URL and secret, and returns its id. The webhook of an earlier
    /// run is deleted: its endpoint no longer exists.
    pub(super) async fn make_webhook(&self, url: &str, secret: &str) -> Result<String, CallError> {
        for known in self.api.read(WEBHOOKS).await?.items()? {
            if known.text("/name")? == WEBHOOK_NAME {
                let path = format!("{WEBHOOKS}/{}", known.text("/id")?);
                self.api.delete(&path).await?;
            }
        }
        let body = json!({
            "name": WEBHOOK_NAME, "url": url, "secret": secret, "jsonPayloadEnabled": true,
        });
        let made = self.api.post(WEBHOOKS, &body).await?;
        made.text("/id")
    }

    /// Has SMS of devices and delivery reports forwarded to this URL.
    pub(super) async fn forward_sms(&self, url: &str) -> Result<(), CallError> {
        let forwarder = json!({ "url": url });
        self.api.put(SMS_FORWARDER, &forwarder).await.map(drop)
    }

    /// Sends an SMS to the device with this SIM, and returns its id.
    pub(super) async fn send_sms(&self, iccid: &str, text: &str) -> Result<u64, CallError> {
        let sms = json!({ "source_address": "1234", "payload": text });
        let sent = self.api.post(&sms_of(iccid), &sms).await?;
        sent.number("/id")
    }

    /// Installs the plugin of the demo's partner. That of an earlier run is uninstalled: its server
    /// no longer exists.
    pub(super) async fn install_plugin(&self, domain: &str, key: &str) -> Result<(), CallError> {
        for known in self.api.read(PLUGINS).await?.items()? {
            if known.text("/partner")? == PARTNER {
                let path = format!("{PLUGINS}/{}", known.text("/id")?);
                self.api.delete(&path).await?;
            }
        }
        let plugin = json!({ "serverDomain": domain, "webhookKey": key });
        let path = format!("/management-api/v1/partners/{PARTNER}/plugins");
        self.api.post(&path, &plugin).await.map(drop)
    }

    /// Gets a device from the inspector.
    pub(super) async fn inspect(&self, device: &str) -> Result<ShownDevice, CallError> {
        let shown = self.api.read(&format!("{DEVICES}/{device}")).await?;
        let registration = match shown.at("/registration") {
            Some(registration) => Some(ShownRegistration {
                version: shown.text("/registration/version")?,
                lifetime_s: shown.number("/registration/lifetime")?,
                queue_mode: registration["queueMode"] == true,
                objects: ids(&registration["objects"]),
            }),
            None => None,
        };
        let (iccid, presence) = (shown.text("/iccid")?, shown.text("/presence/state")?);
        Ok(ShownDevice {
            iccid,
            presence,
            registration,
        })
    }

    /// Gets the last known value of a path of a device.
    pub(super) async fn known_value(
        &self,
        device: &str,
        path: &str,
    ) -> Result<Option<Value>, CallError> {
        let shown = self.api.read(&format!("{DEVICES}/{device}")).await?;
        let mut values = shown
            .at("/values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let known = values.find(|value| value["path"] == path);
        Ok(known.and_then(|known| known.get("value").cloned()))
    }

    /// Creates an action request for a device and returns its id.
    pub(super) async fn ask(
        &self,
        over: DemoProtocol,
        device: &str,
        body: &Value,
    ) -> Result<String, CallError> {
        let path = over.path(device);
        self.api.post(&path, body).await?.text("/id")
    }

    /// Gets a request.
    pub(super) async fn request(&self, id: &str) -> Result<ShownAction, CallError> {
        ShownAction::of(&self.api.read(&format!("{REQUESTS}/{id}")).await?)
    }

    /// Gets the latest requests, newest first.
    pub(super) async fn latest_requests(&self) -> Result<Vec<ShownAction>, CallError> {
        let page = self.api.read(&format!("{REQUESTS}?pageSize=25")).await?;
        page.items()?.iter().map(ShownAction::of).collect()
    }

    /// Cancels a request and returns its status.
    pub(super) async fn cancel(&self, id: &str) -> Result<String, CallError> {
        let path = format!("{REQUESTS}/{id}");
        self.api.delete(&path).await?.text("/status")
    }

    /// Gets the latest log entries of a device, newest first.
    pub(super) async fn latest_entries(&self, iccid: &str) -> Result<Vec<ShownEntry>, CallError> {
        let page = self.api.read(&format!("{LOG}?iccid={iccid}")).await?;
        page.items()?.iter().map(ShownEntry::of).collect()
    }

    /// The key for which its tokens are issued.
    pub(super) fn key(&self) -> &ApiKey {
        &self.key
    }

    /// The current token.
    pub(super) fn token(&self) -> &AccessToken {
        &self.token
    }
}

impl DemoProtocol {
    /// The path that creates requests for a device.
    pub(super) fn path(self, device: &str) -> String {
        let protocol = match self {
            Self::Udp => "UDP",
            Self::Coap => "COAP",
            Self::Lwm2m => "LWM2M",
        };
        format!("{ACTIONS}/{device}/actions/{protocol}")
    }
}

impl ShownAction {
    fn of(shown: &JsonAnswer) -> Result<Self, CallError> {
        Ok(Self {
            id: shown.text("/id")?,
            operation: operation(shown)?,
            status: shown.text("/status")?,
            attempts: shown.number("/sendAttempts")?,
            attempts_left: shown.number("/sendAttemptsLeft")?,
            code: shown.maybe_text("/resultData/code"),
            payload: shown.maybe_text("/resultData/payload"),
            error: shown.maybe_text("/resultData/errorMessage"),
        })
    }

    /// Whether the request is not final.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.status.as_str(), "SCHEDULED" | "IN_PROGRESS")
    }
}

impl ShownEntry {
    fn of(shown: &JsonAnswer) -> Result<Self, CallError> {
        Ok(Self {
            message: shown.text("/message")?,
            description: shown.text("/description")?,
            category: shown.text("/category")?,
        })
    }
}

fn ids(objects: &Value) -> Vec<u64> {
    let objects = objects.as_array().into_iter().flatten();
    objects.filter_map(|object| object["id"].as_u64()).collect()
}

/// The operation of a request and its device.
fn operation(shown: &JsonAnswer) -> Result<String, CallError> {
    let device = shown.text("/deviceId")?;
    let words = |names: [&str; 3]| {
        let words = names.iter().filter_map(|name| {
            let word = shown.maybe_text(&format!("/requestData/{name}"));
            word.filter(|word| !word.is_empty())
        });
        words.collect::<Vec<_>>().join(" ")
    };
    Ok(match shown.text("/protocol")?.as_str() {
        "UDP" => format!(
            "datagram {:?} to {device}",
            shown.text("/requestData/payload")?
        ),
        "COAP" => format!("{} at {device}", words(["requestType", "path", "payload"])),
        _ => format!(
            "{} of {device}",
            words(["action", "resourceAddress", "data"])
        ),
    })
}
