//! What does the socket alone cost? A bare tokio UDP echo, one datagram at a time on one thread.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;

use actors::socket;
use tokio::net::UdpSocket;
use tokio::runtime::Builder;

use crate::thread::Thread;

/// An echo on a thread of its own, which ends with the process.
pub(crate) struct Echo {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Its thread.
    pub(crate) thread: Thread,
}

impl Echo {
    /// Starts an echo whose socket is opened as the service opens its own.
    pub(crate) fn start() -> Self {
        let socket = socket::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let address = socket.local_addr().expect("a bound socket has an address");
        let (sender, thread) = mpsc::channel();
        std::thread::spawn(move || {
            sender
                .send(Thread::current())
                .expect("who started it waits");
            let runtime = Builder::new_current_thread().enable_io().build();
            runtime
                .expect("a runtime can be had")
                .block_on(echo(socket));
        });
        let thread = thread.recv().expect("the thread says its number first");
        Self { address, thread }
    }
}

async fn echo(socket: std::net::UdpSocket) {
    let socket = UdpSocket::from_std(socket).expect("the runtime takes an open socket");
    let mut buffer = vec![0; 65_535];
    loop {
        let (length, from) = socket
            .recv_from(&mut buffer)
            .await
            .expect("the socket hears");
        socket
            .send_to(&buffer[..length], from)
            .await
            .expect("the socket speaks");
    }
}
