//! How is an endpoint used with a socket? `echo_server ADDRESS:PORT IDENTITY KEY` sends back what
//! it receives, and prints what happens.
//!
//! ```text
//! cargo run --example echo_server -- 127.0.0.1:5684 meter-1 secret
//! openssl s_client -dtls1_2 -connect 127.0.0.1:5684 -psk_identity meter-1 -psk 736563726574
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dtls::{AssociationId, Config, Effect, Effects, Endpoint, Moment, Timestamp};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, identity, key] = &arguments[..] else {
        return Err("usage: echo_server ADDRESS:PORT IDENTITY KEY".into());
    };
    let socket = UdpSocket::bind(address)?;
    let mut random = File::open("/dev/urandom")?;
    let mut cookie_secret = [0; 32];
    random.read_exact(&mut cookie_secret)?;
    let mut server = Server {
        endpoint: Endpoint::new(Arc::new(Config::new(cookie_secret))),
        socket,
        random,
        identity: identity.clone().into_bytes(),
        key: key.clone().into_bytes(),
    };
    loop {
        server.turn()?;
    }
}

struct Server {
    endpoint: Endpoint,
    socket: UdpSocket,
    random: File,
    identity: Vec<u8>,
    key: Vec<u8>,
}

impl Server {
    /// Waits for a datagram or the next deadline, and handles it.
    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        let now = now()?;
        let deadline = self.endpoint.next_timeout();
        let wait = deadline.map(|at| Duration::from_millis(at.since_ms(now).max(1)));
        self.socket.set_read_timeout(wait)?;
        let mut buffer = [0; 2_048];
        let mut effects = Effects::new();
        match self.socket.recv_from(&mut buffer) {
            Ok((length, peer)) => self.call(|endpoint, moment| {
                endpoint.handle_datagram(moment, peer, &buffer[..length], &mut effects);
            })?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.call(|endpoint, moment| endpoint.handle_timeout(moment, &mut effects))?;
            }
            Err(error) => return Err(error.into()),
        }
        self.perform(&effects)
    }

    fn perform(&mut self, effects: &Effects) -> Result<(), Box<dyn Error>> {
        for effect in effects.iter() {
            match effect {
                Effect::Send { peer, datagram } => {
                    self.socket.send_to(datagram, peer)?;
                }
                Effect::LookUpPsk {
                    association,
                    identity,
                } => self.provide(association, identity)?,
                // The server has no key of its own: these suites are not chosen.
                Effect::AdmitPublicKey { .. } | Effect::AdmitCertificate { .. } => (),
                Effect::Received {
                    association,
                    content,
                } => {
                    let mut echo = Effects::new();
                    self.endpoint.send(association, content, &mut echo)?;
                    self.perform(&echo)?;
                }
                Effect::Established {
                    peer,
                    identity,
                    security,
                    ..
                } => println!("{peer} is {identity:?}: {security:?}"),
                Effect::Moved { from, to, .. } => println!("{from} is at {to}"),
                Effect::Closed { reason, .. } => println!("closed: {reason:?}"),
                Effect::Failed { peer, reason, .. } => println!("{peer} has failed: {reason:?}"),
            }
        }
        Ok(())
    }

    fn provide(&mut self, id: AssociationId, identity: &[u8]) -> Result<(), Box<dyn Error>> {
        let key = self.key.clone();
        let keys: &[&[u8]] = match identity == self.identity {
            true => &[&key],
            false => &[],
        };
        let mut effects = Effects::new();
        self.call(|endpoint, moment| endpoint.provide_psk(moment, id, keys, &mut effects))?;
        self.perform(&effects)
    }

    fn call(
        &mut self,
        call: impl FnOnce(&mut Endpoint, &mut Moment<'_>),
    ) -> Result<(), Box<dyn Error>> {
        let random = &mut self.random;
        let mut entropy = |bytes: &mut [u8]| {
            random
                .read_exact(bytes)
                .expect("the entropy of the system is readable");
        };
        let mut moment = Moment {
            now: now()?,
            entropy: &mut entropy,
        };
        call(&mut self.endpoint, &mut moment);
        Ok(())
    }
}

fn now() -> Result<Timestamp, Box<dyn Error>> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(Timestamp::from_ms(u64::try_from(since_epoch.as_millis())?))
}
