//! Which request bodies address a LwM2M device, and what is their outcome?

use serde_json::{Value, json};

/// The body that reads a value now.
pub(crate) fn read(address: &str) -> Value {
    json!({ "action": "read", "resourceAddress": address })
}

/// The body that writes a value now.
pub(crate) fn write(address: &str, data: &str) -> Value {
    json!({ "action": "write", "resourceAddress": address, "data": data })
}

/// The body that executes a resource now.
pub(crate) fn execute(address: &str) -> Value {
    json!({ "action": "execute", "resourceAddress": address })
}

/// The body that starts an observation.
pub(crate) fn observe_start(address: &str) -> Value {
    json!({ "action": "observe-start", "resourceAddress": address })
}

/// The body that ends an observation.
pub(crate) fn observe_end(address: &str) -> Value {
    json!({ "action": "observe-end", "resourceAddress": address })
}

/// The same body with SEND_WHEN_ACTIVE.
pub(crate) fn when_active(mut body: Value) -> Value {
    body["requestMode"] = json!("SEND_WHEN_ACTIVE");
    body
}

/// The status of an action request and the response code of the device.
pub(crate) fn outcome(action: &Value) -> (&str, &str) {
    let code = action["resultData"]["code"].as_str();
    (
        action["status"].as_str().unwrap_or_default(),
        code.unwrap_or_default(),
    )
}
