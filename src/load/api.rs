//! Which API calls does a load test make?

use std::time::{Duration, Instant};

use harness::load::addressing::{EndpointPattern, Network};
use harness::load::behaviour::PreSharedKey;
use harness::load::tally::LoadFailure;
use harness::load::worker::ProgressCounts;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::display::Display;
use super::options::{ApiToken, LoadOptions, RequestMode};
use super::report::ImportReport;
use crate::rest_client::{ACTIONS, CallError, ClientCredentials, DEVICES, REQUESTS, RestClient};

/// A resource that every device has; each device answers a read of it.
const READ: &str = "/3/0/0";

/// The resource whose value devices send.
pub(super) const SENT: &str = "/3303/0/5700";

/// Messages per page of a history, as many as the API gives.
const PAGE: u32 = 25;

/// How long a caller waits whose customer has used up its rate.
const RATE_LIMITED: Duration = Duration::from_millis(200);

/// The timeout of a call that creates many devices.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(300);

/// Devices per call: enough that the cost of calls is negligible, few enough that memory stays
/// flat.
const IMPORT_LINES: u32 = 10_000;

/// The API of a server, and a thread of calls to it.
pub(super) struct LoadApi {
    pub(super) runtime: Runtime,
    pub(super) caller: LoadCaller,
}

/// A caller of the API.
#[derive(Clone)]
pub(super) struct LoadCaller {
    pub(super) client: RestClient,
    mode: &'static str,
}

impl LoadApi {
    /// The API at this base URL; reads have this mode.
    pub(super) fn at(base: &str, token: &ApiToken, mode: RequestMode) -> Result<Self, CallError> {
        let client = RestClient::new(base, ClientCredentials::Bearer(token.0.clone()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let mode = mode.word();
        Ok(Self {
            runtime: runtime.expect("the system has room for one more thread's events"),
            caller: LoadCaller { client, mode },
        })
    }

    /// Creates every device, many per call.
    pub(super) fn import_devices(&self, options: &LoadOptions) -> Result<ImportReport, CallError> {
        let begun_at = Instant::now();
        let mut display = Display::open("importing", options);
        let mut imported = ImportReport::default();
        let mut first = 0;
        while first < options.devices {
            let count = IMPORT_LINES.min(options.devices - first);
            let numbers = first..first + count;
            let key = options.psk.as_ref();
            let lines = import_lines(&options.endpoint_pattern, options.bind, key, numbers);
            let import = self.caller.client.import(lines, IMPORT_TIMEOUT);
            let answer = self.runtime.block_on(import)?;
            imported.known += answer.number("/created")? + answer.number("/unchanged")?;
            let refusal = answer.at("/refusals/0");
            if let Some(refusal) = refusal.filter(|_| imported.refused == 0) {
                eprintln!("signalbox: the import refused a line: {refusal}");
            }
            imported.refused += answer.number("/refused")?;
            first += count;
            display.show(ProgressCounts {
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

impl LoadCaller {
    /// Creates a read request for a device; returns its id.
    pub(super) async fn read(&self, device: &str) -> Result<String, CallError> {
        let path = format!("{ACTIONS}/{device}/actions/LWM2M");
        let body = json!({
            "action": "read",
            "resourceAddress": READ,
            "requestMode": self.mode,
        });
        self.client.post(&path, &body).await?.text("/id")
    }

    /// The status of a request.
    pub(super) async fn status(&self, id: &str) -> Result<String, CallError> {
        let request = self.client.read(&format!("{REQUESTS}/{id}")).await?;
        request.text("/status")
    }

    /// The number of the customer's requests that are SUCCEEDED.
    pub(super) async fn succeeded(&self) -> Result<u64, CallError> {
        let path = format!("{REQUESTS}?status=SUCCEEDED&pageSize=1");
        let page = self.client.read(&path).await?;
        // An empty list has one page.
        match page.items()?.is_empty() {
            true => Ok(0),
            false => page.number("/pageAmount"),
        }
    }

    /// The values that a device has sent since a time, according to its history.
    pub(super) async fn sent_by(&self, device: &str, since: &str) -> Result<Vec<f64>, CallError> {
        let list = format!(
            "{DEVICES}/{device}/messages?type=TELEMETRY_DATA&path={SENT}&from={since}\
             &pageSize={PAGE}"
        );
        let mut values = Vec::new();
        let mut path = list.clone();
        loop {
            let page = match self.client.read(&path).await {
                Err(CallError::Refused { status: 429, .. }) => {
                    sleep(RATE_LIMITED).await;
                    continue;
                }
                // A device that does not exist has no history.
                Err(CallError::Refused { status: 404, .. }) => return Ok(values),
                page => page?,
            };
            for item in page.items()? {
                let payload = item.at("/payload/value");
                values.extend(payload.and_then(|value| value[SENT].as_f64()));
            }
            match page.maybe_text("/nextCursor") {
                Some(cursor) => path = format!("{list}&cursor={cursor}"),
                None => return Ok(values),
            }
        }
    }
}

/// The lines of an import, with the names, addresses and keys with which the devices will register.
pub fn import_lines(
    pattern: &EndpointPattern,
    network: Network,
    key: Option<&PreSharedKey>,
    numbers: std::ops::Range<u32>,
) -> String {
    let psk = key.map(|key| {
        let digits = key.0.iter().map(|byte| format!("{byte:02x}"));
        json!({ "secretKey": digits.collect::<String>(), "format": "HEX" })
    });
    let line = |number| {
        let ip = network.address(number).to_string();
        let mut device = json!({ "deviceId": pattern.name(number), "ip": ip });
        if let Some(psk) = &psk {
            device["psk"] = psk.clone();
        }
        device.to_string() + "\n"
    };
    numbers.map(line).collect()
}

/// The kind of error, for counting.
pub(super) fn failure(error: &CallError) -> LoadFailure {
    match error {
        CallError::NoAnswer { source, .. } if source.is_timeout() => LoadFailure::CallTimeout,
        CallError::NoAnswer { .. } => LoadFailure::Connection,
        CallError::Refused { status, .. } => LoadFailure::Status(*status),
        CallError::Incomplete { .. } => LoadFailure::BadAnswer,
    }
}

#[cfg(test)]
mod tests {
    use super::{PreSharedKey, import_lines};

    #[test]
    fn a_device_is_imported_with_the_name_and_address_it_registers_with() {
        let pattern = "{:019}".parse().unwrap();
        let network = "127.64.0.0/10".parse().unwrap();
        let lines = import_lines(&pattern, network, None, 65_537..65_539);
        let first = r#"{"deviceId":"0000000000000065537","ip":"127.65.0.1"}"#;
        let next = r#"{"deviceId":"0000000000000065538","ip":"127.65.0.2"}"#;
        assert_eq!(lines, format!("{first}\n{next}\n"));
        let key = PreSharedKey(vec![0x00, 0xff]);
        let line = import_lines(&pattern, network, Some(&key), 0..1);
        let psk = r#""psk":{"format":"HEX","secretKey":"00ff"}"#;
        assert!(line.contains(psk), "{line}");
    }
}
