//! A way to a server that can be cut, and mended.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is sent to its port reaches the server, and the other way round, unless it is cut.
pub(crate) struct CuttableLink {
    port: u16,
    /// The connections; none while it is cut.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl CuttableLink {
    /// A way to the server at this address.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((server.ip(), 0)).unwrap();
        let link = Self {
            port: listener.local_addr().unwrap().port(),
            open: Arc::new(Mutex::new(Some(Vec::new()))),
        };
        let open = Arc::clone(&link.open);
        thread::spawn(move || {
            for near in listener.incoming() {
                let mut open = open.lock().unwrap();
                let Some(open) = &mut *open else {
                    continue;
                };
                let (near, far) = (near.unwrap(), TcpStream::connect(server).unwrap());
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let mut copied = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        // It ends when either side does.
                        let _ = io::copy(&mut copied.0, &mut copied.1);
                        let _ = copied.1.shutdown(Shutdown::Both);
                    });
                }
                open.extend([near, far]);
            }
        });
        link
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends every connection, and lets no other one begin.
    pub(crate) fn cut(&self) {
        for stream in self.open.lock().unwrap().take().into_iter().flatten() {
            // It may have ended.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections begin again.
    pub(crate) fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}
