//! What does a customer's program say to the API while it is loaded?

use std::error::Error;
use std::time::Duration;

use harness::load::worker::Progress;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::display::Display;
use super::options::{Options, RequestMode, Token};
use super::report::Imported;

const DEVICES: &str = "/management-api/v1/devices/import";
const ACTIONS: &str = "/management-api/v1/integrate/devices";
const REQUESTS: &str = "/management-api/v1/integrate/devices/actions/requests";

/// What every device has; a read of it is answered by each.
const READ: &str = "/3/0/0";

/// Longer than any answer of a service that is alive takes.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The same for a call that makes many devices known.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// Devices of one call: enough that calls cost nothing, few enough that memory stays flat.
const IMPORT_LINES: u32 = 10_000;

/// The API of a server, and a thread of calls to it.
pub(super) struct Api {
    runtime: Runtime,
    caller: Caller,
}

/// A program that calls the API.
#[derive(Clone)]
pub(super) struct Caller {
    http: reqwest::Client,
    base: String,
    token: Token,
    read: &'static str,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// Nobody answered, or not in time.
    #[error("{}: {}", .0, cause(.0))]
    NoAnswer(#[from] reqwest::Error),
    /// The API refused.
    #[error("the API answered {status}: {body}")]
    Refused {
        /// With which status.
        status: StatusCode,
        /// What it says of it.
        body: String,
    },
    /// The answer lacks what the contract promises.
    #[error("the API's answer has no {0}")]
    Incomplete(&'static str),
}

impl Api {
    /// The API at an address.
    pub(super) fn at(base: &str, token: &Token) -> Result<Self, CallError> {
        let http = reqwest::Client::builder()
            .no_proxy()
            // It speaks plain HTTP: a machine without authorities of certificates will do.
            .tls_certs_only([])
            .tcp_nodelay(true)
            .timeout(CALL_TIMEOUT)
            .build()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.expect("the system has room for one more thread's events"),
            caller: Caller {
                http,
                base: base.to_owned(),
                token: token.clone(),
                read: "",
            },
        })
    }

    /// The thread of calls.
    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A program that reads as the options say.
    pub(super) fn caller(&self, mode: RequestMode) -> Caller {
        let read = match mode {
            RequestMode::Now => "SEND_NOW",
            RequestMode::WhenActive => "SEND_WHEN_ACTIVE",
        };
        Caller {
            read,
            ..self.caller.clone()
        }
    }

    /// Makes every device known, many at a time.
    pub(super) fn import_devices(&self, options: &Options) -> Result<Imported, CallError> {
        let begun_at = std::time::Instant::now();
        let mut display = Display::open("importing");
        let mut imported = Imported::default();
        let mut first = 0;
        while first < options.devices {
            let count = IMPORT_LINES.min(options.devices - first);
            let lines = lines(options, first, count);
            let answer = self.runtime.block_on(self.caller.import(lines))?;
            imported.known += number(&answer, "created")? + number(&answer, "unchanged")?;
            let refused = number(&answer, "refused")?;
            if let Some(refusal) = answer
                .pointer("/refusals/0")
                .filter(|_| imported.refused == 0)
            {
                eprintln!("signalbox: the import refuses a line: {refusal}");
            }
            imported.refused += refused;
            first += count;
            display.show(Progress {
                begun: first.into(),
                answered: imported.known,
                failed: imported.refused,
            });
        }
        display.close();
        imported.seconds = begun_at.elapsed().as_secs_f64();
        Ok(imported)
    }
}

impl Caller {
    /// Asks a device for a value; returns the request's id.
    pub(super) async fn read(&self, device: &str) -> Result<String, CallError> {
        let url = format!("{}{ACTIONS}/{device}/actions/LWM2M", self.base);
        let body = json!({
            "action": "read",
            "resourceAddress": READ,
            "requestMode": self.read,
        });
        let call = self.http.post(url).bearer_auth(&self.token.0).json(&body);
        let answer = accept(call.send().await?).await?;
        text(&answer, "id")
    }

    /// The status of a request.
    pub(super) async fn status(&self, id: &str) -> Result<String, CallError> {
        text(&self.look(&format!("{REQUESTS}/{id}")).await?, "status")
    }

    /// How many requests of the customer are SUCCEEDED.
    pub(super) async fn succeeded(&self) -> Result<u64, CallError> {
        let path = format!("{REQUESTS}?status=SUCCEEDED&pageSize=1");
        let page = self.look(&path).await?;
        let items = page.get("items").and_then(Value::as_array);
        // A list has a page even where it has nothing to show.
        match items.map(Vec::is_empty) {
            Some(true) => Ok(0),
            Some(false) => number(&page, "pageAmount"),
            None => Err(CallError::Incomplete("items")),
        }
    }

    async fn import(&self, lines: String) -> Result<Value, CallError> {
        let call = self.http.post(format!("{}{DEVICES}", self.base));
        let call = call
            .bearer_auth(&self.token.0)
            .timeout(IMPORT_TIMEOUT)
            .header("content-type", "application/x-ndjson")
            .body(lines);
        accept(call.send().await?).await
    }

    async fn look(&self, path: &str) -> Result<Value, CallError> {
        let call = self.http.get(format!("{}{path}", self.base));
        accept(call.bearer_auth(&self.token.0).send().await?).await
    }
}

impl CallError {
    /// The kind of error, for counting.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::NoAnswer(error) if error.is_timeout() => "http timeout".to_owned(),
            Self::NoAnswer(_) => "http connection".to_owned(),
            Self::Refused { status, .. } => format!("http {}", status.as_u16()),
            Self::Incomplete(_) => "http unexpected".to_owned(),
        }
    }
}

/// What lies at the bottom of an error; reqwest says it last.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(deeper) = last.source() {
        last = deeper;
    }
    last.to_string()
}

async fn accept(answer: Response) -> Result<Value, CallError> {
    let status = answer.status();
    let body = answer.text().await?;
    if !status.is_success() {
        return Err(CallError::Refused { status, body });
    }
    serde_json::from_str(&body).map_err(|_| CallError::Incomplete("JSON"))
}

fn lines(options: &Options, first: u32, count: u32) -> String {
    let mut lines = String::new();
    for device in first..first + count {
        let name = options.endpoint_pattern.name(device);
        let ip = options.bind.address(device).to_string();
        lines.push_str(&json!({ "deviceId": name, "ip": ip }).to_string());
        lines.push('\n');
    }
    lines
}

fn text(answer: &Value, name: &'static str) -> Result<String, CallError> {
    let text = answer.get(name).and_then(Value::as_str);
    text.map(str::to_owned).ok_or(CallError::Incomplete(name))
}

fn number(answer: &Value, name: &'static str) -> Result<u64, CallError> {
    let number = answer.get(name).and_then(Value::as_u64);
    number.ok_or(CallError::Incomplete(name))
}
