//! How does a test control a simulated device and observe what happens at it?
//!
//! Each device has a socket of its own; all of them run on one thread of the test program.

use std::sync::OnceLock;
use std::thread;

use harness::device::SimulatedDevice;
use harness::device::configuration::Configuration;
use harness::device::event::{DeviceEvent, Operation, RegistrationLocation};
use harness::device::operation_log::PerformedOperation;
use harness::device::resource::AnswerMode;
use harness::socket::{DeviceLink, PacketLoss, RunningDevice, run};
use protocol::coap::content::ContentFormat;
use protocol::lwm2m::path::Path;
use protocol::lwm2m::payload::Sample;
use protocol::lwm2m::value::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::poll::PATIENCE;
use super::service::Service;

/// The address from which devices of the tests send by default.
pub(crate) const DEVICE_IP: &str = "127.0.0.1";

/// A simulated device on a socket. It stops when this value is dropped.
pub(crate) struct Device {
    running: RunningDevice,
    events: Receiver<DeviceEvent>,
}

impl Device {
    /// Switches a device on and waits until it is registered.
    pub(crate) fn registered(service: &Service, configuration: Configuration) -> Self {
        let mut device = Self::switched_on(service, configuration);
        device.wait_registered();
        device
    }

    /// Switches a device on.
    pub(crate) fn switched_on(service: &Service, configuration: Configuration) -> Self {
        let link = DeviceLink {
            local: format!("{DEVICE_IP}:0").parse().unwrap(),
            server: service.coap,
            bare: None,
            loss: PacketLoss::default(),
            seed: 1,
        };
        let (running, events) = world().block_on(run(configuration, link)).unwrap();
        Self { running, events }
    }

    /// Has the device update its registration and waits for the answer.
    pub(crate) fn update(&mut self) {
        world().block_on(self.running.update()).unwrap();
        let event = self.wait_for("what became of the update", |event| {
            let failed = matches!(
                event,
                DeviceEvent::Refused { .. }
                    | DeviceEvent::GaveUp(_)
                    | DeviceEvent::RegistrationLost
            );
            (failed || *event == DeviceEvent::Updated).then(|| event.clone())
        });
        assert_eq!(event, DeviceEvent::Updated);
    }

    /// Has the device update its registration without waiting.
    pub(crate) fn begin_update(&self) {
        world().block_on(self.running.update()).unwrap();
    }

    /// Has the device send samples in a format and waits for the answer of the service.
    pub(crate) fn send(&mut self, format: ContentFormat, samples: Vec<Sample>) -> DeviceEvent {
        let sent = world().block_on(self.running.send(format, samples));
        assert_eq!(sent.unwrap(), Ok(()), "it has nothing else to say");
        self.wait_for("what became of what was sent", |event| {
            let refused = matches!(event, DeviceEvent::Refused { .. } | DeviceEvent::GaveUp(_));
            (refused || *event == DeviceEvent::Sent).then(|| event.clone())
        })
    }

    /// Switches its radio off.
    pub(crate) fn sleep(&self) {
        world().block_on(self.running.sleep()).unwrap();
    }

    /// Has the device reboot and waits until it is registered.
    pub(crate) fn reboot(&mut self) {
        world().block_on(self.running.reboot()).unwrap();
        self.wait_registered();
    }

    /// Has the device deregister and waits for the answer.
    pub(crate) fn deregister(&mut self) {
        world().block_on(self.running.deregister()).unwrap();
        let left = |event: &DeviceEvent| matches!(event, DeviceEvent::Deregistered).then_some(());
        self.wait_for("the end of its registration", left);
    }

    /// Moves the device to another port, as a new NAT mapping would.
    pub(crate) fn move_to_another_port(&mut self) {
        let local = format!("{DEVICE_IP}:0").parse().unwrap();
        world().block_on(self.running.move_to(local)).unwrap();
    }

