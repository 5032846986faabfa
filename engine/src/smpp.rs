//! What is done over a link to an SMS centre (SMPP 3.4)? The link takes SMS to devices from the
//! store and submits them, and hands in the messages of devices and the delivery receipts.

pub mod effect;
pub mod flow;
pub mod inbound;
pub mod link;
pub mod message;
