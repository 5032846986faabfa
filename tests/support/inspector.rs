//! What does the API show of a device in its inspector and its history?

use serde_json::Value;

use super::caller::{API, Caller, text};
use super::poll::until;

impl Caller {
    /// The inspector of a device.
    pub(crate) fn inspect(&self, device: &str) -> Value {
        let path = format!("{API}/devices/{device}");
        self.request("GET", &path).expect(200)
    }

    /// The recent messages of a device, newest first.
    pub(crate) fn messages(&self, device: &str) -> Vec<Value> {
        let path = format!("{API}/devices/{device}/messages?pageSize=100");
        items(self.request("GET", &path).expect(200))
    }

    /// The notified values of an observed path, oldest first, each by path.
    pub(crate) fn notified(&self, device: &str, path: &str) -> Vec<Value> {
        let mut messages = self.messages(device);
        messages.reverse();
        let is_it = |message: &&Value| {
            let cause = &message["cause"];
            cause["type"] == "OBSERVATION" && cause["path"] == path
        };
        let notifications = messages.iter().filter(is_it);
        notifications
            .map(|message| message["payload"]["value"].clone())
            .collect()
    }

    /// The notified values of an observed path, once there are this many.
    pub(crate) fn once_notified(&self, device: &str, path: &str, times: usize) -> Vec<Value> {
        let awaited = format!("{times} notifications of {path}");
        until(&awaited, || {
            let notifications = self.notified(device, path);
            (notifications.len() >= times).then_some(notifications)
        })
    }

    /// The last known value of a path, with its type and time.
    pub(crate) fn known_value(&self, device: &str, path: &str) -> Option<Value> {
        let mut known = items_of(&self.inspect(device), "values").into_iter();
        known.find(|known| known["path"] == path)
    }

    /// The state of the observation of a path.
    pub(crate) fn observation(&self, device: &str, path: &str) -> Option<String> {
        let mut observations = items_of(&self.inspect(device), "observations").into_iter();
        let found = observations.find(|observation| observation["path"] == path)?;
        Some(text(&found["state"]))
    }
}

fn items(page: Value) -> Vec<Value> {
    items_of(&page, "items")
}

fn items_of(body: &Value, name: &str) -> Vec<Value> {
    let items = body[name].as_array();
    items.unwrap_or_else(|| panic!("no {name}: {body}")).clone()
}
