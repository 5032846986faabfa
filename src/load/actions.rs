//! How long does it take from a call of the API to the device's answer, with many at a time?
//!
//! ```text
//!   caller                        server                      device (a worker's)
//!     |--- POST read ------------>|                               |
//!     |<-- 202 -------------------|--- CON GET ------------------>|
//!     |    latency ends with the ACK 2.05 -------------------- ACK|
//!     |--- GET request (some) --->|
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness::clock::Stopwatch;
use harness::load::identity::EndpointPattern;
use harness::load::pace::Share;
use harness::load::tally::Latencies;
use harness::load::worker::{Devices, Job, Progress};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{interval, sleep, timeout};

use super::api::{Api, CallError, Caller};
use super::display::Display;
use super::options::{Options, RequestMode};
use super::report::{Ends, Phase};
use super::stage::{Stage, nanoseconds};

/// How long a device may take to be asked: longer than all repetitions of a datagram.
const PATIENCE: Duration = Duration::from_secs(93);

/// How long the API may take to show the end of what was answered.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Of so many actions one is followed to its end by the API.
const FOLLOWED: u64 = 16;

/// Between two looks at a request that is followed.
const LOOK: Duration = Duration::from_millis(2);

/// A call that leaves this much after its time left late; the timer of the callers counts
/// milliseconds.
const LATE_NS: u64 = 2_000_000;

/// A call that was due before the end may leave so long after it.
const GRACE_NS: u64 = 100_000_000;

/// Measures reads of registered devices.
pub(super) fn measure(
    stage: &mut Stage,
    api: &Api,
    options: &Options,
) -> Result<(Phase, Ends), Box<dyn Error>> {
    let waiting = Arc::new(Waiting::default());
    let (wakes, mut woken) = doors(options);
    let caller = api.caller(options.request_mode);
    let before = api.runtime().block_on(caller.succeeded())?;
    let answered = |device, at_ns| waiting.answer(device, at_ns);
    let listen = |_| Job::Listen {
        wakes: woken.next().expect("each worker has a door"),
        answered: &answered,
    };
    let clock = stage.clock();
    let mut calls = Calls::default();
    let devices = stage.perform_beside(listen, |watch, _| {
        let waiting = Arc::clone(&waiting);
        let round = Rc::new(Round::new(options, clock, caller.clone(), wakes, waiting));
        let all = call_all(&round, options.callers());
        api.runtime().block_on(LocalSet::new().run_until(all));
        watch.stop();
        calls = round.calls.take();
    })?;
    let accepted = calls.accepted;
    let succeeded = api
        .runtime()
        .block_on(succeeded(&caller, before, accepted))?;
    let missing = accepted.saturating_sub(succeeded);
    if missing > 0 {
        calls.errors.insert("not SUCCEEDED".to_owned(), missing);
    }
    let ends = Ends {
        accepted,
        succeeded,
        seen: std::mem::take(&mut calls.seen),
    };
    let mut phase = Phase::of(&devices);
    calls.tell(&mut phase, options.time().as_secs_f64());
    Ok((phase, ends))
}

/// The devices of a worker, and the way to have one of them wake.
type Door = (Devices, SyncSender<u32>);

/// A door to each worker, with room for a device of each caller.
fn doors(options: &Options) -> (Vec<Door>, impl Iterator<Item = Receiver<u32>>) {
    let of = options.workers;
    let door = |index| {
        let devices = Devices::of_share(options.devices, Share { index, of });
        let (wakes, woken) = sync_channel(options.callers() as usize);
        ((devices, wakes), woken)
    };
    let (doors, woken): (Vec<_>, Vec<_>) = (0..of).map(door).unzip();
    (doors, woken.into_iter())
}

/// A round of calls, shared by all callers of one thread.
struct Round {
    caller: Caller,
    clock: Stopwatch,
    pattern: EndpointPattern,
    devices: u32,
    mode: RequestMode,
    rate: Option<u32>,
    begun_at_ns: u64,
    until_ns: u64,
    wakes: Vec<Door>,
    waiting: Arc<Waiting>,
    next_call: Cell<u64>,
    next_device: Cell<u32>,
    calls: RefCell<Calls>,
}

