//! What is printed after the last step? Events of the devices, and changes of all requests.

use std::convert::Infallible;
use std::time::Duration;

use harness::device::event::DeviceEvent;
use tokio::time::{MissedTickBehavior, interval};

use super::super::output::LineSource;
use super::{StepError, Walkthrough, state_of};
use crate::rest_client::CallError;

/// The interval at which the API is polled after the last step.
const POLL_EVERY: Duration = Duration::from_secs(1);

impl Walkthrough<'_> {
    /// Prints the events of devices, and the changes of all requests, without end.
    pub(in super::super) async fn live_on(&mut self) -> Result<Infallible, StepError> {
        // Requests of an earlier run on the same store are not printed.
        for request in self.caller.latest_requests().await? {
            let state = state_of(&request);
            self.printed_by_request.entry(request.id).or_insert(state);
        }
        let mut poll = interval(POLL_EVERY);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut second = 0;
        loop {
            tokio::select! {
                next = self.devices.next() => {
                    let (role, event) = next?;
                    if is_noteworthy(&event) {
                        self.output.print(LineSource::Device(role.id()), event)?;
                    }
                }
                _ = poll.tick() => {
                    self.devices.live(second).await?;
                    second += 1;
                    self.print_changes().await?;
                    self.print_deliveries()?;
                }
            }
        }
    }

    async fn print_changes(&mut self) -> Result<(), StepError> {
        let requests = match self.caller.latest_requests().await {
            Ok(requests) => requests,
            Err(error) if error.is_unauthorized() => {
                self.caller.renew_token().await?;
                return Ok(());
            }
            // A service under load asks the caller to retry; the next poll does.
            Err(CallError::Refused { .. }) => return Ok(()),
            Err(error @ (CallError::NoAnswer { .. } | CallError::Incomplete { .. })) => {
                return Err(error.into());
            }
        };
        self.print_events()?;
        for request in requests.iter().rev() {
            self.print_change(request)?;
        }
        let is_listed = |id: &String| requests.iter().any(|request| request.id == *id);
        self.printed_by_request.retain(|id, _| is_listed(id));
        Ok(())
    }
}

/// Whether an event is printed after the last step.
fn is_noteworthy(event: &DeviceEvent) -> bool {
    match event {
        // It follows every wake-up.
        DeviceEvent::Updated => false,
        DeviceEvent::Answered { .. }
        | DeviceEvent::AnsweredPlain { .. }
        | DeviceEvent::AnsweredSeveral { .. }
        | DeviceEvent::Asleep { .. }
        | DeviceEvent::Awake
        | DeviceEvent::Bootstrapped
        | DeviceEvent::Deregistered
        | DeviceEvent::GaveUp(_)
        | DeviceEvent::HeardBare { .. }
        | DeviceEvent::LeftUnanswered { .. }
        | DeviceEvent::Notified { .. }
        | DeviceEvent::ObservationEnded { .. }
        | DeviceEvent::Rebooted
        | DeviceEvent::Refused { .. }
        | DeviceEvent::Registered { .. }
        | DeviceEvent::RegistrationLost
        | DeviceEvent::Sent => true,
    }
}
