//! What are the steps of the demo? Each step calls the API, waits for the result, and prints what
//! the devices report meanwhile.

mod living;
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
use super::caller::{Caller, Over, Request};
use super::cast::{Cast, Gone, Part};
use super::endpoint::Endpoint;
use super::narrator::{Narrator, Voice};
use super::role::{BRIGHTNESS, LATITUDE, Role, TEMPERATURE, VOLUME};
use crate::api_client::CallError;

/// How long a step may take before it counts as failed; none takes a third of it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at the API for something that is about to happen.
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// A device hears at about the same time as the API what it has to do with; its word comes first.
const WORD_TAKES: Duration = Duration::from_millis(10);

/// What does not go with a lamp's brightness, which is a number.
const NO_NUMBER: &str = "rather bright";

/// What is told, by whom and about whom.
pub(super) struct Story<'a> {
    narrator: &'a mut Narrator,
    caller: Caller,
    cast: Cast,
    endpoint: &'a mut Endpoint,
    /// How each request was when it was last told.
    told_by_request: BTreeMap<String, Told>,
}

/// What of a request is told when it changes: its status and how often it may still be tried.
type Told = (String, u64);

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Why {
    /// A call to the API came to nothing.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A device ended by itself.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// It did not happen.
    #[error("timeout after {} s: {awaited}", PATIENCE.as_secs())]
    Late {
        /// What was waited for.
        awaited: &'static str,
    },
    /// Something else happened.
    #[error("expected {expected}, found {found}")]
    Otherwise {
        /// What should have been.
        expected: &'static str,
        /// What was.
        found: String,
    },
    /// A device cannot have a socket.
    #[error("cannot open the socket of a device: {0}")]
    Socket(io::Error),
    /// Nobody can be told anything.
    #[error("cannot write to standard output: {0}")]
    Unheard(#[from] io::Error),
}

impl<'a> Story<'a> {
    /// Begins with devices that were just switched on.
    pub(super) fn new(
        narrator: &'a mut Narrator,
        caller: Caller,
        cast: Cast,
        endpoint: &'a mut Endpoint,
    ) -> Self {
        Self {
            narrator,
            caller,
            cast,
            endpoint,
            told_by_request: BTreeMap::new(),
        }
    }

    /// Waits until every device is registered, and looks at each over the API.
    pub(super) async fn meet_the_devices(&mut self) -> Result<(), Why> {
        self.narrator.chapter("The devices register")?;
        let deadline = Deadline::of("every device is registered");
        while !self.cast.is_registered().await? {
            deadline.check()?;
            self.linger().await?;
        }
        self.tell_news()?;
        for role in Role::ALL.into_iter().filter(|role| role.registers()) {
            let inspection = self.caller.inspect(role.id()).await?;
            let Some(registration) = &inspection.registration else {
                let found = format!("{} is {}", role.id(), inspection.presence);
                let expected = "a registration in the inspector";
                return Err(Why::Otherwise { expected, found });
            };
            let text = registered(role, &inspection.presence, registration);
            self.narrator.tell(Voice::Service, text)?;
        }
        Ok(())
    }

    /// Reads a value from a device that listens.
    pub(super) async fn read_the_lamp(&mut self) -> Result<(), Why> {
        self.narrator
            .chapter("Read a value from a device that is awake")?;
        let asked = json!({ "action": "read", "resourceAddress": BRIGHTNESS.to_string() });
        let text = "creates a request (SEND_NOW): read the brightness of the lamp";
        self.narrator.tell(Voice::Caller, text)?;
        let id = self.ask(Over::Lwm2m, Role::Lamp, &asked).await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)
    }

    /// Has the lamp tell a value whenever it changes, and sees it change.
    pub(super) async fn observe_the_lamp(&mut self) -> Result<(), Why> {
        self.narrator
            .chapter("Observe a value: the device notifies each change")?;
        let path = TEMPERATURE.to_string();
        let asked = json!({ "action": "observe-start", "resourceAddress": path });
        let text = "creates a request (SEND_NOW): observe the temperature of the lamp";
        self.narrator.tell(Voice::Caller, text)?;
        let id = self.ask(Over::Lwm2m, Role::Lamp, &asked).await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)?;
        let warmer = json!(self.cast.warm_up().await?);
        let deadline = Deadline::of("the lamp's new temperature is known");
        let id = Role::Lamp.id();
        while self.caller.known_value(id, &path).await?.as_ref() != Some(&warmer) {
            deadline.check()?;
            self.linger().await?;
        }
        self.tell_news()?;
        let text = format!("has the notified value: {path} of {id} is {warmer}");
        Ok(self.narrator.tell(Voice::Service, text)?)
    }

    /// Waits until the meter sleeps, and asks it for a value all the same.
    pub(super) async fn queue_for_the_meter(&mut self) -> Result<String, Why> {
        self.narrator
            .chapter("Queue a request for a sleeping device")?;
        let deadline = Deadline::of("the meter sleeps");
        while !self.cast.is_asleep(Role::Meter).await? {
            deadline.check()?;
            self.linger().await?;
        }
        self.tell_news()?;
        let asked = json!({
            "action": "read",
            "resourceAddress": VOLUME.to_string(),
            "requestMode": "SEND_WHEN_ACTIVE",
            "sendAttempts": 3,
        });
        let text = "creates a request (SEND_WHEN_ACTIVE): read the volume of the sleeping meter";
        self.narrator.tell(Voice::Caller, text)?;
        let id = self.ask(Over::Lwm2m, Role::Meter, &asked).await?;
        self.follow(&id, |_| true).await?;
        Ok(id)
    }

    /// Writes a text where a number belongs, and reads what the log says of it.
    pub(super) async fn write_what_does_not_fit(&mut self) -> Result<(), Why> {
        self.narrator
            .chapter("A value of the wrong type is rejected and logged")?;
        let asked = json!({
            "action": "write",
            "resourceAddress": BRIGHTNESS.to_string(),
            "data": NO_NUMBER,
        });
        let text = format!("creates a request: write {NO_NUMBER:?} to the numeric brightness");
        self.narrator.tell(Voice::Caller, text)?;
        let id = self.ask(Over::Lwm2m, Role::Lamp, &asked).await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("FAILED", &request)?;
        let iccid = self.caller.inspect(Role::Lamp.id()).await?.iccid;
        let entries = self.caller.latest_entries(&iccid).await?;
        let Some(entry) = entries.into_iter().find(|entry| entry.category == "error") else {
            let found = "no error about the lamp".to_owned();
            return Err(Why::Otherwise {
                expected: "an entry in the administration log",
                found,
            });
        };
        let text = format!("adds a log entry: {} {}", entry.message, entry.description);
        Ok(self.narrator.tell(Voice::Service, text)?)
    }

    /// Queues a request for a device that sleeps for long, and takes it back.
    pub(super) async fn take_a_request_back(&mut self) -> Result<(), Why> {
        self.narrator.chapter("Cancel a scheduled request")?;
        let asked = json!({
            "action": "read",
            "resourceAddress": LATITUDE.to_string(),
            "requestMode": "SEND_WHEN_ACTIVE",
        });
        let text = "creates a request (SEND_WHEN_ACTIVE): read the latitude of the tracker";
        self.narrator.tell(Voice::Caller, text)?;
        let id = self.ask(Over::Lwm2m, Role::Tracker, &asked).await?;
        self.follow(&id, |_| true).await?;
        self.narrator.tell(Voice::Caller, "cancels the request")?;
        self.caller.cancel(&id).await?;
        let request = self.follow(&id, |request| !request.is_pending()).await?;
        expect("CANCELLED", &request)
    }

    /// Waits for the meter to wake by itself and to answer what waits for it.
    pub(super) async fn see_the_meter_wake(&mut self, queued: &str) -> Result<(), Why> {
        self.narrator
            .chapter("The meter wakes up, and its queued request is sent")?;
        self.cast.calm_down().await?;
        let request = self.follow(queued, |request| !request.is_pending()).await?;
        expect("SUCCEEDED", &request)
    }

    /// Whoever tells, whose token is to be told, and where the sensor is.
    pub(super) fn for_handout(&mut self) -> (&mut Narrator, &Caller, Option<SocketAddr>) {
        let sensor = self.cast.address(Role::Sensor);
        (&mut *self.narrator, &self.caller, sensor)
    }

    async fn ask(
        &mut self,
        over: Over,
        role: Role,
        asked: &serde_json::Value,
    ) -> Result<String, Why> {
        let id = self.caller.ask(over, role.id(), asked).await?;
        self.narrator
            .tell(Voice::Service, format!("accepts the request {id}"))?;
        Ok(id)
    }

    /// Looks at a request until it is as wanted, and tells each change.
    async fn follow(
        &mut self,
        id: &str,
        is_wanted: impl Fn(&Request) -> bool,
    ) -> Result<Request, Why> {
        let deadline = Deadline::of("the request goes on");
        loop {
            let request = self.caller.request(id).await?;
            if self.is_changed(&request) {
                sleep(WORD_TAKES).await;
            }
            self.tell_news()?;
            self.tell_change(&request)?;
            if is_wanted(&request) {
                return Ok(request);
            }
            deadline.check()?;
            self.linger().await?;
        }
    }

    fn tell_change(&mut self, request: &Request) -> Result<(), Why> {
        if self.is_changed(request) {
            self.narrator.tell(Voice::Service, change(request))?;
            self.told_by_request
                .insert(request.id.clone(), told(request));
        }
        Ok(())
    }

    fn is_changed(&self, request: &Request) -> bool {
        self.told_by_request.get(&request.id) != Some(&told(request))
    }

    fn tell_news(&mut self) -> Result<(), Why> {
        while let Some((role, event)) = self.cast.told()? {
            self.narrator.tell(Voice::Device(role.id()), event)?;
        }
        Ok(())
    }

    /// Waits a moment, and tells what a device tells in it.
    async fn linger(&mut self) -> Result<(), Why> {
        tokio::select! {
            told = self.cast.next() => {
                let (role, event) = told?;
                self.narrator.tell(Voice::Device(role.id()), event)?;
            }
            () = sleep(LOOK_EVERY) => {}
        }
        Ok(())
    }
}

/// Makes every device known to the service.
pub(super) async fn create_devices(
    narrator: &mut Narrator,
    caller: &Caller,
    parts: &[Part],
) -> Result<(), Why> {
    for Part { role, ip, .. } in parts {
        let (id, name) = (role.id(), role.name());
        let mut device = json!({ "deviceId": id, "name": name });
        if let Some(ip) = ip {
            device["ip"] = json!(ip);
        }
        caller.ensure_device(&device).await?;
        let place = ip.map(|ip| format!(", ip {ip}")).unwrap_or_default();
        let text = format!("adds the device {id} ({name}{place})");
        narrator.tell(Voice::Caller, text)?;
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

    fn check(&self) -> Result<(), Why> {
        if Instant::now() < self.at {
            return Ok(());
        }
        Err(Why::Late {
            awaited: self.awaited,
        })
    }
}

fn expect(status: &'static str, request: &Request) -> Result<(), Why> {
    if request.status == status {
        return Ok(());
    }
    Err(Why::Otherwise {
        expected: status,
        found: change(request),
    })
}

fn told(request: &Request) -> Told {
    (request.status.clone(), request.attempts_left)
}
