//! How do values that a device sends reach the endpoint of the customer?

use super::super::endpoint::{DeliveredEvent, DeliveryWay};
use super::super::output::LineSource;
use super::super::role::DeviceRole;
use super::words::{event, sms_message, sms_report};
use super::{Deadline, StepError, Walkthrough};

impl Walkthrough<'_> {
    /// Makes the tracker send its collected values, and waits until all of them are delivered to
    /// the customer's endpoint.
    pub(in super::super) async fn see_the_tracker_send(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("A device sends collected values, and the webhook delivers them")?;
        let deadline = Deadline::of("the tracker sends");
        let expected = loop {
            if let Some(times) = self.devices.send_track().await? {
                break times;
            }
            deadline.check()?;
            self.linger().await?;
        };
        let iccid = self.caller.inspect(DeviceRole::Tracker.id()).await?.iccid;
        let awaited = "the endpoint has the values of the tracker";
        self.await_events(awaited, expected, |delivered| {
            is_collected(delivered, &iccid)
        })
        .await
    }

    /// Waits until this many matching events are delivered to the customer's endpoint, and prints
    /// them.
    pub(super) async fn await_events(
        &mut self,
        awaited: &'static str,
        expected: usize,
        is_match: impl Fn(&DeliveredEvent) -> bool,
    ) -> Result<(), StepError> {
        let deadline = Deadline::of(awaited);
        let mut received = 0;
        while received < expected {
            deadline.check()?;
            self.linger().await?;
            // Events received before are not counted.
            while let Some(delivered) = self.endpoint.arrived() {
                if is_match(&delivered) {
                    self.print_delivery(&delivered)?;
                    received += 1;
                }
            }
        }
        Ok(())
    }

    /// Prints the events that were delivered to the customer's endpoint.
    pub(super) fn print_deliveries(&mut self) -> Result<(), StepError> {
        while let Some(delivered) = self.endpoint.arrived() {
            self.print_delivery(&delivered)?;
        }
        Ok(())
    }

    fn print_delivery(&mut self, delivered: &DeliveredEvent) -> Result<(), StepError> {
        let body = &delivered.body;
        let (who, text) = match delivered.way {
            DeliveryWay::Webhook => {
                let text = format!("received, signature valid: {}", event(body));
                (LineSource::Endpoint, text)
            }
            DeliveryWay::SmsMessage => (LineSource::Endpoint, sms_message(body)),
            DeliveryWay::SmsReport => (LineSource::Endpoint, sms_report(body)),
            DeliveryWay::Plugin => (LineSource::Partner, format!("received: {}", event(body))),
        };
        Ok(self.output.print(who, text)?)
    }
}

/// Whether the event is telemetry of this device with a time of measurement.
fn is_collected(delivered: &DeliveredEvent, iccid: &str) -> bool {
    let body = &delivered.body;
    body["device"]["iccid"] == iccid && body["measured"].is_string()
}
