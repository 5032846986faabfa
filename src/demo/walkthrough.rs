//! What are the steps of the demo? Each step calls the API, waits for the result, and prints what
//! the devices report meanwhile.

mod living;
mod messaging;
pub(super) mod plain;
mod sending;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use self::words::{change, registered};
use super::api::{DemoCaller, DemoProtocol, ShownAction};
use super::devices::{DemoDeviceStopped, DemoDevices, DeviceSpec};
use super::endpoint::WebhookEndpoint;
use super::output::{DemoOutput, LineSource};
use super::role::{BRIGHTNESS, DeviceRole, LATITUDE, TEMPERATURE, VOLUME};
use crate::rest_client::CallError;

/// The longest duration of a step; none takes a third of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval at which the API is polled for an expected change.
const POLL_EVERY: Duration = Duration::from_millis(40);
/// A device reports an exchange at about the same time as the API; its line comes first.
const REPORT_LAG: Duration = Duration::from_millis(10);

/// A text for the lamp's brightness, which is a number.
const NO_NUMBER: &str = "rather bright";

/// The steps, with the programs and devices that take part.
pub(super) struct Walkthrough<'a> {
    output: &'a mut DemoOutput,
    caller: DemoCaller,
    devices: DemoDevices,
    endpoint: &'a mut WebhookEndpoint,
    /// The state of each request when it was last printed.
    printed_by_request: BTreeMap<String, ShownState>,
}

