//! Which values of `command_status` does the link act on or answer (SMPP 3.4 section 5.1.3)?

/// No error.
pub const ESME_ROK: u32 = 0x00;
/// The command is unknown.
pub const ESME_RINVCMDID: u32 = 0x03;
/// The session is not in the state for the command.
pub const ESME_RINVBNDSTS: u32 = 0x04;
/// The queue of the SMS centre is full.
pub const ESME_RMSGQFUL: u32 = 0x14;
/// More messages than allowed were sent.
pub const ESME_RTHROTTLED: u32 = 0x58;
/// The receiver cannot accept the message now.
pub const ESME_RX_T_APPN: u32 = 0x64;
/// The receiver never accepts the message.
pub const ESME_RX_P_APPN: u32 = 0x65;
