//! What is between a device and its server? A translation of addresses, forgotten on request.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks for datagrams in either direction.
const LOOK: Duration = Duration::from_millis(5);

/// A running translation for one device. It stops when this value is dropped.
pub(crate) struct Nat {
    /// Where the device finds the server.
    pub(crate) address: SocketAddr,
    is_to_rebind: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Nat {
    pub(crate) fn start(server: SocketAddr) -> Self {
        let inside = socket(server);
        let address = inside.local_addr().unwrap();
        let (is_to_rebind, is_over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (rebind, over) = (Arc::clone(&is_to_rebind), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut outside = socket(server);
            let mut device = None;
            let mut buffer = [0; 2_048];
            while !over.load(Ordering::Relaxed) {
                if rebind.swap(false, Ordering::Relaxed) {
                    outside = socket(server);
                }
                if let Ok((length, from)) = inside.recv_from(&mut buffer) {
                    device = Some(from);
                    outside.send_to(&buffer[..length], server).unwrap();
                }
                while let Ok((length, _)) = outside.recv_from(&mut buffer) {
                    if let Some(device) = device {
                        inside.send_to(&buffer[..length], device).unwrap();
                    }
                }
            }
        });
        Self {
            address,
            is_to_rebind,
            is_over,
            thread: Some(thread),
        }
    }

    /// Gives the device another port, from its next datagram on.
    pub(crate) fn rebind(&self) {
        self.is_to_rebind.store(true, Ordering::Relaxed);
        super::until("another port", || {
            (!self.is_to_rebind.load(Ordering::Relaxed)).then_some(())
        });
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let outcome = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(matches!(outcome, Some(Ok(()))), "the translation panicked");
        }
    }
}

fn socket(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((server.ip(), 0)).unwrap();
    socket.set_read_timeout(Some(LOOK)).unwrap();
    socket
}