/// What came of the calls.
#[derive(Default)]
struct Calls {
    begun: u64,
    accepted: u64,
    answered: u64,
    in_time: u64,
    late: u64,
    latest_ns: u64,
    errors: BTreeMap<String, u64>,
    latencies: Latencies,
    seen: Latencies,
}

/// Who waits for which device to be asked.
#[derive(Default)]
struct Waiting(Mutex<HashMap<u32, oneshot::Sender<u64>>>);

impl Waiting {
    /// Waits for a device from now on; None if somebody does already.
    fn begin(&self, device: u32) -> Option<oneshot::Receiver<u64>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.contains_key(&device) {
            return None;
        }
        let (told, answered) = oneshot::channel();
        waiting.insert(device, told);
        Some(answered)
    }

    fn give_up(&self, device: u32) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&device);
    }

    fn answer(&self, device: u32, at_ns: u64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A device that is asked again answers again; nobody waits for that.
        if let Some(told) = waiting.remove(&device) {
            told.send(at_ns).ok();
        }
    }
}

impl Round {
    fn new(
        options: &Options,
        clock: Stopwatch,
        caller: Caller,
        wakes: Vec<Door>,
        waiting: Arc<Waiting>,
    ) -> Self {
        let begun_at_ns = clock.now_ns();
        Self {
            caller,
            clock,
            pattern: options.endpoint_pattern.clone(),
            devices: options.devices,
            mode: options.request_mode,
            rate: options.rate,
            begun_at_ns,
            until_ns: begun_at_ns.saturating_add(nanoseconds(options.time())),
            wakes,
            waiting,
            next_call: Cell::new(0),
            next_device: Cell::new(0),
            calls: RefCell::default(),
        }
    }

    /// Waits until a call is due and says when that was; None when there are no more.
    async fn next_due(&self) -> Option<u64> {
        let Some(rate) = self.rate else {
            let now_ns = self.clock.now_ns();
            return (now_ns < self.until_ns).then_some(now_ns);
        };
        loop {
            let number = self.next_call.replace(self.next_call.get() + 1);
            let after_ns = u128::from(number) * 1_000_000_000 / u128::from(rate);
            let after_ns = u64::try_from(after_ns).ok()?;
            let due_at_ns = self.begun_at_ns.checked_add(after_ns)?;
            if due_at_ns >= self.until_ns {
                return None;
            }
            let now_ns = self.clock.now_ns();
            if now_ns <= self.until_ns.saturating_add(GRACE_NS) {
                sleep(Duration::from_nanos(due_at_ns.saturating_sub(now_ns))).await;
                return Some(due_at_ns);
            }
            self.fail("unsent".to_owned());
        }
    }

    /// The next device nobody waits for.
    fn next_device(&self) -> Option<(u32, oneshot::Receiver<u64>)> {
        for _ in 0..self.devices {
            let device = self.next_device.get();
            self.next_device.set((device + 1) % self.devices);
            if let Some(answered) = self.waiting.begin(device) {
                return Some((device, answered));
            }
        }
        None
    }

    fn wake(&self, device: u32) {
        let worker = self
            .wakes
            .iter()
            .find(|(devices, _)| (devices.first..devices.first + devices.count).contains(&device));
        if let Some((_, wakes)) = worker {
            // There is room for one device of each caller.
            wakes.try_send(device).ok();
        }
    }

    fn fail(&self, kind: String) {
        *self.calls.borrow_mut().errors.entry(kind).or_default() += 1;
    }
}

impl Calls {
    fn begin(&mut self, due_at_ns: u64, now_ns: u64) -> u64 {
        self.begun += 1;
        let late_ns = now_ns.saturating_sub(due_at_ns);
        self.late += u64::from(late_ns > LATE_NS);
        self.latest_ns = self.latest_ns.max(late_ns);
        self.begun
    }

