//! How is an SMS centre connected to, and how do PDUs come and leave?

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::task::JoinHandle;
use engine::smpp_pdu::pdu::{LENGTH_OCTETS, Pdu};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, ReadHalf, WriteHalf,
    split,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::lease;

/// PDUs that may wait for the connection: more than the windows of both sides. Beyond it the SMS
/// centre does not read, and the connection is closed.
const OUTGOING_MAX: usize = 4_096;

/// An SMS centre.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SmppServer {
    /// Its name or address.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// Whether the connection is secured by TLS.
    pub is_tls: bool,
}

/// A stream of octets, secured or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The side of an open connection that is written to. PDUs that were sent leave even after it is
/// dropped.
pub(super) struct Outgoing {
    pdus: Sender<Vec<u8>>,
    reader: JoinHandle<()>,
}

impl std::fmt::Display for SmppServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Connects to an SMS centre.
pub(super) async fn connect(
    server: &SmppServer,
    tls: Arc<ClientConfig>,
    within: Duration,
) -> io::Result<Box<dyn Stream>> {
    if !lease::is_held() {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let connected = async {
        let stream = TcpStream::connect((&*server.host, server.port)).await?;
        stream.set_nodelay(true)?;
        if !server.is_tls {
            return Ok(Box::new(stream) as Box<dyn Stream>);
        }
        let name = ServerName::try_from(server.host.to_string()).map_err(io::Error::other)?;
        let secured = TlsConnector::from(tls).connect(name, stream).await?;
        Ok(Box::new(secured) as Box<dyn Stream>)
    };
    timeout(within, connected).await?
}

impl Outgoing {
    /// Reads from a stream by `read`, and writes what is sent.
    pub(super) fn open<F: Future<Output = ()> + 'static>(
        stream: Box<dyn Stream>,
        within: Duration,
        read: impl FnOnce(Incoming) -> F,
    ) -> Self {
        let (incoming, outgoing) = split(stream);
        let (pdus, waiting) = channel(OUTGOING_MAX);
        actix_rt::spawn(write(outgoing, waiting, within));
        let incoming = Incoming(BufReader::new(incoming));
        let reader = actix_rt::spawn(read(incoming));
        Self { pdus, reader }
    }

    /// Sends the octets of a PDU. Returns whether there was room.
    pub(super) fn send(&self, pdu: Vec<u8>) -> bool {
        self.pdus.try_send(pdu).is_ok()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The side of an open connection that is read.
pub(super) struct Incoming(BufReader<ReadHalf<Box<dyn Stream>>>);

impl Incoming {
    /// The next PDU; none if the connection has ended or cannot be read any further.
    pub(super) async fn next(&mut self) -> Option<Pdu> {
        let mut length = [0; LENGTH_OCTETS];
        self.0.read_exact(&mut length).await.ok()?;
        let mut rest = vec![0; Pdu::rest_of(length).ok()?];
        self.0.read_exact(&mut rest).await.ok()?;
        if !lease::is_held() {
            return None;
        }
        Pdu::decode(&rest).ok()
    }
}

/// Writes PDUs as they come, those that wait together, until no more can come.
async fn write(
    mut outgoing: WriteHalf<Box<dyn Stream>>,
    mut pdus: Receiver<Vec<u8>>,
    within: Duration,
) {
    let mut waiting = Vec::new();
    while pdus.recv_many(&mut waiting, OUTGOING_MAX).await > 0 {
        if !lease::is_held() {
            return;
        }
        let octets = waiting.concat();
        waiting.clear();
        let written = async {
            outgoing.write_all(&octets).await?;
            outgoing.flush().await
        };
        // The machine notices by the missing responses that it is alone.
        if !matches!(timeout(within, written).await, Ok(Ok(()))) {
            return;
        }
    }
    // The other side may be gone.
    let _ended = timeout(within, outgoing.shutdown()).await;
}
