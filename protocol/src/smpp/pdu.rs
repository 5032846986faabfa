//! What is a PDU in octets (SMPP 3.4 sections 3 and 4)? Encoded and decoded by `rusmpp`.
//!
//! SMS centres deviate: responses with an error often have no body, and bodies have fields that are
//! too long. A PDU whose body cannot be read still has its header, so that it can be answered.

use bytes::{BufMut as _, BytesMut};
use rusmpp::decode::DecodeWithLength as _;
use rusmpp::encode::{Length as _, owned::Encode as _};
use rusmpp::pdus::{
    BindTransceiver, BindTransceiverResp, CancelSm, DeliverSm, DeliverSmResp, SubmitSm,
    SubmitSmResp,
};
use rusmpp::tlvs::{
    MessageDeliveryRequestTlvValue, MessageSubmissionRequestTlvValue, Tlv, TlvValue,
};
use rusmpp::types::{AnyOctetString, COctetString, EmptyOrFullCOctetString, OctetString};
use rusmpp::values::{
    DataCoding, EsmClass, InterfaceVersion, MessagePayload, MessageState, Npi, RegisteredDelivery,
    Ton, UserMessageReference,
};
use rusmpp::{Command, CommandId, CommandStatus, Pdu as Body};

use super::message::{Address, Segment, ShortMessage};
use super::status::ESME_ROK;

/// The octets of the length of a PDU, which come first.
pub const LENGTH_OCTETS: usize = 4;

/// The octets of the header with the length.
const HEADER_OCTETS: usize = 16;

/// The octets that a PDU may have: a message payload has up to 64 KiB.
const PDU_OCTETS_MAX: usize = 70_000;

/// The bit of the command id of a response.
const RESPONSE: u32 = 0x8000_0000;

/// A PDU.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pdu {
    /// Its sequence number, which a response repeats.
    pub sequence: u32,
    /// Its `command_status`; that of a request is 0.
    pub status: u32,
    /// What it says.
    pub command: SmppCommand,
}

/// What a PDU says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SmppCommand {
    /// `bind_transceiver`.
    BindTransceiver(Credentials),
    /// `bind_transceiver_resp`.
    BindTransceiverResp,
    /// `submit_sm`.
    SubmitSm(Box<ShortMessage>),
    /// `submit_sm_resp` with the id that the SMS centre gave the message; empty if there is none.
    SubmitSmResp(Box<str>),
    /// `deliver_sm`.
    DeliverSm(Box<ShortMessage>),
    /// `deliver_sm_resp`.
    DeliverSmResp,
    /// `cancel_sm`.
    CancelSm(Box<Cancellation>),
    /// `cancel_sm_resp`.
    CancelSmResp,
    /// `enquire_link`.
    EnquireLink,
    /// `enquire_link_resp`.
    EnquireLinkResp,
    /// `unbind`.
    Unbind,
    /// `unbind_resp`.
    UnbindResp,
    /// `generic_nack`.
    GenericNack,
    /// Another request, or one that cannot be read.
    OtherRequest(u32),
    /// Another response.
    OtherResponse(u32),
}

/// Who binds.
#[derive(Clone, Eq, PartialEq)]
pub struct Credentials {
    /// `system_id`.
    pub system_id: Box<str>,
    /// `password`.
    pub password: Box<str>,
    /// `system_type`.
    pub system_type: Box<str>,
}

/// A message that the SMS centre is to delete from its queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cancellation {
    /// The id that the SMS centre gave the message.
    pub message_id: Box<str>,
    /// Its source address.
    pub source: Address,
    /// Its destination address.
    pub dest: Address,
}

/// Why octets are not a PDU: the connection cannot be read any further.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a PDU must have from {HEADER_OCTETS} to {PDU_OCTETS_MAX} octets, not {0}")]
pub struct InvalidLength(pub u32);

/// Why a PDU cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0} is too long, or has a character that is not ASCII")]
pub struct UnencodablePdu(pub &'static str);

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("system_id", &self.system_id)
            .finish_non_exhaustive()
    }
}

impl Pdu {
    /// A request.
    pub fn request(sequence: u32, command: SmppCommand) -> Self {
        Self {
            sequence,
            status: ESME_ROK,
            command,
        }
    }

    /// The octets of the rest of a PDU behind its length.
    pub fn rest_of(length: [u8; LENGTH_OCTETS]) -> Result<usize, InvalidLength> {
        let length = u32::from_be_bytes(length);
        let octets = usize::try_from(length).unwrap_or(usize::MAX);
        match octets {
            HEADER_OCTETS..=PDU_OCTETS_MAX => Ok(octets - LENGTH_OCTETS),
            _ => Err(InvalidLength(length)),
        }
    }

