//! Which bodies ask a LwM2M device for something, and what came of it?

use serde_json::{Value, json};

/// Reads a value now.
pub(crate) fn read(address: &str) -> Value {
    json!({ "action": "read", "resourceAddress": address })
}

/// Writes a value now.
pub(crate) fn write(address: &str, data: &str) -> Value {
    json!({ "action": "write", "resourceAddress": address, "data": data })
}

/// Executes a resource now.
pub(crate) fn execute(address: &str) -> Value {
    json!({ "action": "execute", "resourceAddress": address })
}

/// Asks to be told whenever a value changes.
pub(crate) fn observe_start(address: &str) -> Value {
    json!({ "action": "observe-start", "resourceAddress": address })
}

/// Asks to be told no more.
pub(crate) fn observe_end(address: &str) -> Value {
    json!({ "action": "observe-end", "resourceAddress": address })
}

/// The same when the device is next heard.
pub(crate) fn when_active(mut body: Value) -> Value {
    body["requestMode"] = json!("SEND_WHEN_ACTIVE");
    body
}

/// An action request's status and the device's code.
pub(crate) fn outcome(action: &Value) -> (&str, &str) {
    let code = action["resultData"]["code"].as_str();
    (
        action["status"].as_str().unwrap_or_default(),
        code.unwrap_or_default(),
    )
}
