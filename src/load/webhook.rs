//! Which Sends arrive at a webhook? An endpoint of the load's own, which remembers them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use actix_web::{App, HttpResponse, HttpServer, web};
use harness::load::addressing::EndpointPattern;
use harness::load::behaviour::SendValues;
use harness::load::tally::NumberedSend;
use serde_json::{Value, json};

use super::api::{LoadCaller, SENT};
use crate::rest_client::{CallError, WEBHOOKS};

/// The largest body that is read: an event of a load is far smaller.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Requests are refused in the first part of each such time.
const REFUSAL_PERIOD: Duration = Duration::from_secs(20);

/// An endpoint, which ends with the process, and the webhook of a customer that leads to it.
pub(super) struct SendEndpoint {
    address: SocketAddr,
    id: Option<String>,
    received: Arc<ReceivedSends>,
}

/// The Sends that arrived.
struct ReceivedSends {
    pattern: EndpointPattern,
    sends: SendValues,
    /// The percentage of the time in which requests are refused.
    refuse: u8,
    since: Instant,
    log: Mutex<WebhookLog>,
}

#[derive(Default)]
struct WebhookLog {
    events: HashSet<Box<str>>,
    sends: Vec<NumberedSend>,
    repeated: u64,
    newest_by_device: HashMap<u32, u32>,
    disordered: u64,
}

impl SendEndpoint {
    /// Listens at an address, on a thread of its own.
    pub(super) fn listen(
        address: SocketAddr,
        pattern: EndpointPattern,
        sends: SendValues,
        refuse: u8,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let received = Arc::new(ReceivedSends {
            pattern,
            sends,
            refuse,
            since: Instant::now(),
            log: Mutex::default(),
        });
        let data = web::Data::from(Arc::clone(&received));
        let server = move || {
            App::new()
                .app_data(data.clone())
                .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
                .default_service(web::post().to(receive))
        };
        thread::spawn(move || {
            let run = async {
                let server = HttpServer::new(server).workers(1).disable_signals();
                server.listen(listener)?.run().await
            };
            if let Err(error) = actix_web::rt::System::new().block_on(run) {
                eprintln!("signalbox: the webhook's endpoint: {error}");
            }
        });
        Ok(Self {
            address,
            id: None,
            received,
        })
    }

    /// Creates the webhook, which gets at most so many events in a request.
    pub(super) async fn create(
        &mut self,
        caller: &LoadCaller,
        batch: Option<u8>,
    ) -> Result<(), CallError> {
        let mut body = json!({
            "name": "signalbox load",
            "url": format!("http://{}/", self.address),
            "eventTypes": [{ "type": "TELEMETRY_DATA" }],
        });
        if let Some(events_max) = batch {
            body["batch"] = json!({ "maxEvents": events_max });
        }
        let created = caller.client.post(WEBHOOKS, &body).await?.text("/id")?;
        self.id = Some(created);
        Ok(())
    }

    /// Deletes the webhook.
    pub(super) async fn delete(&self, caller: &LoadCaller) -> Result<(), CallError> {
        if let Some(id) = &self.id {
            caller.client.delete(&format!("{WEBHOOKS}/{id}")).await?;
        }
        Ok(())
    }

    /// The Sends of this load that arrived, one for each event.
    pub(super) fn received(&self) -> Vec<NumberedSend> {
        self.received.log().sends.clone()
    }

    /// The number of Sends of this load that arrived.
    pub(super) fn count(&self) -> usize {
        self.received.log().sends.len()
    }

    /// Events that arrived again.
    pub(super) fn repeated(&self) -> u64 {
        self.received.log().repeated
    }

    /// Sends that arrived after a later one of their device.
    pub(super) fn disordered(&self) -> u64 {
        self.received.log().disordered
    }
}

impl ReceivedSends {
    fn refuses(&self) -> bool {
        let since = self.since.elapsed().as_millis() % REFUSAL_PERIOD.as_millis();
        since * 100 < u128::from(self.refuse) * REFUSAL_PERIOD.as_millis()
    }

    fn take(&self, event: &Value) {
        let Some(id) = event["id"].as_str() else {
            return;
        };
        let mut log = self.log();
        if !log.events.insert(id.into()) {
            log.repeated += 1;
            return;
        }
        if let Some(send) = self.send_of(event) {
            log.sends.push(send);
            // A device numbers its Sends in the order in which it sends them.
            let newest = log.newest_by_device.entry(send.device).or_default();
            let is_late = send.number < *newest;
            *newest = send.number.max(*newest);
            log.disordered += u64::from(is_late);
        }
    }

    fn send_of(&self, event: &Value) -> Option<NumberedSend> {
        let device = event["device"]["deviceId"].as_str()?;
        let value = event["payload"]["value"][SENT].as_f64()?;
        Some(NumberedSend {
            device: self.pattern.number(device)?,
            number: self.sends.number(value)?,
        })
    }

    fn log(&self) -> MutexGuard<'_, WebhookLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(body: web::Bytes, received: web::Data<ReceivedSends>) -> HttpResponse {
    if received.refuses() {
        return HttpResponse::ServiceUnavailable().finish();
    }
    match serde_json::from_slice::<Value>(&body) {
        Ok(body) => {
            match body["events"].as_array() {
                Some(events) => events.iter().for_each(|event| received.take(event)),
                None => received.take(&body),
            }
            HttpResponse::NoContent().finish()
        }
        Err(_) => HttpResponse::BadRequest().finish(),
    }
}

#[cfg(test)]
mod tests {
    use harness::load::behaviour::Recording;

    use super::*;

    const SENDS: SendValues = SendValues {
        label: 7,
        recording: Recording::On,
    };

    #[test]
    fn an_event_that_comes_again_is_no_further_send() {
        let (received, sends) = (received(), SENDS);
        received.take(&event("a", "meter-004", sends.value(3)));
        received.take(&event("a", "meter-004", sends.value(3)));
        received.take(&event("b", "meter-004", 21.5));
        received.take(&event("c", "stranger", sends.value(4)));
        received.take(&json!({ "id": "d", "device": {} }));
        let log = received.log();
        let expected = NumberedSend {
            device: 4,
            number: 3,
        };
        assert_eq!((log.sends.as_slice(), log.repeated), (&[expected][..], 1));
    }

    #[test]
    fn a_send_after_a_later_one_of_its_device_is_out_of_order() {
        let received = received();
        for (id, device, number) in [
            ("a", "meter-004", 3),
            ("b", "meter-005", 2),
            ("c", "meter-004", 5),
            ("d", "meter-004", 4),
            ("e", "meter-004", 6),
            ("d", "meter-004", 4),
        ] {
            received.take(&event(id, device, SENDS.value(number)));
        }
        let log = received.log();
        assert_eq!((log.sends.len(), log.disordered), (5, 1));
    }

    fn received() -> ReceivedSends {
        ReceivedSends {
            pattern: "meter-{:03}".parse().unwrap(),
            sends: SENDS,
            refuse: 0,
            since: Instant::now(),
            log: Mutex::default(),
        }
    }

    fn event(id: &str, device: &str, value: f64) -> Value {
        json!({
            "id": id,
            "device": { "deviceId": device },
            "payload": { "type": "JSON", "value": { SENT: value } },
        })
    }
}