    fn answer(&mut self, due_at_ns: u64, at_ns: u64, until_ns: u64) {
        self.answered += 1;
        self.in_time += u64::from(at_ns <= until_ns);
        self.latencies.record(at_ns.saturating_sub(due_at_ns));
    }

    /// Puts the calls in the place of the devices' own requests.
    fn tell(self, phase: &mut Phase, seconds: f64) {
        phase.seconds = seconds;
        phase.sent = self.begun;
        phase.answered = self.answered;
        phase.in_time = self.in_time;
        phase.late = self.late;
        phase.latest_ms = self.latest_ns as f64 / 1e6;
        phase.latencies = self.latencies;
        for (kind, count) in self.errors {
            *phase.errors.entry(kind).or_default() += count;
        }
    }
}

/// Calls until the time is over and everything is answered.
async fn call_all(round: &Rc<Round>, callers: u32) {
    let mut calls = JoinSet::new();
    for _ in 0..callers {
        calls.spawn_local(call(Rc::clone(round)));
    }
    let mut display = Display::open("calling");
    let mut looks = interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            ended = calls.join_next() => if ended.is_none() { break },
            _ = looks.tick() => display.show(progress(&round.calls.borrow())),
        }
    }
    display.close();
}

fn progress(calls: &Calls) -> Progress {
    Progress {
        begun: calls.begun,
        answered: calls.answered,
        failed: calls.errors.values().sum(),
    }
}

async fn call(round: Rc<Round>) {
    while let Some(due_at_ns) = round.next_due().await {
        let Some((device, answered)) = round.next_device() else {
            round.fail("unsent".to_owned());
            continue;
        };
        let now_ns = match round.rate {
            Some(_) => round.clock.now_ns(),
            // In a window a call is due when it leaves.
            None => due_at_ns,
        };
        let number = round.calls.borrow_mut().begin(due_at_ns, now_ns);
        let name = round.pattern.name(device);
        let accepted = round.caller.read(&name).await;
        let id = match accepted {
            Ok(id) => id,
            Err(error) => {
                round.waiting.give_up(device);
                round.fail(error.kind());
                continue;
            }
        };
        round.calls.borrow_mut().accepted += 1;
        if round.mode == RequestMode::WhenActive {
            round.wake(device);
        }
        let Ok(Ok(at_ns)) = timeout(PATIENCE, answered).await else {
            round.waiting.give_up(device);
            round.fail("timeout".to_owned());
            continue;
        };
        let until_ns = round.until_ns;
        round.calls.borrow_mut().answer(due_at_ns, at_ns, until_ns);
        if number % FOLLOWED == 1 {
            follow(&round, &id, due_at_ns).await;
        }
    }
}

/// Looks at a request until it has ended.
async fn follow(round: &Round, id: &str, due_at_ns: u64) {
    let end = async {
        loop {
            match round.caller.status(id).await?.as_str() {
                "SCHEDULED" | "IN_PROGRESS" => sleep(LOOK).await,
                _ => return Ok::<(), CallError>(()),
            }
        }
    };
    match timeout(END_PATIENCE, end).await {
        Ok(Ok(())) => {
            let latency_ns = round.clock.now_ns().saturating_sub(due_at_ns);
            round.calls.borrow_mut().seen.record(latency_ns);
        }
        Ok(Err(error)) => round.fail(error.kind()),
        Err(_) => round.fail("never final".to_owned()),
    }
}

/// How many requests became SUCCEEDED; waits a while for the last of those accepted.
async fn succeeded(caller: &Caller, before: u64, accepted: u64) -> Result<u64, CallError> {
    let mut found = 0;
    let all = async {
        loop {
            found = caller.succeeded().await?.saturating_sub(before);
            if found >= accepted {
                return Ok::<(), CallError>(());
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    match timeout(END_PATIENCE, all).await {
        Ok(outcome) => outcome.map(|()| found),
        Err(_) => Ok(found),
    }
}
