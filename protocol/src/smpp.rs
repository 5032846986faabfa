//! SMPP 3.4: the PDUs of a link to an SMS centre, and what they say of messages and their delivery.
//!
//! The field names are those of the SMPP specification version 3.4.

pub mod message;
pub mod pdu;
pub mod receipt;
pub mod status;