/// The state of a request that is printed when it changes: its status and the attempts left.
type ShownState = (String, u64);

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StepError {
    /// A call to the API failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A device stopped by itself.
    #[error(transparent)]
    Gone(#[from] DemoDeviceStopped),
    /// It did not happen in time.
    #[error("timeout after {} s while waiting until {awaited}", PATIENCE.as_secs())]
    Late {
        /// The expected change.
        awaited: &'static str,
    },
    /// Something else happened.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The expected result.
        expected: &'static str,
        /// The actual result.
        found: String,
    },
    /// The socket of the endpoint or of a device cannot be opened.
    #[error("cannot open the socket of a device: {0}")]
    Socket(io::Error),
    /// The output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl<'a> Walkthrough<'a> {
    /// Starts with devices that were just started.
    pub(super) fn new(
        output: &'a mut DemoOutput,
        caller: DemoCaller,
        devices: DemoDevices,
        endpoint: &'a mut WebhookEndpoint,
    ) -> Self {
        Self {
            output,
            caller,
            devices,
            endpoint,
            printed_by_request: BTreeMap::new(),
        }
    }

    /// Waits until every device is registered, and gets each over the API.
    pub(super) async fn show_the_devices(&mut self) -> Result<(), StepError> {
        self.output.chapter("The devices register")?;
        let deadline = Deadline::of("every device is registered");
        while !self.devices.is_registered().await? {
            deadline.check()?;
            self.linger().await?;
        }
        self.print_events()?;
        for role in DeviceRole::ALL.into_iter().filter(|role| role.registers()) {
            let inspection = self.caller.inspect(role.id()).await?;
            let Some(registration) = &inspection.registration else {
                let found = format!("{} is {}", role.id(), inspection.presence);
                let expected = "a registration in the inspector";
                return Err(StepError::Unexpected { expected, found });
            };
            let text = registered(role, &inspection.presence, registration);
            self.output.print(LineSource::Service, text)?;
        }
        Ok(())
    }

    /// Reads a value from a device that is reachable.
    pub(super) async fn read_the_lamp(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("Read a value from a device that is awake")?;
        let body = json!({ "action": "read", "resourceAddress": BRIGHTNESS.to_string() });
        let text = "creates a request (SEND_NOW): read the brightness of the lamp";
        self.output.print(LineSource::Caller, text)?;
        let id = self
            .ask(DemoProtocol::Lwm2m, DeviceRole::Lamp, &body)
            .await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)
    }

    /// Observes a value of the lamp, and waits until a change is reported.
    pub(super) async fn observe_the_lamp(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("Observe a value: the device notifies each change")?;
        let path = TEMPERATURE.to_string();
        let body = json!({ "action": "observe-start", "resourceAddress": path });
        let text = "creates a request (SEND_NOW): observe the temperature of the lamp";
        self.output.print(LineSource::Caller, text)?;
        let id = self
            .ask(DemoProtocol::Lwm2m, DeviceRole::Lamp, &body)
            .await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)?;
        let warmer = json!(self.devices.warm_up(1).await?);
        let deadline = Deadline::of("the lamp's new temperature is known");
        let id = DeviceRole::Lamp.id();
        while self.caller.known_value(id, &path).await?.as_ref() != Some(&warmer) {
            deadline.check()?;
            self.linger().await?;
        }
        self.print_events()?;
        let text = format!("has the notified value: {path} of {id} is {warmer}");
        Ok(self.output.print(LineSource::Service, text)?)
    }

    /// Waits until the meter sleeps, then creates a request for it.
    pub(super) async fn queue_for_the_meter(&mut self) -> Result<String, StepError> {
        self.output
            .chapter("Queue a request for a sleeping device")?;
        let deadline = Deadline::of("the meter sleeps");
        while !self.devices.is_asleep(DeviceRole::Meter).await? {
            deadline.check()?;
            self.linger().await?;
        }
        self.print_events()?;
        let body = json!({
            "action": "read",
            "resourceAddress": VOLUME.to_string(),
            "requestMode": "SEND_WHEN_ACTIVE",
            "sendAttempts": 3,
        });
        let text = "creates a request (SEND_WHEN_ACTIVE): read the volume of the sleeping meter";
        self.output.print(LineSource::Caller, text)?;
        let id = self
            .ask(DemoProtocol::Lwm2m, DeviceRole::Meter, &body)
            .await?;
        self.follow(&id, |_| true).await?;
        Ok(id)
    }

    /// Writes a text to a numeric resource, and reads the log entry about it.
    pub(super) async fn write_what_does_not_fit(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("A value of the wrong type is rejected and logged")?;
        let body = json!({
            "action": "write",
            "resourceAddress": BRIGHTNESS.to_string(),
            "data": NO_NUMBER,
        });
        let text = format!("creates a request: write {NO_NUMBER:?} to the numeric brightness");
        self.output.print(LineSource::Caller, text)?;
        let id = self
            .ask(DemoProtocol::Lwm2m, DeviceRole::Lamp, &body)
            .await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("FAILED", &request)?;
        let iccid = self.caller.inspect(DeviceRole::Lamp.id()).await?.iccid;
        let entries = self.caller.latest_entries(&iccid).await?;
        let Some(entry) = entries.into_iter().find(|entry| entry.category == "error") else {
            let found = "no error about the lamp".to_owned();
            return Err(StepError::Unexpected {
                expected: "an entry in the administration log",
                found,
            });
        };
        let text = format!("adds a log entry: {} {}", entry.message, entry.description);
        Ok(self.output.print(LineSource::Service, text)?)
    }

    /// Queues a request for a device that sleeps for long, and cancels it.
    pub(super) async fn take_a_request_back(&mut self) -> Result<(), StepError> {
        self.output.chapter("Cancel a scheduled request")?;
        let body = json!({
            "action": "read",
            "resourceAddress": LATITUDE.to_string(),
            "requestMode": "SEND_WHEN_ACTIVE",
        });
        let text = "creates a request (SEND_WHEN_ACTIVE): read the latitude of the tracker";
        self.output.print(LineSource::Caller, text)?;
        let id = self
            .ask(DemoProtocol::Lwm2m, DeviceRole::Tracker, &body)
            .await?;
        self.follow(&id, |_| true).await?;
        self.output
            .print(LineSource::Caller, "cancels the request")?;
        self.caller.cancel(&id).await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("CANCELLED", &request)
    }

    /// Waits until the meter wakes by itself and answers the queued request.
    pub(super) async fn see_the_meter_wake(&mut self, queued: &str) -> Result<(), StepError> {
        self.output
            .chapter("The meter wakes up, and its queued request is sent")?;
        self.devices.calm_down().await?;
        let request = self.follow(queued, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)
    }

    /// The output, the caller whose token is printed, and the address of the sensor.
    pub(super) fn for_handout(&mut self) -> (&mut DemoOutput, &DemoCaller, Option<SocketAddr>) {
        let sensor = self.devices.address(DeviceRole::Sensor);
        (&mut *self.output, &self.caller, sensor)
    }

    async fn ask(
        &mut self,
        over: DemoProtocol,
        role: DeviceRole,
        body: &serde_json::Value,
    ) -> Result<String, StepError> {
        let id = self.caller.ask(over, role.id(), body).await?;
        self.output
            .print(LineSource::Service, format!("accepts the request {id}"))?;
        Ok(id)
    }

    /// Polls a request until it is in the expected state, and prints each change.
    async fn follow(
        &mut self,
        id: &str,
        is_wanted: impl Fn(&ShownAction) -> bool,
    ) -> Result<ShownAction, StepError> {
        let deadline = Deadline::of("the request changes its state");
        loop {
            let request = self.caller.request(id).await?;
            if self.is_changed(&request) {
                sleep(REPORT_LAG).await;
            }
            self.print_events()?;
            self.print_change(&request)?;
            if is_wanted(&request) {
                return Ok(request);
            }
            deadline.check()?;
            self.linger().await?;
        }
    }

    fn print_change(&mut self, request: &ShownAction) -> Result<(), StepError> {
        if self.is_changed(request) {
            self.output.print(LineSource::Service, change(request))?;
            self.printed_by_request
                .insert(request.id.clone(), state_of(request));
        }
        Ok(())
    }

    fn is_changed(&self, request: &ShownAction) -> bool {
        self.printed_by_request.get(&request.id) != Some(&state_of(request))
    }

    fn print_events(&mut self) -> Result<(), StepError> {
        while let Some((role, event)) = self.devices.try_next()? {
            self.output.print(LineSource::Device(role.id()), event)?;
        }
        Ok(())
    }

    /// Waits briefly, and prints the events of devices meanwhile.
    async fn linger(&mut self) -> Result<(), StepError> {
        tokio::select! {
            next = self.devices.next() => {
                let (role, event) = next?;
                self.output.print(LineSource::Device(role.id()), event)?;
            }
            () = sleep(POLL_EVERY) => {}
        }
        Ok(())
    }
}

