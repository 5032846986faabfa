//! Who runs the devices of a campaign? A thread with their link, and one for their downloads.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use harness::load::behaviour::LinkSecurity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::devices::{FirmwareDevices, Wish};
use crate::device_link::DeviceLink;
use crate::fleet;

/// Registrations that wait for their answer.
const WINDOW: u32 = 256;

/// A registration without an answer is sent again after this time.
const REPEAT_NS: u64 = 2_000_000_000;

/// The devices of a campaign, on threads of their own.
pub(crate) struct RunningDevices {
    shared: Arc<Shared>,
    devices: JoinHandle<()>,
    downloads: JoinHandle<()>,
}

/// What other threads see of the devices.
#[derive(Default)]
struct Shared {
    registered: AtomicU32,
    complete: AtomicU32,
    stopped: AtomicBool,
}

/// A device that is to download the image from a URI, and then whether the image was right.
type WantedDownload = (u32, String);
type EndedDownload = (u32, bool);

impl RunningDevices {
    /// Starts the devices, which register with a server.
    pub(crate) fn start(server: SocketAddr, devices: u32, image: &Arc<[u8]>) -> Self {
        let shared = Arc::new(Shared::default());
        let (wanted, to_download) = unbounded_channel();
        let (ended, downloaded) = unbounded_channel();
        let (seen, expected) = (Arc::clone(&shared), Arc::clone(image));
        let run = move || run(server, devices, expected, &seen, &wanted, downloaded);
        let expected = Arc::clone(image);
        Self {
            shared,
            devices: thread::spawn(run),
            downloads: thread::spawn(move || download_all(to_download, ended, expected)),
        }
    }

    /// The number of registered devices.
    pub(crate) fn registered(&self) -> u32 {
        self.shared.registered.load(Ordering::Relaxed)
    }

    /// The number of images that devices have received.
    pub(crate) fn complete(&self) -> u32 {
        self.shared.complete.load(Ordering::Relaxed)
    }

    /// Stops the devices.
    pub(crate) fn stop(self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.devices.join().expect("the devices work");
        self.downloads.join().expect("downloads work");
    }
}

fn run(
    server: SocketAddr,
    count: u32,
    image: Arc<[u8]>,
    shared: &Shared,
    wanted: &UnboundedSender<WantedDownload>,
    mut downloaded: UnboundedReceiver<EndedDownload>,
) {
    let mut link = DeviceLink::open(server, count, LinkSecurity::None);
    let mut devices = FirmwareDevices::new(count, image);
    let (mut asked, mut repeat_at_ns) = (0, REPEAT_NS);
    while !shared.stopped.load(Ordering::Relaxed) {
        if devices.registered() < count {
            while asked < count && asked - devices.registered().min(asked) < WINDOW {
                devices.register(asked, &mut link.out);
                asked += 1;
            }
            if link.clock.now_ns() > repeat_at_ns {
                (0..asked).for_each(|number| devices.register(number, &mut link.out));
                repeat_at_ns = link.clock.now_ns() + REPEAT_NS;
            }
        }
        while let Ok((number, is_right)) = downloaded.try_recv() {
            devices.downloaded(number, is_right, &mut link.out);
        }
        link.turn(
            |out, number, bytes| match devices.handle(number, bytes, out) {
                Wish::None => {}
                Wish::Download(uri) => drop(wanted.send((number, uri))),
            },
        );
        shared
            .registered
            .store(devices.registered(), Ordering::Relaxed);
        shared.complete.store(devices.complete, Ordering::Relaxed);
    }
}

fn download_all(
    mut wanted: UnboundedReceiver<WantedDownload>,
    ended: UnboundedSender<EndedDownload>,
    image: Arc<[u8]>,
) {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be had").block_on(async {
        let mut downloads = JoinSet::new();
        loop {
            tokio::select! {
                more = wanted.recv() => match more {
                    Some((number, uri)) => {
                        let (ended, image) = (ended.clone(), Arc::clone(&image));
                        downloads.spawn(async move {
                            let is_right = download(number, &uri, &image).await;
                            let is_right = is_right.expect("an image is downloaded");
                            let _ = ended.send((number, is_right));
                        });
                    }
                    None => return,
                },
                Some(done) = downloads.join_next() => done.expect("nothing fails in a download"),
            }
        }
    });
}

/// Downloads an image from the address of a device; returns whether it is the right one.
pub(crate) async fn download(number: u32, uri: &str, image: &[u8]) -> io::Result<bool> {
    let place = uri.strip_prefix("http://").unwrap_or(uri);
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    let server: SocketAddr = host.parse().map_err(io::Error::other)?;
    let socket = TcpSocket::new_v4()?;
    let own: Ipv4Addr = fleet::address(number);
    socket.bind((own, 0).into())?;
    let mut stream = socket.connect(server).await?;
    let get = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(get.as_bytes()).await?;
    let mut buffer = vec![0; 64 * 1_024];
    let mut head = Vec::new();
    let mut left = image;
    let mut in_head = true;
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(!in_head && left.is_empty());
        }
        let mut bytes = &buffer[..length];
        let part;
        if in_head {
            head.extend_from_slice(bytes);
            let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") else {
                continue;
            };
            in_head = false;
            part = head.split_off(end + 4);
            bytes = &part;
            if !head.starts_with(b"HTTP/1.1 200") {
                return Ok(false);
            }
        }
        match left.strip_prefix(bytes) {
            Some(rest) => left = rest,
            None => return Ok(false),
        }
    }
}
