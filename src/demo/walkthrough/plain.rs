//! How does a device without LwM2M take part? It sends a UDP datagram, which releases the requests
//! waiting for it, and sends data over CoAP.

use serde_json::{Value, json};

use super::super::api::DemoProtocol;
use super::super::endpoint::DeliveredEvent;
use super::super::output::LineSource;
use super::super::role::{ALARM, DeviceRole};
use super::{Deadline, StepError, Walkthrough, expect};

/// The UDP payload of the sensor.
const WET: &str = "wet";
/// Its CoAP payload and topic.
const LEVEL: &str = "{\"mm\":3}";
const TOPIC: &str = "cellar/water";

impl Walkthrough<'_> {
    /// Queues requests for the sensor over UDP and CoAP, and waits until its datagram releases
    /// them.
    pub(in super::super) async fn release_by_datagram(&mut self) -> Result<(), StepError> {
        self.output
            .chapter("A device without LwM2M sends data and receives requests")?;
        let Some(sensor) = self.devices.address(DeviceRole::Sensor) else {
            let text = "skips this step: the leak sensor has no IP address of its own";
            return Ok(self.output.print(LineSource::Service, text)?);
        };
        let queued = self.queue_for_the_sensor(sensor.port()).await?;
        if self.devices.throw(WET.as_bytes()).await?.is_none() {
            return Err(silent("a datagram of the sensor"));
        }
        let thrown = format!("sent a UDP datagram, {WET:?}");
        self.output
            .print(LineSource::Device(DeviceRole::Sensor.id()), thrown)?;
        for id in &queued {
            let request = self.follow(id, |request| !request.is_pending()).await?;
            expect("SUCCEEDED", &request)?;
        }
        let awaited = "the endpoint has the datagram of the sensor";
        self.await_events(awaited, 1, |it| is_over("UDP", it)).await
    }

    /// Makes the sensor post over CoAP, and waits until the event is delivered to the customer's
    /// endpoint.
    pub(in super::super) async fn see_the_sensor_post(&mut self) -> Result<(), StepError> {
        if self.devices.address(DeviceRole::Sensor).is_none() {
            return Ok(());
        }
        let deadline = Deadline::of("the sensor posts");
        while self.devices.post(TOPIC, LEVEL.as_bytes()).await?.is_none() {
            deadline.check()?;
            self.linger().await?;
        }
        let posted = format!("sent {LEVEL} over CoAP, topic {TOPIC}");
        self.output
            .print(LineSource::Device(DeviceRole::Sensor.id()), posted)?;
        let awaited = "the endpoint has the CoAP data of the sensor";
        self.await_events(awaited, 1, |it| is_over("COAP", it))
            .await
    }

    async fn queue_for_the_sensor(&mut self, port: u16) -> Result<[String; 2], StepError> {
        let text = "creates a UDP request (SEND_WHEN_ACTIVE): the leak sensor blinks";
        self.output.print(LineSource::Caller, text)?;
        let blink = self.queue(DemoProtocol::Udp, &blink(port)).await?;
        let text = "creates a CoAP request (SEND_WHEN_ACTIVE): set its alarm level to 8 mm";
        self.output.print(LineSource::Caller, text)?;
        let warn = json!({
            "requestType": "PUT", "path": ALARM, "payload": "8", "payloadType": "STRING",
            "port": port, "requestMode": "SEND_WHEN_ACTIVE",
        });
        Ok([blink, self.queue(DemoProtocol::Coap, &warn).await?])
    }

    async fn queue(&mut self, over: DemoProtocol, body: &Value) -> Result<String, StepError> {
        let id = self.ask(over, DeviceRole::Sensor, body).await?;
        self.follow(&id, |_| true).await?;
        Ok(id)
    }
}

/// The request that makes the sensor blink, when its queue is released.
pub(in super::super) fn blink(port: u16) -> Value {
    json!({
        "payload": "blink", "payloadType": "STRING",
        "port": port, "requestMode": "SEND_WHEN_ACTIVE",
    })
}

fn is_over(source: &str, delivered: &DeliveredEvent) -> bool {
    let body = &delivered.body;
    body["device"]["deviceId"] == DeviceRole::Sensor.id() && body["source"] == source
}

fn silent(expected: &'static str) -> StepError {
    let found = "a sensor that is switched off".to_owned();
    StepError::Unexpected { expected, found }
}