    /// Reads a PDU from the octets behind its length.
    pub fn decode(rest: &[u8]) -> Result<Self, InvalidLength> {
        let words: Option<[u32; 3]> = rest.first_chunk::<12>().map(|header| {
            let (words, _) = header.as_chunks::<4>();
            [0, 1, 2].map(|at| words.get(at).map_or(0, |word| u32::from_be_bytes(*word)))
        });
        let Some([id, status, sequence]) = words else {
            return Err(InvalidLength(u32::try_from(rest.len()).unwrap_or(u32::MAX)));
        };
        Ok(Self {
            sequence,
            status,
            command: command_of(id, status, rest),
        })
    }

    /// Writes a PDU with its length.
    pub fn encode(&self) -> Result<Vec<u8>, UnencodablePdu> {
        let status = CommandStatus::from(self.status);
        let command = Command::new(status, self.sequence, body_of(&self.command)?);
        let length = LENGTH_OCTETS + command.length();
        let mut octets = BytesMut::with_capacity(length);
        octets.put_u32(u32::try_from(length).map_err(|_| UnencodablePdu("the message"))?);
        command.encode(&mut octets);
        Ok(octets.to_vec())
    }
}

fn command_of(id: u32, status: u32, rest: &[u8]) -> SmppCommand {
    // The body of a response with an error does not count.
    let is_error = id & RESPONSE != 0 && status != ESME_ROK;
    let read = match is_error {
        true => None,
        false => Command::decode(&mut BytesMut::from(rest), rest.len()).ok(),
    };
    let body = read.as_ref().and_then(|(command, _)| command.pdu());
    match (CommandId::from(id), body) {
        (CommandId::BindTransceiver, Some(Body::BindTransceiver(bind))) => {
            SmppCommand::BindTransceiver(Credentials {
                system_id: bind.system_id.as_str().into(),
                password: bind.password.as_str().into(),
                system_type: bind.system_type.as_str().into(),
            })
        }
        (CommandId::SubmitSm, Some(Body::SubmitSm(submit))) => {
            SmppCommand::SubmitSm(Box::new(submitted(submit)))
        }
        (CommandId::SubmitSmResp, Some(Body::SubmitSmResp(response))) => {
            SmppCommand::SubmitSmResp(response.message_id().as_str().into())
        }
        (CommandId::DeliverSm, Some(Body::DeliverSm(deliver))) => {
            SmppCommand::DeliverSm(Box::new(delivered(deliver)))
        }
        (CommandId::CancelSm, Some(Body::CancelSm(cancel))) => {
            SmppCommand::CancelSm(Box::new(Cancellation {
                message_id: cancel.message_id.as_str().into(),
                source: Address {
                    ton: cancel.source_addr_ton.into(),
                    npi: cancel.source_addr_npi.into(),
                    text: cancel.source_addr.as_str().into(),
                },
                dest: Address {
                    ton: cancel.dest_addr_ton.into(),
                    npi: cancel.dest_addr_npi.into(),
                    text: cancel.destination_addr.as_str().into(),
                },
            }))
        }
        (CommandId::BindTransceiverResp, _) => SmppCommand::BindTransceiverResp,
        (CommandId::SubmitSmResp, _) => SmppCommand::SubmitSmResp(Box::default()),
        (CommandId::DeliverSmResp, _) => SmppCommand::DeliverSmResp,
        (CommandId::CancelSmResp, _) => SmppCommand::CancelSmResp,
        (CommandId::EnquireLink, _) => SmppCommand::EnquireLink,
        (CommandId::EnquireLinkResp, _) => SmppCommand::EnquireLinkResp,
        (CommandId::Unbind, _) => SmppCommand::Unbind,
        (CommandId::UnbindResp, _) => SmppCommand::UnbindResp,
        (CommandId::GenericNack, _) => SmppCommand::GenericNack,
        _ if id & RESPONSE != 0 => SmppCommand::OtherResponse(id),
        _ => SmppCommand::OtherRequest(id),
    }
}

