//! What does a customer's program say to the API, and what does it make of the answers?
//!
//! The calls are those anybody could make over HTTP; nothing of the service is reached in any
//! other way.

mod api;

use reqwest::Method;
use serde_json::{Value, json};

use self::api::{Api, Bearer};

pub(super) use self::api::CallError;

/// Where tokens are given.
pub(super) const TOKENS: &str = "/management-api/oauth/token";
/// Where devices are made and looked at.
pub(super) const DEVICES: &str = "/management-api/v1/devices";
/// Where devices are asked for something.
pub(super) const ACTIONS: &str = "/management-api/v1/integrate/devices";
/// Where requests are looked at.
pub(super) const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";
/// Where webhooks are made and looked at.
pub(super) const WEBHOOKS: &str = "/management-api/v1/integrate/clouds/webhooks";
/// Where the administration log is read.
pub(super) const LOG: &str = "/management-api/v1/administrationLogs";

/// What carries a request to a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Over {
    Udp,
    Coap,
    Lwm2m,
}

const CUSTOMERS: &str = "/operator-api/v1/customers";
const SETTINGS: &str = "/management-api/v1/settings";

/// What the demo calls its webhook.
const WEBHOOK_NAME: &str = "Demo endpoint";

/// Whoever runs the service, as far as the demo needs them.
pub(super) struct Operator {
    api: Api,
    token: Bearer,
}

/// A customer's program with an access token.
pub(super) struct Caller {
    api: Api,
    client: Client,
    token: Bearer,
    token_lifetime_s: u64,
}

/// What proves that a program acts for a customer.
#[derive(Clone)]
pub(super) struct Client {
    /// Its id.
    pub(super) id: String,
    /// Its secret, which the API shows once.
    pub(super) secret: String,
}

/// An action request as the API shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Request {
    pub(super) id: String,
    /// What was asked of whom, as in `read /3/0/0 of meter`.
    pub(super) asked: String,
    pub(super) status: String,
    pub(super) attempts: u64,
    pub(super) attempts_left: u64,
    pub(super) code: Option<String>,
    pub(super) payload: Option<String>,
    pub(super) error: Option<String>,
}

/// An entry of the administration log as the API shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) message: String,
    pub(super) description: String,
    pub(super) category: String,
}

/// A device as the API's inspector shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Inspection {
    pub(super) iccid: String,
    /// Whether it is awake, asleep or not registered.
    pub(super) presence: String,
    pub(super) registration: Option<Registration>,
}

/// A registration as the API shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Registration {
    pub(super) version: String,
    pub(super) lifetime_s: u64,
    pub(super) queue_mode: bool,
    pub(super) objects: Vec<u64>,
}

impl Operator {
    /// Somebody with the operator's token.
    pub(super) fn new(base: &str, token: String) -> Result<Self, CallError> {
        Ok(Self {
            api: Api::at(base)?,
            token: Bearer(token),
        })
    }

    /// Makes a customer; one of an earlier run will do.
    pub(super) async fn ensure_customer(&self, id: &str, name: &str) -> Result<(), CallError> {
        let body = json!({ "id": id, "name": name });
        let made = self.api.post(&self.token, CUSTOMERS, &body).await;
        made.map(drop).or_else(CallError::forgive_conflict)
    }

    /// Makes an API client of a customer.
    pub(super) async fn create_client(&self, customer: &str) -> Result<Client, CallError> {
        let path = format!("{CUSTOMERS}/{customer}/clients");
        let body = json!({ "name": "demo" });
        let made = self.api.post(&self.token, &path, &body).await?;
        Ok(Client {
            id: made.text("/clientId")?,
            secret: made.text("/clientSecret")?,
        })
    }
}

impl Caller {
    /// Takes a token for a client.
    pub(super) async fn of_client(base: &str, client: Client) -> Result<Self, CallError> {
        let token = Bearer(String::new());
        let mut caller = Self {
            api: Api::at(base)?,
            client,
            token,
            token_lifetime_s: 0,
        };
        caller.renew_token().await?;
        Ok(caller)
    }

    /// Takes another token.
    pub(super) async fn renew_token(&mut self) -> Result<(), CallError> {
        let body = json!({ "grant_type": "client_credentials" });
        let given = self.api.post(&self.client, TOKENS, &body).await?;
        self.token = Bearer(given.text("/access_token")?);
        self.token_lifetime_s = given.number("/expires_in")?;
        Ok(())
    }

    /// Makes a device known; one of an earlier run will do if it is this customer's.
    pub(super) async fn ensure_device(&self, device: &Value) -> Result<(), CallError> {
        let made = self.api.post(&self.token, DEVICES, device).await;
        made.map(drop).or_else(CallError::forgive_conflict)
    }

    /// Has devices read whenever they register or update their registration.
    pub(super) async fn enable_passive_reporting(&self, platform: &str) -> Result<(), CallError> {
        let path = format!("{SETTINGS}/{platform}/LWM2M_PASSIVE_REPORTING");
        let body = json!({ "state": "ENABLED" });
        self.api.patch(&self.token, &path, &body).await.map(drop)
    }

