//! What is a resource of a simulated device, and how does the device answer requests for it?

use protocol::coap::code::Code;
use protocol::lwm2m::model::{self, Operations};
use protocol::lwm2m::path::Path;
use protocol::lwm2m::value::Value;
use protocol::lwm2m::version::EnablerVersion;

/// The lifetime of the registration, which the server may write.
pub(super) const LIFETIME: Path = Path::resource(1, 0, 1);

/// The image that the server writes (LwM2M Core 1.1 appendix E.6).
pub const FIRMWARE_PACKAGE: Path = Path::resource(5, 0, 0);

/// The URI of the image.
pub const FIRMWARE_URI: Path = Path::resource(5, 0, 1);

/// The resource that installs the image.
pub const FIRMWARE_UPDATE: Path = Path::resource(5, 0, 2);

/// The state of the firmware object.
pub(super) const FIRMWARE_STATE: Path = Path::resource(5, 0, 3);

/// How the device takes images: 0 by pull, 1 by push, 2 both.
const FIRMWARE_METHODS: Path = Path::resource(5, 0, 9);

/// The result of the last update.
pub const FIRMWARE_RESULT: Path = Path::resource(5, 0, 5);

/// A resource, with its allowed operations and their effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its path: a resource or a resource instance.
    pub path: Path,
    /// The operations that the server may perform.
    pub operations: Operations,
    /// Its value; None for an executable one.
    pub value: Option<Value>,
    /// How the device answers requests for it.
    pub answer: AnswerMode,
    /// What the device does after a successful write or execute.
    pub consequence: Consequence,
}

/// How a device answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerMode {
    /// Performs it and answers in the acknowledgement, as most devices do.
    Piggybacked,
    /// Performs it, acknowledges it immediately, and responds later in a Confirmable message.
    SeparateConfirmable {
        /// The delay.
        after_ms: u32,
    },
    /// Performs it, acknowledges it immediately, and responds later in a Non-confirmable message.
    SeparateNonConfirmable {
        /// The delay.
        after_ms: u32,
    },
    /// Performs it and responds in a Non-confirmable message, which also acknowledges the request
    /// (RFC 7252 section 5.2.3).
    NonConfirmable,
    /// Performs it, acknowledges it and never responds.
    AcknowledgeOnly,
    /// Does nothing.
    Silent,
    /// Answers with a Reset.
    Reset,
    /// Performs nothing and answers with this code.
    Code(Code),
}

/// What the device does after it has answered a successful write or execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Nothing more.
    Nothing,
    /// It updates its registration.
    Update,
    /// It reboots.
    Reboot,
    /// It deregisters, and registers again a day later (LwM2M Core 1.1 appendix E.2, resource 5).
    Disable,
    /// It downloads the image whose URI was written, and reports this result; 0 stands for success
    /// (LwM2M Core 1.1 appendix E.6). An empty URI ends a download.
    Download {
        /// The result.
        result: u8,
    },
    /// It has the image that was written, and reports this result; 0 stands for success. A single
    /// zero byte is no image.
    Receive {
        /// The result.
        result: u8,
    },
    /// It installs the image, reports this result, and reboots.
    Install {
        /// The result.
        result: u8,
    },
}

impl Resource {
    /// A resource with a value. The registry gives its operations; a resource that the registry
    /// does not know can be read and written.
    pub fn holding(path: Path, value: Value) -> Self {
        let operations = registered_operations(path).unwrap_or(Operations::ReadWrite);
        Self::new(path, operations, Some(value))
    }

    /// A resource that can be executed.
    pub fn executable(path: Path) -> Self {
        Self::new(path, Operations::Execute, None)
    }

    /// The same resource with another answer mode.
    pub fn answering(self, answer: AnswerMode) -> Self {
        Self { answer, ..self }
    }

    /// The same resource with an effect of a write or an execute.
    pub fn causing(self, consequence: Consequence) -> Self {
        Self {
            consequence,
            ..self
        }
    }