fn submitted(submit: &SubmitSm) -> ShortMessage {
    let message = ShortMessage {
        source: Address {
            ton: submit.source_addr_ton.into(),
            npi: submit.source_addr_npi.into(),
            text: submit.source_addr.as_str().into(),
        },
        dest: Address {
            ton: submit.dest_addr_ton.into(),
            npi: submit.dest_addr_npi.into(),
            text: submit.destination_addr.as_str().into(),
        },
        esm_class: submit.esm_class.into(),
        protocol_id: submit.protocol_id,
        data_coding: submit.data_coding.into(),
        validity_period: submit.validity_period.as_str().into(),
        registered_delivery: submit.registered_delivery.into(),
        octets: submit.short_message().as_ref().into(),
        ..ShortMessage::default()
    };
    with_tlvs(message, submit.tlvs())
}

fn delivered(deliver: &DeliverSm) -> ShortMessage {
    let message = ShortMessage {
        source: Address {
            ton: deliver.source_addr_ton.into(),
            npi: deliver.source_addr_npi.into(),
            text: deliver.source_addr.as_str().into(),
        },
        dest: Address {
            ton: deliver.dest_addr_ton.into(),
            npi: deliver.dest_addr_npi.into(),
            text: deliver.destination_addr.as_str().into(),
        },
        esm_class: deliver.esm_class.into(),
        protocol_id: deliver.protocol_id,
        data_coding: deliver.data_coding.into(),
        validity_period: deliver.validity_period.as_str().into(),
        registered_delivery: deliver.registered_delivery.into(),
        octets: deliver.short_message().as_ref().into(),
        ..ShortMessage::default()
    };
    with_tlvs(message, deliver.tlvs())
}

fn with_tlvs(mut message: ShortMessage, tlvs: &[Tlv]) -> ShortMessage {
    let (mut reference, mut total, mut number) = (None, None, None);
    for tlv in tlvs {
        // The tags that no case names do not count.
        let Some(value) = tlv.value() else { continue };
        if let TlvValue::UserMessageReference(it) = value {
            message.user_message_reference = Some(it.value);
        } else if let TlvValue::ReceiptedMessageId(it) = value {
            message.receipted_message_id = Some(it.as_str().into());
        } else if let TlvValue::MessageState(it) = value {
            message.message_state = Some(u8::from(*it));
        } else if let TlvValue::MessagePayload(it) = value {
            message.octets = it.value.as_ref().into();
        } else if let TlvValue::SarMsgRefNum(it) = value {
            reference = Some(*it);
        } else if let TlvValue::SarTotalSegments(it) = value {
            total = Some(*it);
        } else if let TlvValue::SarSegmentSeqnum(it) = value {
            number = Some(*it);
        }
    }
    let all = reference.zip(total.zip(number));
    message.segment = all.map(|(reference, (total, number))| Segment {
        reference,
        total,
        number,
    });
    message
}

fn body_of(command: &SmppCommand) -> Result<Body, UnencodablePdu> {
    Ok(match command {
        SmppCommand::BindTransceiver(credentials) => Body::BindTransceiver(BindTransceiver {
            system_id: c_octets(&credentials.system_id, "the system_id")?,
            password: c_octets(&credentials.password, "the password")?,
            system_type: c_octets(&credentials.system_type, "the system_type")?,
            interface_version: InterfaceVersion::Smpp3_4,
            ..BindTransceiver::default()
        }),
        SmppCommand::BindTransceiverResp => {
            Body::BindTransceiverResp(BindTransceiverResp::default())
        }
        SmppCommand::SubmitSm(message) => Body::SubmitSm(submission(message)?),
        SmppCommand::SubmitSmResp(message_id) => {
            let message_id = c_octets(message_id, "the message_id")?;
            Body::SubmitSmResp(SubmitSmResp::new(message_id, Vec::new()))
        }
        SmppCommand::DeliverSm(message) => Body::DeliverSm(delivery(message)?),
        SmppCommand::DeliverSmResp => Body::DeliverSmResp(DeliverSmResp::default()),
        SmppCommand::CancelSm(cancel) => Body::CancelSm(CancelSm {
            message_id: c_octets(&cancel.message_id, "the message_id")?,
            source_addr_ton: Ton::from(cancel.source.ton),
            source_addr_npi: Npi::from(cancel.source.npi),
            source_addr: c_octets(&cancel.source.text, "the source address")?,
            dest_addr_ton: Ton::from(cancel.dest.ton),
            dest_addr_npi: Npi::from(cancel.dest.npi),
            destination_addr: c_octets(&cancel.dest.text, "the destination address")?,
            ..CancelSm::default()
        }),
        SmppCommand::CancelSmResp => Body::CancelSmResp,
        SmppCommand::EnquireLink => Body::EnquireLink,
        SmppCommand::EnquireLinkResp => Body::EnquireLinkResp,
        SmppCommand::Unbind => Body::Unbind,
        SmppCommand::UnbindResp => Body::UnbindResp,
        SmppCommand::GenericNack => Body::GenericNack,
        SmppCommand::OtherRequest(id) | SmppCommand::OtherResponse(id) => Body::Other {
            command_id: CommandId::from(*id),
            body: AnyOctetString::empty(),
        },
    })
}

