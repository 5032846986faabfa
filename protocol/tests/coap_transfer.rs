//! Do requests and answers of any length get across in blocks, and does what does not fit end the
//! transfer?

#[path = "coap_transfer/given.rs"]
mod given;
#[path = "coap_transfer/receiving.rs"]
mod receiving;
#[path = "coap_transfer/sending.rs"]
mod sending;
#[path = "coap_transfer/waiting.rs"]
mod waiting;
