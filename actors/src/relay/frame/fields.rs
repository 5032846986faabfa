//! How are the fields of a frame written and read?

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use engine::peer::Transport;

use super::InvalidFrame;

/// Reads the fields of a frame one after the other.
pub(super) struct FieldReader<'a>(pub(super) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidFrame> {
        let (array, rest) = self.0.split_first_chunk().ok_or(InvalidFrame::Damaged)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, InvalidFrame> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, InvalidFrame> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, InvalidFrame> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, InvalidFrame> {
        self.array().map(u64::from_be_bytes)
    }

    /// Bytes after their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], InvalidFrame> {
        let length = usize::try_from(self.u32()?).map_err(|_| InvalidFrame::Damaged)?;
        let split = self.0.split_at_checked(length);
        let (bytes, rest) = split.ok_or(InvalidFrame::Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn transport(&mut self) -> Result<Transport, InvalidFrame> {
        match self.u8()? {
            0 => Ok(Transport::Coap),
            1 => Ok(Transport::Coaps),
            2 => Ok(Transport::Udp),
            other => Err(InvalidFrame::UnknownTransport(other)),
        }
    }

    pub(super) fn ip(&mut self) -> Result<IpAddr, InvalidFrame> {
        let octets: [u8; 16] = self.array()?;
        Ok(IpAddr::from(octets).to_canonical())
    }

    /// An address with its port and interface.
    pub(super) fn address(&mut self) -> Result<SocketAddr, InvalidFrame> {
        let octets: [u8; 16] = self.array()?;
        let (port, interface) = (self.u16()?, self.u32()?);
        Ok(SocketAddrV6::new(octets.into(), port, 0, interface).into())
    }

    /// Everything that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}

pub(super) fn number_of(transport: Transport) -> u8 {
    match transport {
        Transport::Coap => 0,
        Transport::Coaps => 1,
        Transport::Udp => 2,
    }
}

pub(super) fn put_ip(ip: IpAddr, bytes: &mut Vec<u8>) {
    let octets = match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    bytes.extend_from_slice(&octets);
}

/// Appends an address with its port and interface.
pub(super) fn put_address(address: SocketAddr, bytes: &mut Vec<u8>) {
    let interface = match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    };
    put_ip(address.ip(), bytes);
    bytes.extend_from_slice(&address.port().to_be_bytes());
    bytes.extend_from_slice(&interface.to_be_bytes());
}
