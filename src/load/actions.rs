//! How long does it take from an API call to the device's answer, with many calls at a time?
//!
//! ```text
//!   caller                        server                      device (a worker's)
//!     |--- POST read ------------>|                               |
//!     |<-- 202 -------------------|--- CON GET ------------------>|
//!     |    latency ends with the ACK 2.05 -------------------- ACK|
//!     |--- GET request (some) --->|
//! ```

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::clock::Stopwatch;
use harness::load::addressing::{DeviceRange, EndpointPattern};
use harness::load::arrivals::{ArrivalPattern, ArrivalSchedule, ArrivalShare};
use harness::load::pool::DevicePool;
use harness::load::tally::{Latencies, LoadFailure, TaskTally};
use harness::load::worker::{CallerLinks, LoadJob, LoadProgress, LoadWork, ProgressCounts};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{interval, sleep, timeout};

use super::api::{LoadApi, LoadCaller, failure};
use super::display::Display;
use super::interrupts::Interrupts;
use super::nanoseconds;
use super::options::{LoadOptions, RequestMode, Scenario};
use super::report::ActionOutcomes;
use crate::rest_client::CallError;

/// How long a request may take to reach its device: longer than all retransmissions of a datagram.
const PATIENCE: Duration = Duration::from_secs(93);

/// How long the API may take to show an answered request as final.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// One of this many actions is followed in the API until it is final.
const FOLLOWED: u64 = 16;

/// The interval at which a followed request is polled.
const LOOK: Duration = Duration::from_millis(2);

/// The interval at which the end of the devices' requests is awaited.
const DEVICES_LOOK: Duration = Duration::from_millis(20);

/// A call that leaves this long after its due time counts as late; the timer of the callers has a
/// resolution of milliseconds.
const LATE_NS: u64 = 2_000_000;

/// A call that was due before the end may leave this long after it.
const GRACE_NS: u64 = 100_000_000;

/// What was measured of devices and callers.
pub(super) struct CallMeasurement {
    pub(super) devices: TaskTally,
    pub(super) calls: TaskTally,
    pub(super) outcomes: ActionOutcomes,
}

/// Measures reads of registered devices, which do this work meanwhile.
pub(super) fn measure(
    pool: &mut DevicePool,
    api: &LoadApi,
    options: &LoadOptions,
    interrupts: &Interrupts,
    work: LoadWork,
) -> Result<CallMeasurement, Box<dyn Error>> {
    let waiting = Arc::new(Waiting::default());
    let (wakes, mut woken) = doors(options);
    let before = api.runtime.block_on(api.caller.succeeded())?;
    let answered = |device, at_ns| waiting.answer(device, at_ns);
    let listen = |_| LoadJob {
        work,
        for_ns: nanoseconds(options.time()),
        callers: Some(CallerLinks {
            wakes: woken.next().expect("each worker has a door"),
            answered: &answered,
        }),
    };
    let clock = pool.clock();
    let mut calls = CallResults::default();
    let devices = pool.perform(listen, |watch, ended| {
        let waiting = Arc::clone(&waiting);
        let caller = api.caller.clone();
        let round = Rc::new(CallRound::new(options, clock, caller, wakes, waiting));
        let all = call_all(&round, options, interrupts, watch);
        api.runtime.block_on(LocalSet::new().run_until(all));
        calls = round.calls.take();
        // The devices go on for the rest of the time.
        drop(round);
        while !ended(DEVICES_LOOK) {
            interrupts.pass_on(watch);
        }
    })?;
    let CallResults {
        mut tally,
        accepted,
        until_final,
    } = calls;
    let succeeded = succeeded(&api.caller, before, accepted, interrupts);
    let succeeded = api.runtime.block_on(succeeded)?;
    // Nobody has waited for the requests of a load that was stopped.
    if !interrupts.is_stopping() {
        let others = accepted.saturating_sub(succeeded);
        tally.fail_times(LoadFailure::NotSucceeded, others);
    }
    let outcomes = ActionOutcomes {
        accepted,
        succeeded,
        latencies: tally.latencies.clone(),
        until_final,
    };
    Ok(CallMeasurement {
        devices,
        calls: tally,
        outcomes,
    })
}