    /// Waits for the next event of the device for which `pick` returns something.
    pub(crate) fn wait_for<T>(
        &mut self,
        awaited: &str,
        pick: impl Fn(&DeviceEvent) -> Option<T>,
    ) -> T {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the device runs");
                if let Some(picked) = pick(&event) {
                    return picked;
                }
            }
        };
        let found = world().block_on(async { timeout(PATIENCE, found).await });
        found.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {awaited}"))
    }

    /// Waits until the device is registered.
    pub(crate) fn wait_registered(&mut self) -> RegistrationLocation {
        self.wait_for("a registration", |event| {
            assert!(!matches!(event, DeviceEvent::Refused { .. }), "{event}");
            if let DeviceEvent::Registered { location } = event {
                Some(location.clone())
            } else {
                None
            }
        })
    }

    /// Waits until the device received a request for a path and left it unanswered.
    pub(crate) fn wait_unanswered(&mut self, wanted: Path) {
        self.wait_for("a request that stays unanswered", |event| {
            let is_it =
                matches!(event, DeviceEvent::LeftUnanswered { path, .. } if *path == wanted);
            is_it.then_some(())
        });
    }

    /// Waits until the device received a request for a path, answered or not.
    pub(crate) fn wait_requested(&mut self, wanted: Path) {
        self.wait_for("a request", |event| {
            let is_it = matches!(
                event,
                DeviceEvent::Answered { path, .. } | DeviceEvent::LeftUnanswered { path, .. }
                    if *path == wanted
            );
            is_it.then_some(())
        });
    }

    /// Sets a value, which the device notifies to its observers.
    pub(crate) fn set(&self, path: Path, value: Value) {
        let before = world().block_on(self.running.set(path, value)).unwrap();
        before.expect("it has a resource of that type");
    }

    /// Waits until the device answered a request to start or to end the observation of a path.
    pub(crate) fn wait_observe_request(&mut self, operation: Operation, wanted: Path) {
        self.wait_for("a request about an observation", |event| {
            let is_it = matches!(
                event,
                DeviceEvent::Answered { path, operation: met, .. }
                    if *path == wanted && *met == operation
            );
            is_it.then_some(())
        });
    }

    /// Waits until the device ended the observation of a path because its notification was
    /// rejected.
    pub(crate) fn wait_observation_ended(&mut self, wanted: Path) {
        self.wait_for("the end of an observation", |event| {
            let is_it = matches!(event, DeviceEvent::ObservationEnded { path } if *path == wanted);
            is_it.then_some(())
        });
    }

    /// How many requests to observe a path the device received, as far as it remembers.
    pub(crate) fn times_observed(&self, path: Path) -> usize {
        let is_observe =
            |done: &PerformedOperation| done.path == path && done.operation == Operation::Observe;
        self.performed().into_iter().filter(is_observe).count()
    }

    /// Reads the device, or changes what needs no clock.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut SimulatedDevice) -> T + Send + 'static,
    ) -> T {
        world().block_on(self.running.with(look)).unwrap()
    }

    /// Changes how the device answers for a resource.
    pub(crate) fn answer_with(&self, path: Path, answer: AnswerMode) {
        self.with(move |device| device.answer_with(path, answer))
            .expect("it has the resource");
    }

    /// The value of a resource.
    pub(crate) fn value(&self, path: Path) -> Value {
        self.with(move |device| device.value(path).cloned())
            .expect("it has the resource")
    }

    /// Every operation the device performed, oldest first.
    pub(crate) fn performed(&self) -> Vec<PerformedOperation> {
        self.with(|device| device.performed().cloned().collect())
    }

    /// The payloads of the operations the device performed on a path, oldest first.
    pub(crate) fn payloads(&self, path: Path) -> Vec<String> {
        let performed = self
            .performed()
            .into_iter()
            .filter(|done| done.path == path);
        performed
            .map(|done| String::from_utf8(done.payload).unwrap())
            .collect()
    }
}

/// The one thread on which all devices run.
fn world() -> &'static Handle {
    static WORLD: OnceLock<Handle> = OnceLock::new();
    WORLD.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    })
}
