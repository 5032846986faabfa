//! What do callers of the API experience? Each of them creates requests to devices, one after the
//! other, repeats a call until it is accepted, and reads some of the requests of all.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use signalbox::rest_client::{
    ACTIONS, CallError, ClientCredentials, JsonAnswer, REQUESTS, RestClient,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{MissedTickBehavior, interval};

use super::balancer::{self, Attempts};
use super::seen::{Progress, SeenRequests};

/// Callers at the same time.
const CALLERS: usize = 4;

/// How long a caller waits before its next call, and before it repeats one.
const PAUSE: Duration = Duration::from_millis(100);

/// The attempts that a request permits.
const ATTEMPTS: u64 = 3;

/// The callers of a customer.
#[derive(Clone)]
pub(crate) struct Callers {
    api: RestClient,
    devices: u32,
    begun: Arc<AtomicU32>,
    seen: SeenRequests,
    is_over: Arc<AtomicBool>,
}

/// What callers experienced for a while.
#[derive(Debug, Default)]
pub(crate) struct Called {
    /// The requests that were accepted.
    pub(crate) accepted: Vec<String>,
    /// The longest time from the first try of a call to its 202.
    pub(crate) longest: Duration,
    /// Tries that were not accepted, by what came instead.
    pub(crate) failed: BTreeMap<String, u64>,
}

/// What became of the requests of all calls.
#[derive(Debug, Default)]
pub(crate) struct RequestBooks {
    /// Accepted requests with each status.
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Accepted requests that do not exist.
    pub(crate) missing: u64,
    /// How many requests there are more, or fewer, than one for each call.
    pub(crate) doubled: u64,
    /// Devices that got more attempts than their requests permit, or than these say they had.
    pub(crate) exceeded: u64,
    /// Reads of requests.
    pub(crate) reads: u64,
    /// Reads that showed less than one that had ended before they began.
    pub(crate) back: u64,
}

impl Callers {
    /// Callers with this token, whose requests are for the devices of a load.
    pub(crate) fn of(token: &str, devices: u32) -> Self {
        let base = format!("http://{}", balancer::HTTP);
        let credentials = ClientCredentials::Bearer(token.to_owned());
        Self {
            api: RestClient::new(&base, credentials).expect("HTTP can be set up"),
            devices,
            begun: Arc::default(),
            seen: SeenRequests::default(),
            is_over: Arc::default(),
        }
    }

    /// Calls until [`Callers::stop`], and then until the last call is accepted.
    pub(crate) fn call(&self) -> Called {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be had");
        self.is_over.store(false, Ordering::Relaxed);
        let mut all = Called::default();
        LocalSet::new().block_on(&runtime, async {
            let mut callers = JoinSet::new();
            for _ in 0..CALLERS {
                callers.spawn_local(self.clone().call_in_turn());
            }
            while let Some(called) = callers.join_next().await {
                all.add(called.expect("no caller panics"));
            }
        });
        all
    }

    /// Lets the callers complete what they have begun.
    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    async fn call_in_turn(self) -> Called {
        let mut called = Called::default();
        let mut tries = interval(PAUSE);
        tries.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            let begun_at = Instant::now();
            let id = loop {
                tries.tick().await;
                match self.create(number).await {
                    Ok(id) => break id,
                    Err(error) => *called.failed.entry(kind(&error)).or_default() += 1,
                }
            };
            called.longest = called.longest.max(begun_at.elapsed());
            self.seen.accept(&id);
            called.accepted.push(id);
            // One that is new, and one that is not.
            let number = number as usize;
            for wanted in [number, number / 2] {
                self.read(wanted).await;
            }
        }
        called
    }

    /// Reads one of the requests of all callers; a read without an answer shows nothing.
    async fn read(&self, number: usize) {
        let Some((id, least)) = self.seen.choose(number) else {
            return;
        };
        match self.api.read(&format!("{REQUESTS}/{id}")).await {
            Ok(request) => {
                let status = request.text("/status").expect("a request has a status");
                let is_open = matches!(status.as_str(), "SCHEDULED" | "IN_PROGRESS");
                let found = Progress {
                    attempts: attempts_of(&request),
                    ended: (!is_open).then_some(status),
                };
                self.seen.read(&id, &least, Some(found));
            }
            Err(CallError::Refused { status: 404, .. }) => self.seen.read(&id, &least, None),
            Err(_) => {}
        }
    }

    /// Creates the request of a call; every try has the key of the call.
    async fn create(&self, number: u32) -> Result<String, CallError> {
        let device = number % self.devices;
        let mode = ["SEND_NOW", "SEND_WHEN_ACTIVE"][number as usize % 2];
        let body = json!({
            "action": "read",
            "resourceAddress": "/3/0/0",
            "requestMode": mode,
            "sendAttempts": ATTEMPTS,
        });
        let path = format!("{ACTIONS}/{device:019}/actions/LWM2M");
        let key = format!("cluster-{number}");
        self.api.post_once(&path, &body, &key).await?.text("/id")
    }

    /// Looks for the requests of all calls, and compares their attempts with those that reached
    /// the devices.
    pub(crate) fn check(
        &self,
        accepted: &[String],
        attempts: &Attempts,
        runtime: &Runtime,
    ) -> RequestBooks {
        let mut books = RequestBooks::default();
        let mut made_by_device: HashMap<IpAddr, u64> = HashMap::new();
        runtime.block_on(async {
            for id in accepted {
                let request = match self.api.read(&format!("{REQUESTS}/{id}")).await {
                    Err(CallError::Refused { status: 404, .. }) => {
                        books.missing += 1;
                        continue;
                    }
                    request => request.expect("a request can be read"),
                };
                let text = |at| request.text(at).expect("a request has this");
                *books.statuses.entry(text("/status")).or_default() += 1;
                let device = text("/ip").parse().expect("an address");
                *made_by_device.entry(device).or_default() += attempts_of(&request);
            }
            let page = self.api.read(&format!("{REQUESTS}?pageSize=1")).await;
            let all = page.and_then(|page| page.number("/pageAmount"));
            let all = all.expect("the requests can be listed");
            books.doubled = all.abs_diff(accepted.len() as u64);
        });
        let exceeds = |(device, made): &(&IpAddr, &u64)| attempts.of(**device) > **made;
        books.exceeded = made_by_device.iter().filter(exceeds).count() as u64;
        (books.reads, books.back) = self.seen.counts();
        books
    }
}

impl Called {
    fn add(&mut self, other: Self) {
        self.accepted.extend(other.accepted);
        self.longest = self.longest.max(other.longest);
        for (kind, times) in other.failed {
            *self.failed.entry(kind).or_default() += times;
        }
    }
}

/// The attempts that a request has behind it.
fn attempts_of(request: &JsonAnswer) -> u64 {
    let left = request.number("/sendAttemptsLeft");
    ATTEMPTS.saturating_sub(left.expect("a request has attempts"))
}

fn kind(error: &CallError) -> String {
    match error {
        CallError::NoAnswer { .. } => "no answer".to_owned(),
        CallError::Refused { status, .. } => status.to_string(),
        CallError::Incomplete { .. } => "incomplete".to_owned(),
    }
}
