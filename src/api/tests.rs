//! Does the API work as described, route by route and call by call? With the embedded store and
//! without devices; the black-box tests cover the behaviour of devices.

mod accepted;
mod activity;
mod bodies;
mod bootstrap;
mod calls;
mod definitions;
mod docs;
mod document;
mod golden;
mod integrations;
mod records;
mod scripted;
mod series;
mod sms;
mod table;
mod test_service;
