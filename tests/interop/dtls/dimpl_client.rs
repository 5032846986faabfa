//! A client of the crate dimpl, which is DTLS without sockets, too: this is its socket.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{Config, Dtls, Output, PskResolver};

use super::server::{IDENTITY, KEY};
use crate::vocabulary::poll::PATIENCE;

/// The one key of the client.
struct OneKey;

impl PskResolver for OneKey {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        (identity == IDENTITY.as_bytes()).then(|| KEY.to_vec())
    }
}

/// Makes a handshake with a pre-shared key, sends a text, and returns what comes back.
pub(super) fn echo(server: SocketAddr, text: &str) -> Vec<u8> {
    let identity = IDENTITY.as_bytes().to_vec();
    let config = Config::builder().with_psk_client(identity, Arc::new(OneKey));
    let config = Arc::new(config.build().unwrap());
    let mut client = Dtls::new_12_psk(config, Instant::now());
    client.set_active(true);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    let give_up_at = Instant::now() + PATIENCE;
    let mut buffer = [0; 2_048];
    client.handle_timeout(Instant::now()).unwrap();
    while Instant::now() < give_up_at {
        let wake_at = loop {
            let output = client.poll_output(&mut buffer);
            if let Output::Packet(datagram) = output {
                socket.send(datagram).unwrap();
            } else if let Output::Connected = output {
                client.send_application_data(text.as_bytes()).unwrap();
            } else if let Output::ApplicationData(received) = output {
                return received.to_vec();
            } else if let Output::Timeout(at) = output {
                break at;
            } else {
                panic!("{output:?}");
            }
        };
        let wait = wake_at
            .min(give_up_at)
            .saturating_duration_since(Instant::now());
        socket
            .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
            .unwrap();
        match socket.recv(&mut buffer) {
            Ok(length) => client.handle_packet(&buffer[..length]).unwrap(),
            Err(_) => client.handle_timeout(Instant::now()).unwrap(),
        }
    }
    panic!("the server did not answer")
}
