//! The text of SMS: its coding and its division into messages (3GPP TS 23.038, TS 23.040).

pub mod coding;
pub mod gsm7;
pub mod parts;