impl CallMeasurement {
    /// The results of the calls, with the datagram counts of their devices.
    pub(super) fn of_calls(self) -> (TaskTally, ActionOutcomes) {
        let Self {
            devices,
            mut calls,
            outcomes,
        } = self;
        for (failure, count) in &devices.failures {
            calls.fail_times(*failure, *count);
        }
        let tally = TaskTally {
            retransmissions: devices.retransmissions,
            dropped: devices.dropped,
            stray: devices.stray,
            asked: devices.asked,
            unheard: devices.unheard,
            ..calls
        };
        (tally, outcomes)
    }

    /// The results of the calls and of the requests of the devices.
    pub(super) fn of_all(self) -> (TaskTally, ActionOutcomes) {
        let mut tally = self.devices;
        tally.add(&self.calls);
        (tally, self.outcomes)
    }
}

/// The devices of a worker, and the channel that wakes one of them.
type WorkerDoor = (DeviceRange, SyncSender<u32>);

/// A channel to each worker, with room for a device of each caller.
fn doors(options: &LoadOptions) -> (Vec<WorkerDoor>, impl Iterator<Item = Receiver<u32>>) {
    let of = options.workers;
    let door = |index| {
        let devices = DeviceRange::of_share(options.devices, ArrivalShare { index, of });
        let (wakes, woken) = sync_channel(options.callers() as usize);
        ((devices, wakes), woken)
    };
    let (doors, woken): (Vec<_>, Vec<_>) = (0..of).map(door).unzip();
    (doors, woken.into_iter())
}

/// A round of calls, shared by all callers of one thread.
struct CallRound {
    caller: LoadCaller,
    clock: Stopwatch,
    pattern: EndpointPattern,
    devices: u32,
    wakes_devices: bool,
    patience: Duration,
    arrivals: ArrivalPattern,
    schedule: RefCell<ArrivalSchedule>,
    until_ns: u64,
    wakes: Vec<WorkerDoor>,
    waiting: Arc<Waiting>,
    next_device: Cell<u32>,
    calls: RefCell<CallResults>,
}

/// The results of the calls.
#[derive(Default)]
struct CallResults {
    tally: TaskTally,
    accepted: u64,
    until_final: Latencies,
}

/// The callers that wait until their device is reached.
#[derive(Default)]
struct Waiting(Mutex<HashMap<u32, oneshot::Sender<u64>>>);

impl Waiting {
    /// Registers a caller that waits for a device; None if another one waits for it.
    fn begin(&self, device: u32) -> Option<oneshot::Receiver<u64>> {
        let mut waiting = self.lock();
        if waiting.contains_key(&device) {
            return None;
        }
        let (sender, answered) = oneshot::channel();
        waiting.insert(device, sender);
        Some(answered)
    }

    fn give_up(&self, device: u32) {
        self.lock().remove(&device);
    }

