//! How do SMS go both ways, and how does a plugin forward events?

use super::super::endpoint::DeliveryWay;
use super::super::network::DemoNetwork;
use super::super::output::LineSource;
use super::super::role::DeviceRole;
use super::{StepError, Walkthrough};

/// The SMS of the tracker,
const FROM_TRACKER: &str = "parcel 4711 is on board";
/// and the one to it.
const TO_TRACKER: &str = "report every hour";

impl Walkthrough<'_> {
    /// Has an SMS of the tracker forwarded to the customer's endpoint, then sends one to the
    /// tracker and waits until the endpoint has the delivery report.
    pub(in super::super) async fn exchange_sms(
        &mut self,
        network: &DemoNetwork,
    ) -> Result<(), StepError> {
        self.output.chapter("SMS in both directions")?;
        let (tracker, url) = (DeviceRole::Tracker, self.endpoint.sms_url());
        self.caller.forward_sms(&url).await?;
        let text = format!("has SMS forwarded to {url}");
        self.output.print(LineSource::Caller, text)?;
        let Some(msisdn) = tracker.msisdn() else {
            let found = "a tracker without a number".to_owned();
            let expected = "the number of the tracker";
            return Err(StepError::Unexpected { expected, found });
        };
        let text = format!("hands in an SMS of {msisdn}: {FROM_TRACKER}");
        self.output.print(LineSource::Network, text)?;
        network.hand_in(msisdn, FROM_TRACKER).await?;
        let awaited = "the endpoint has the SMS of the tracker";
        self.await_events(awaited, 1, |it| it.way == DeliveryWay::SmsMessage)
            .await?;

        let id = self.caller.send_sms(tracker.id(), TO_TRACKER).await?;
        let text = format!("sends the SMS {id} to the tracker: {TO_TRACKER}");
        self.output.print(LineSource::Caller, text)?;
        let taken = network.take().await?;
        if !taken.contains(&id) {
            let found = format!("the SMS {taken:?}");
            let expected = "the SMS to the tracker among those that wait";
            return Err(StepError::Unexpected { expected, found });
        }
        let text = format!("takes the SMS {id}, and reports that it was delivered");
        self.output.print(LineSource::Network, text)?;
        network.report_delivered(id).await?;
        let awaited = "the endpoint has the delivery report";
        self.await_events(awaited, 1, |it| {
            it.way == DeliveryWay::SmsReport && it.body["id"] == id
        })
        .await
    }

    /// Installs a plugin, and waits until the partner has an event of the lamp.
    pub(in super::super) async fn install_a_plugin(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("A plugin forwards every event to a partner")?;
        let domain = self.endpoint.partner_domain();
        let key = self.endpoint.webhook_key();
        self.caller.install_plugin(&domain, key).await?;
        let text = format!("installs the plugin gateway, with the partner at {domain}");
        self.output.print(LineSource::Caller, text)?;
        self.devices.warm_up(2).await?;
        let awaited = "the partner has an event of the lamp";
        self.await_events(awaited, 1, |it| {
            let is_of_lamp = it.body["device"]["deviceId"] == DeviceRole::Lamp.id();
            it.way == DeliveryWay::Plugin && is_of_lamp
        })
        .await
    }
}