fn submission(message: &ShortMessage) -> Result<SubmitSm, UnencodablePdu> {
    let mut submit = SubmitSm::default();
    submit.source_addr_ton = Ton::from(message.source.ton);
    submit.source_addr_npi = Npi::from(message.source.npi);
    submit.source_addr = c_octets(&message.source.text, "the source address")?;
    submit.dest_addr_ton = Ton::from(message.dest.ton);
    submit.dest_addr_npi = Npi::from(message.dest.npi);
    submit.destination_addr = c_octets(&message.dest.text, "the destination address")?;
    submit.esm_class = EsmClass::from(message.esm_class);
    submit.protocol_id = message.protocol_id;
    submit.validity_period = time(&message.validity_period)?;
    submit.registered_delivery = RegisteredDelivery::from(message.registered_delivery);
    submit.data_coding = DataCoding::from(message.data_coding);
    match OctetString::from_slice(&message.octets) {
        Ok(octets) => submit.set_short_message(octets),
        Err(_) => submit.push_tlv(MessageSubmissionRequestTlvValue::MessagePayload(payload(
            message,
        ))),
    }
    if let Some(reference) = message.user_message_reference {
        let reference = UserMessageReference::new(reference);
        submit.push_tlv(MessageSubmissionRequestTlvValue::UserMessageReference(
            reference,
        ));
    }
    Ok(submit)
}

fn delivery(message: &ShortMessage) -> Result<DeliverSm, UnencodablePdu> {
    type Tlv = MessageDeliveryRequestTlvValue;
    let mut deliver = DeliverSm::default();
    deliver.source_addr_ton = Ton::from(message.source.ton);
    deliver.source_addr_npi = Npi::from(message.source.npi);
    deliver.source_addr = c_octets(&message.source.text, "the source address")?;
    deliver.dest_addr_ton = Ton::from(message.dest.ton);
    deliver.dest_addr_npi = Npi::from(message.dest.npi);
    deliver.destination_addr = c_octets(&message.dest.text, "the destination address")?;
    deliver.esm_class = EsmClass::from(message.esm_class);
    deliver.protocol_id = message.protocol_id;
    deliver.validity_period = time(&message.validity_period)?;
    deliver.registered_delivery = RegisteredDelivery::from(message.registered_delivery);
    deliver.data_coding = DataCoding::from(message.data_coding);
    let mut tlvs = Vec::new();
    match OctetString::from_slice(&message.octets) {
        Ok(octets) => deliver.set_short_message(octets),
        Err(_) => tlvs.push(Tlv::MessagePayload(payload(message))),
    }
    if let Some(reference) = message.user_message_reference {
        tlvs.push(Tlv::UserMessageReference(UserMessageReference::new(
            reference,
        )));
    }
    if let Some(id) = &message.receipted_message_id {
        let id = c_octets(id, "the receipted_message_id")?;
        tlvs.push(Tlv::ReceiptedMessageId(id));
    }
    if let Some(state) = message.message_state {
        tlvs.push(Tlv::MessageState(MessageState::from(state)));
    }
    if let Some(segment) = message.segment {
        tlvs.push(Tlv::SarMsgRefNum(segment.reference));
        tlvs.push(Tlv::SarTotalSegments(segment.total));
        tlvs.push(Tlv::SarSegmentSeqnum(segment.number));
    }
    deliver.set_tlvs(tlvs);
    Ok(deliver)
}

fn payload(message: &ShortMessage) -> MessagePayload {
    MessagePayload::new(AnyOctetString::from_slice(&message.octets))
}

fn time(text: &str) -> Result<EmptyOrFullCOctetString<17>, UnencodablePdu> {
    let octets = [text.as_bytes(), &[0]].concat();
    EmptyOrFullCOctetString::from_vec(octets).map_err(|_| UnencodablePdu("the validity_period"))
}

/// A text with the octet that ends it.
fn c_octets<const MIN: usize, const MAX: usize>(
    text: &str,
    what: &'static str,
) -> Result<COctetString<MIN, MAX>, UnencodablePdu> {
    let octets = [text.as_bytes(), &[0]].concat();
    COctetString::from_vec(octets).map_err(|_| UnencodablePdu(what))
}

#[cfg(test)]
mod tests;