    /// Has what devices say posted to an endpoint, signed with a secret, and returns the webhook's
    /// id. One of an earlier run leads nowhere any more, and goes.
    pub(super) async fn make_webhook(&self, url: &str, secret: &str) -> Result<String, CallError> {
        for known in self.read(WEBHOOKS).await?.items()? {
            if known.text("/name")? == WEBHOOK_NAME {
                let path = format!("{WEBHOOKS}/{}", known.text("/id")?);
                self.api.call(&self.token, Method::DELETE, &path).await?;
            }
        }
        let body = json!({
            "name": WEBHOOK_NAME, "url": url, "secret": secret, "jsonPayloadEnabled": true,
        });
        let made = self.api.post(&self.token, WEBHOOKS, &body).await?;
        made.text("/id")
    }

    /// Looks at a device.
    pub(super) async fn inspect(&self, device: &str) -> Result<Inspection, CallError> {
        let shown = self.read(&format!("{DEVICES}/{device}")).await?;
        let registration = match shown.has("/registration") {
            true => Some(Registration {
                version: shown.text("/registration/version")?,
                lifetime_s: shown.number("/registration/lifetime")?,
                queue_mode: shown.is_true("/registration/queueMode"),
                objects: shown.numbers("/registration/objects", "/id"),
            }),
            false => None,
        };
        let (iccid, presence) = (shown.text("/iccid")?, shown.text("/presence/state")?);
        Ok(Inspection {
            iccid,
            presence,
            registration,
        })
    }

    /// Looks what is known of a value of a device.
    pub(super) async fn known_value(
        &self,
        device: &str,
        path: &str,
    ) -> Result<Option<Value>, CallError> {
        let shown = self.read(&format!("{DEVICES}/{device}")).await?;
        Ok(shown.value_where("/values", "path", path))
    }

    /// Asks a device for something and returns the request's id.
    pub(super) async fn ask(
        &self,
        over: Over,
        device: &str,
        asked: &Value,
    ) -> Result<String, CallError> {
        let path = over.path(device);
        self.api.post(&self.token, &path, asked).await?.text("/id")
    }

    /// Looks at a request.
    pub(super) async fn request(&self, id: &str) -> Result<Request, CallError> {
        Request::of(&self.read(&format!("{REQUESTS}/{id}")).await?)
    }

    /// Looks at the latest requests, the latest first.
    pub(super) async fn latest_requests(&self) -> Result<Vec<Request>, CallError> {
        let page = self.read(&format!("{REQUESTS}?pageSize=25")).await?;
        page.items()?.iter().map(Request::of).collect()
    }

    /// Takes a request back and returns its status.
    pub(super) async fn cancel(&self, id: &str) -> Result<String, CallError> {
        let path = format!("{REQUESTS}/{id}");
        self.api
            .call(&self.token, Method::DELETE, &path)
            .await?
            .text("/status")
    }

    /// Looks at the latest entries of the administration log about a device, newest first.
    pub(super) async fn latest_entries(&self, iccid: &str) -> Result<Vec<Entry>, CallError> {
        let page = self.read(&format!("{LOG}?iccid={iccid}")).await?;
        page.items()?.iter().map(Entry::of).collect()
    }

    /// What proves that this program acts for its customer.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The token it shows.
    pub(super) fn token(&self) -> &str {
        &self.token.0
    }

    /// How long a token lasts.
    pub(super) fn token_lifetime_s(&self) -> u64 {
        self.token_lifetime_s
    }

    async fn read(&self, path: &str) -> Result<api::Answer, CallError> {
        self.api.call(&self.token, Method::GET, path).await
    }
}

impl Over {
    /// Where a device is asked for something.
    pub(super) fn path(self, device: &str) -> String {
        let protocol = match self {
            Self::Udp => "UDP",
            Self::Coap => "COAP",
            Self::Lwm2m => "LWM2M",
        };
        format!("{ACTIONS}/{device}/actions/{protocol}")
    }
}

impl Request {
    fn of(shown: &api::Answer) -> Result<Self, CallError> {
        Ok(Self {
            id: shown.text("/id")?,
            asked: asked(shown)?,
            status: shown.text("/status")?,
            attempts: shown.number("/sendAttempts")?,
            attempts_left: shown.number("/sendAttemptsLeft")?,
            code: shown.maybe_text("/resultData/code"),
            payload: shown.maybe_text("/resultData/payload"),
            error: shown.maybe_text("/resultData/errorMessage"),
        })
    }

    /// Whether it can still change.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.status.as_str(), "SCHEDULED" | "IN_PROGRESS")
    }
}

impl Entry {
    fn of(shown: &api::Answer) -> Result<Self, CallError> {
        Ok(Self {
            message: shown.text("/message")?,
            description: shown.text("/description")?,
            category: shown.text("/category")?,
        })
    }
}

/// What a request asks of whom.
fn asked(shown: &api::Answer) -> Result<String, CallError> {
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
