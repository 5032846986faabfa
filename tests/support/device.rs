//! How does a test tell a simulated device what to do, and see what was done to it?
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

/// Where devices of the tests send from, unless they have a reason not to.
pub(crate) const DEVICE_IP: &str = "127.0.0.1";

/// A simulated device on a socket. It ends with this value.
pub(crate) struct Device {
    running: RunningDevice,
    events: Receiver<DeviceEvent>,
}

impl Device {
    /// Switches a device on and waits until it is registered.
    pub(crate) fn registered(service: &Service, configuration: Configuration) -> Self {
        let mut device = Self::switched_on(service, configuration);
        device.hear_registered();
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

    /// Has it update its registration and waits until the service has taken note.
    pub(crate) fn update(&mut self) {
        world().block_on(self.running.update()).unwrap();
        let news = self.hear("what became of the update", |event| {
            let failed = matches!(
                event,
                DeviceEvent::Refused { .. }
                    | DeviceEvent::GaveUp(_)
                    | DeviceEvent::RegistrationLost
            );
            (failed || *event == DeviceEvent::Updated).then(|| event.clone())
        });
        assert_eq!(news, DeviceEvent::Updated);
    }

    /// Has it update its registration and does not wait.
    pub(crate) fn begin_update(&self) {
        world().block_on(self.running.update()).unwrap();
    }

    /// Has it send samples in a format and waits for what the service makes of it.
    pub(crate) fn send(&mut self, format: ContentFormat, samples: Vec<Sample>) -> DeviceEvent {
        let sent = world().block_on(self.running.send(format, samples));
        assert_eq!(sent.unwrap(), Ok(()), "it has nothing else to say");
        self.hear("what became of what was sent", |event| {
            let refused = matches!(event, DeviceEvent::Refused { .. } | DeviceEvent::GaveUp(_));
            (refused || *event == DeviceEvent::Sent).then(|| event.clone())
        })
    }

    /// Switches its radio off.
    pub(crate) fn sleep(&self) {
        world().block_on(self.running.sleep()).unwrap();
    }

    /// Has it begin anew and waits until it is registered.
    pub(crate) fn reboot(&mut self) {
        world().block_on(self.running.reboot()).unwrap();
        self.hear_registered();
    }

    /// Has it take its leave and waits until the service has let it go.
    pub(crate) fn deregister(&mut self) {
        world().block_on(self.running.deregister()).unwrap();
        let left = |event: &DeviceEvent| matches!(event, DeviceEvent::Deregistered).then_some(());
        self.hear("the end of its registration", left);
    }

    /// Moves it to another port, as a new mapping on the way would.
    pub(crate) fn move_to_another_port(&mut self) {
        let local = format!("{DEVICE_IP}:0").parse().unwrap();
        world().block_on(self.running.move_to(local)).unwrap();
    }

    /// The next thing that happens at the device of which `pick` makes something.
    pub(crate) fn hear<T>(&mut self, awaited: &str, pick: impl Fn(&DeviceEvent) -> Option<T>) -> T {
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

    /// Waits until the service has registered it.
    pub(crate) fn hear_registered(&mut self) -> RegistrationLocation {
        self.hear("a registration", |event| {
            assert!(!matches!(event, DeviceEvent::Refused { .. }), "{event}");
            if let DeviceEvent::Registered { location } = event {
                Some(location.clone())
            } else {
                None
            }
        })
    }

    /// Waits until it got a request for a path and gave no answer.
    pub(crate) fn hear_unanswered(&mut self, wanted: Path) {
        self.hear("a request that stays unanswered", |event| {
            let is_it =
                matches!(event, DeviceEvent::LeftUnanswered { path, .. } if *path == wanted);
            is_it.then_some(())
        });
    }

    /// Waits until it met a request for a path in its way.
    pub(crate) fn hear_asked(&mut self, wanted: Path) {
        self.hear("a request", |event| {
            let is_it = matches!(
                event,
                DeviceEvent::Answered { path, .. } | DeviceEvent::LeftUnanswered { path, .. }
                    if *path == wanted
            );
            is_it.then_some(())
        });
    }

    /// Has it measure another value, which whoever observes it is told.
    pub(crate) fn set(&self, path: Path, value: Value) {
        let before = world().block_on(self.running.set(path, value)).unwrap();
        before.expect("it has a resource of that type");
    }

    /// Waits until it has met a request to observe a path, or to observe it no more.
    pub(crate) fn hear_observed(&mut self, operation: Operation, wanted: Path) {
        self.hear("a request about an observation", |event| {
            let is_it = matches!(
                event,
                DeviceEvent::Answered { path, operation: met, .. }
                    if *path == wanted && *met == operation
            );
            is_it.then_some(())
        });
    }

    /// Waits until it was told that nobody wants to know of a path.
    pub(crate) fn hear_unwanted(&mut self, wanted: Path) {
        self.hear("the end of an observation", |event| {
            let is_it = matches!(event, DeviceEvent::ObservationEnded { path } if *path == wanted);
            is_it.then_some(())
        });
    }

    /// How often it was asked to observe a path, as long as it remembers.
    pub(crate) fn times_observed(&self, path: Path) -> usize {
        let asked =
            |done: &PerformedOperation| done.path == path && done.operation == Operation::Observe;
        self.performed().into_iter().filter(asked).count()
    }

    /// Looks at the device, or changes what needs no clock.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut SimulatedDevice) -> T + Send + 'static,
    ) -> T {
        world().block_on(self.running.with(look)).unwrap()
    }

    /// Has it answer for a resource in another way.
    pub(crate) fn answer_with(&self, path: Path, answer: AnswerMode) {
        self.with(move |device| device.answer_with(path, answer))
            .expect("it has the resource");
    }

    /// What a resource holds.
    pub(crate) fn value(&self, path: Path) -> Value {
        self.with(move |device| device.value(path).cloned())
            .expect("it has the resource")
    }

    /// Every operation it carried out, the oldest first.
    pub(crate) fn performed(&self) -> Vec<PerformedOperation> {
        self.with(|device| device.performed().cloned().collect())
    }

    /// The payloads of the operations it carried out on a path, the oldest first.
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

/// The one thread all devices run on.
fn world() -> &'static Handle {
    static WORLD: OnceLock<Handle> = OnceLock::new();
    WORLD.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    })
}