    fn answer(&self, device: u32, at_ns: u64) {
        // A device that receives the request again answers again; nobody waits for that.
        if let Some(sender) = self.lock().remove(&device) {
            sender.send(at_ns).ok();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallRound {
    fn new(
        options: &LoadOptions,
        clock: Stopwatch,
        caller: LoadCaller,
        wakes: Vec<WorkerDoor>,
        waiting: Arc<Waiting>,
    ) -> Self {
        let begun_at_ns = clock.now_ns();
        let until_ns = begun_at_ns.saturating_add(nanoseconds(options.time()));
        let arrivals = options.calls();
        // Devices that sleep wake by themselves.
        let wakes_devices = options.mode() == RequestMode::WhenActive && options.sleep.is_none();
        let asleep = options.sleep.map(|sleep| sleep * 3 / 2 + options.awake);
        let whole = ArrivalShare { index: 0, of: 1 };
        let schedule = ArrivalSchedule::begin(arrivals, whole, begun_at_ns, until_ns);
        Self {
            caller,
            clock,
            pattern: options.endpoint_pattern.clone(),
            devices: options.devices,
            wakes_devices,
            patience: PATIENCE + asleep.unwrap_or_default(),
            arrivals,
            schedule: RefCell::new(schedule),
            until_ns,
            wakes,
            waiting,
            next_device: Cell::new(0),
            calls: RefCell::new(CallResults {
                tally: TaskTally::begin_task(begun_at_ns),
                ..CallResults::default()
            }),
        }
    }

    /// Waits until a call is due and returns that time; None if there are no more.
    async fn next_due(&self) -> Option<u64> {
        let now_ns = self.clock.now_ns();
        if let ArrivalPattern::Window(_) = self.arrivals {
            return self.schedule.borrow().due(now_ns, 0);
        }
        if now_ns > self.until_ns.saturating_add(GRACE_NS) {
            let unsent = self.schedule.borrow_mut().abandon();
            self.fail_times(LoadFailure::Unsent, unsent);
        }
        let due_at_ns = self.schedule.borrow().next_at()?;
        self.schedule.borrow_mut().advance();
        sleep(Duration::from_nanos(due_at_ns.saturating_sub(now_ns))).await;
        Some(due_at_ns)
    }

    /// The next device that no caller waits for.
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
            // The channel has room for one device of each caller.
            wakes.try_send(device).ok();
        }
    }

    /// Counts a call that leaves, and returns its number.
    fn begin(&self, due_at_ns: u64, now_ns: u64) -> u64 {
        let tally = &mut self.calls.borrow_mut().tally;
        tally.begin(due_at_ns, now_ns, LATE_NS);
        tally.begun
    }

    fn answer(&self, due_at_ns: u64, at_ns: u64) {
        let tally = &mut self.calls.borrow_mut().tally;
        tally.answer(due_at_ns, at_ns, self.until_ns);
    }

    fn fail(&self, failure: LoadFailure) {
        let tally = &mut self.calls.borrow_mut().tally;
        tally.fail(failure, self.clock.now_ns());
    }

    fn fail_times(&self, failure: LoadFailure, times: u64) {
        self.calls.borrow_mut().tally.fail_times(failure, times);
    }
}

/// Makes calls until the time is over and everything is answered.
async fn call_all(
    round: &Rc<CallRound>,
    options: &LoadOptions,
    interrupts: &Interrupts,
    devices: &LoadProgress,
) {
    let mut calls = JoinSet::new();
    for _ in 0..options.callers() {
        calls.spawn_local(call(Rc::clone(round)));
    }
    let is_mixed = options.scenario == Scenario::Mixed;
    let name = if is_mixed { "mixing" } else { "calling" };
    let mut display = Display::open(name, options);
    let mut looks = interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            ended = calls.join_next() => if ended.is_none() { break },
            _ = looks.tick() => {
                let calls = ProgressCounts::of(&round.calls.borrow().tally);
                let all = calls.plus(devices.progress());
                display.show(if is_mixed { all } else { calls });
            }
        }
        if interrupts.is_finishing() {
            round.schedule.borrow_mut().end(round.clock.now_ns());
        }
        if interrupts.is_stopping() {
            break;
        }
    }
    display.close();
}

async fn call(round: Rc<CallRound>) {
    while let Some(due_at_ns) = round.next_due().await {
        let Some((device, answered)) = round.next_device() else {
            round.fail(LoadFailure::Unsent);
            continue;
        };
        let now_ns = match round.arrivals {
            ArrivalPattern::Rate(_) | ArrivalPattern::AtOnce => round.clock.now_ns(),
            // With a window, a call is due when it leaves.
            ArrivalPattern::Window(_) => due_at_ns,
        };
        let number = round.begin(due_at_ns, now_ns);
        let name = round.pattern.name(device);
        let accepted = round.caller.read(&name).await;
        let id = match accepted {
            Ok(id) => id,
            Err(error) => {
                round.waiting.give_up(device);
                round.fail(failure(&error));
                continue;
            }
        };
        round.calls.borrow_mut().accepted += 1;
        if round.wakes_devices {
            round.wake(device);
        }
        let Ok(Ok(at_ns)) = timeout(round.patience, answered).await else {
            round.waiting.give_up(device);
            round.fail(LoadFailure::Timeout);
            continue;
        };
        round.answer(due_at_ns, at_ns);
        if number % FOLLOWED == 1 {
            follow(&round, &id, due_at_ns).await;
        }
    }
}

/// Polls a request until it is final.
async fn follow(round: &CallRound, id: &str, due_at_ns: u64) {
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
            round.calls.borrow_mut().until_final.record(latency_ns);
        }
        Ok(Err(error)) => round.fail(failure(&error)),
        Err(_) => round.fail(LoadFailure::NeverFinal),
    }
}

/// The number of requests that became SUCCEEDED; waits a while for the last accepted ones.
async fn succeeded(
    caller: &LoadCaller,
    before: u64,
    accepted: u64,
    interrupts: &Interrupts,
) -> Result<u64, CallError> {
    let mut found = 0;
    let all = async {
        loop {
            found = caller.succeeded().await?.saturating_sub(before);
            if found >= accepted || interrupts.is_stopping() {
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