/// Creates every device in the service.
pub(super) async fn create_devices(
    output: &mut DemoOutput,
    caller: &DemoCaller,
    parts: &[DeviceSpec],
) -> Result<(), StepError> {
    for DeviceSpec { role, ip, .. } in parts {
        let (id, name) = (role.id(), role.name());
        let mut device = json!({ "deviceId": id, "name": name });
        if let Some(ip) = ip {
            device["ip"] = json!(ip);
        }
        if let Some(msisdn) = role.msisdn() {
            device["msisdn"] = json!(msisdn);
        }
        caller.ensure_device(&device).await?;
        let place = ip.map(|ip| format!(", ip {ip}")).unwrap_or_default();
        let text = format!("adds the device {id} ({name}{place})");
        output.print(LineSource::Caller, text)?;
    }
    Ok(())
}

struct Deadline {
    at: Instant,
    awaited: &'static str,
}

impl Deadline {
    fn of(awaited: &'static str) -> Self {
        Self {
            at: Instant::now() + PATIENCE,
            awaited,
        }
    }

    fn check(&self) -> Result<(), StepError> {
        if Instant::now() < self.at {
            return Ok(());
        }
        Err(StepError::Late {
            awaited: self.awaited,
        })
    }
}

fn expect(status: &'static str, request: &ShownAction) -> Result<(), StepError> {
    if request.status == status {
        return Ok(());
    }
    Err(StepError::Unexpected {
        expected: status,
        found: change(request),
    })
}

fn state_of(request: &ShownAction) -> ShownState {
    (request.status.clone(), request.attempts_left)
}
