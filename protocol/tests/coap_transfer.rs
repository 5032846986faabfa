//! Are requests and responses of any length transferred in blocks, and does an inconsistency end
//! the transfer?

#[path = "coap_transfer/given.rs"]
mod given;
#[path = "coap_transfer/receiving.rs"]
mod receiving;
#[path = "coap_transfer/sending.rs"]
mod sending;
#[path = "coap_transfer/waiting.rs"]
mod waiting;