    fn new(path: Path, operations: Operations, value: Option<Value>) -> Self {
        let (answer, consequence) = (AnswerMode::Piggybacked, Consequence::Nothing);
        Self {
            path,
            operations,
            value,
            answer,
            consequence,
        }
    }
}

/// The default resources: a server account, the device, a location and a temperature.
///
/// The clock, 3/0/13, stands still until it is set, so that a read returns the written value.
pub fn defaults() -> Vec<Resource> {
    let text = |path, text: &str| Resource::holding(path, Value::String(text.to_owned()));
    vec![
        Resource::holding(Path::resource(1, 0, 0), Value::Integer(1)),
        Resource::holding(LIFETIME, Value::Integer(0)).causing(Consequence::Update),
        Resource::executable(Path::resource(1, 0, 4)).causing(Consequence::Disable),
        Resource::executable(Path::resource(1, 0, 8)).causing(Consequence::Update),
        text(Path::resource(3, 0, 0), "Signalbox"),
        text(Path::resource(3, 0, 1), "Simulated device"),
        text(Path::resource(3, 0, 2), "0001"),
        Resource::executable(Path::resource(3, 0, 4)).causing(Consequence::Reboot),
        Resource::holding(Path::resource(3, 0, 9), Value::Integer(87)),
        Resource::holding(Path::resource(3, 0, 13), Value::Time(1_767_225_600)),
        text(Path::resource(3, 0, 14), "+00:00"),
        text(Path::resource(3, 0, 15), "Etc/UTC"),
        Resource::holding(Path::resource(6, 0, 0), Value::Float(52.52)),
        Resource::holding(Path::resource(6, 0, 1), Value::Float(13.405)),
        Resource::holding(Path::resource(3303, 0, 5700), Value::Float(21.5)),
        text(Path::resource(3303, 0, 5701), "Cel"),
    ]
}

/// The firmware object of a device that downloads images over HTTP. The results of a download and
/// of an installation are those of `/5/0/5`; a successful download reports none.
pub fn firmware(download: u8, install: u8) -> Vec<Resource> {
    let number = |path, value| Resource::holding(path, Value::Integer(value));
    vec![
        Resource::holding(FIRMWARE_URI, Value::String(String::new()))
            .causing(Consequence::Download { result: download }),
        Resource::executable(FIRMWARE_UPDATE).causing(Consequence::Install { result: install }),
        number(FIRMWARE_STATE, 0),
        number(FIRMWARE_RESULT, 0),
        number(FIRMWARE_METHODS, 0),
    ]
}

/// The firmware object of a device that takes images by push only, with the same results.
pub fn firmware_by_push(receive: u8, install: u8) -> Vec<Resource> {
    let mut resources = firmware(0, install);
    for resource in &mut resources {
        if resource.path == FIRMWARE_METHODS {
            resource.value = Some(Value::Integer(1));
        }
    }
    let package = Resource::holding(FIRMWARE_PACKAGE, Value::Opaque(Vec::new()));
    resources.push(package.causing(Consequence::Receive { result: receive }));
    resources
}

fn registered_operations(path: Path) -> Option<Operations> {
    let object = path.object_id();
    let version = model::default_version(object, EnablerVersion::V1_2);
    let resource = model::resource(object, version, path.resource_id()?)?;
    Some(resource.operations())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::defaults;
    use protocol::lwm2m::model;
    use protocol::lwm2m::version::EnablerVersion;

    #[test]
    fn the_default_resources_match_the_registry() {
        for resource in defaults() {
            let path = resource.path;
            let version = model::default_version(path.object_id(), EnablerVersion::V1_2);
            let known = model::resource(path.object_id(), version, path.resource_id().unwrap());
            let known = known.unwrap_or_else(|| panic!("{path} is not in the registry"));
            assert_eq!(resource.operations, known.operations(), "{path}");
            let data_type = resource.value.as_ref().map(|value| value.data_type());
            assert_eq!(data_type, known.data_type(), "{path}");
        }
    }

    #[test]
    fn no_resource_is_offered_twice() {
        let paths: BTreeSet<_> = defaults().iter().map(|resource| resource.path).collect();
        assert_eq!(paths.len(), defaults().len());
    }
}
