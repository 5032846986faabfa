//! From meaning to decisions: what the service does about datagrams of devices and calls of the
//! API.
//!
//! Pure, synchronous, deterministic. Time and entropy come in as a [`moment::Moment`]; effects go
//! out as [`effect::Effects`]. There is no clock, no IO, no `async` and no global here, and no
//! machine imports another.

pub mod action;
pub mod admin_log;
pub mod arbiter;
pub mod associations;
mod back_off;
pub mod bootstrap;
pub mod certificate_authorities;
pub mod change;
pub mod credentials;
pub mod customer;
pub mod datagram;
pub mod definition;
pub mod delivery;
pub mod device;
mod diagnostic;
pub mod directory;
pub mod dispatch;
pub mod effect;
pub mod event;
pub mod firmware;
pub mod idempotency;
pub mod ids;
mod indexed_map;
pub mod job;
pub mod key_pair;
pub mod known_devices;
pub mod limits;
pub mod location;
pub mod moment;
pub mod network;
pub mod node;
pub mod peer;
pub mod policy;
pub mod profile;
pub mod query;
pub mod route;
pub mod rules;
pub mod schedule;
pub mod sealed;
pub mod sealing;
pub mod setting;
pub mod smpp;
pub mod sms;
pub mod step_event;
pub mod strangers;
pub mod supervision;
pub mod tags;
pub mod topic;
pub mod wake_up;
pub mod zone;

pub use protocol::base64_text;
pub use protocol::coap::block::BlockSize;
pub use protocol::coap::code::Code;
pub use protocol::coap::uri::{InvalidPathAndQuery, PathAndQuery};
pub use protocol::lwm2m::attributes::{AttributeName, Attributes};
pub use protocol::lwm2m::links::discovery::{self, DiscoveredLink};
pub use protocol::lwm2m::model;
pub use protocol::lwm2m::path::Path;
pub use protocol::lwm2m::payload::formats::WriteMethod;
pub use protocol::lwm2m::value::{DataType, ObjectLink, Value};
pub use protocol::lwm2m::version::{EnablerVersion, Version};
pub use protocol::mqtt::MqttVersion;
pub use protocol::smpp as smpp_pdu;
pub use protocol::sms as sms_text;
