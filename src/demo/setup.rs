//! Which store and addresses does the demo use? A temporary store, and free ports.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::config::{Config, Layers, Source, StoreChoice};

/// The configuration of the demo, and what was created for it.
pub(super) struct DemoSetup {
    /// The configuration.
    pub(super) config: Config,
    /// The changes to the given configuration, as text.
    pub(super) changes: Vec<String>,
    directory: Option<TemporaryDirectory>,
}

/// Why the demo cannot start, or not end cleanly.
#[derive(Debug, thiserror::Error)]
pub enum DemoSetupError {
    /// The temporary directory cannot be created.
    #[error("cannot make the temporary directory {path}: {source}")]
    Make {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The temporary directory cannot be removed.
    #[error("cannot remove the temporary directory {path}: {source}")]
    Remove {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The configuration enables HTTPS for the API.
    #[error("the demo calls the API over plain HTTP: remove the settings tls_cert and tls_key")]
    Tls,
}

impl DemoSetup {
    /// Creates a temporary store and finds free ports, unless the configuration gives others.
    pub(super) fn set(config: &Config, layers: &Layers) -> Result<Self, DemoSetupError> {
        if config.tls().is_some() {
            return Err(DemoSetupError::Tls);
        }
        let mut config = config.clone();
        let mut changes = Vec::new();
        if is_ours(layers, "http") && is_taken(TcpListener::bind(config.http)) {
            changes.push(give_way(&mut config.http));
        }
        if is_ours(layers, "coap") && is_taken(UdpSocket::bind(config.coap)) {
            changes.push(give_way(&mut config.coap));
        }
        if is_ours(layers, "coaps") && is_taken(UdpSocket::bind(config.coaps)) {
            changes.push(give_way(&mut config.coaps));
        }
        if is_ours(layers, "udp") && is_taken(UdpSocket::bind(config.udp)) {
            changes.push(give_way(&mut config.udp));
        }
        config.store = StoreChoice::Embedded;
        let mut directory = None;
        if is_ours(layers, "data_dir") {
            let made = TemporaryDirectory::make(&std::env::temp_dir())?;
            config.data_dir = made.path.clone();
            directory = Some(made);
        }
        Ok(Self {
            config,
            changes,
            directory,
        })
    }

    /// The data directory, if it is removed at the end.
    pub(super) fn temporary(&self) -> Option<&Path> {
        self.directory
            .as_ref()
            .map(|directory| directory.path.as_path())
    }

    /// Removes what was created.
    pub(super) fn strike(self) -> Result<(), DemoSetupError> {
        self.directory.map_or(Ok(()), TemporaryDirectory::remove)
    }
}

/// Whether the value of a setting is a default or the preset.
fn is_ours(layers: &Layers, name: &str) -> bool {
    match layers.of(name).source {
        Source::Default | Source::Preset => true,
        Source::File(_) | Source::Environment | Source::Flag => false,
    }
}

fn is_taken<T>(bound: io::Result<T>) -> bool {
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn give_way(address: &mut SocketAddr) -> String {
    let change = format!("uses a free port: {address} is in use by another program");
    address.set_port(0);
    change
}

/// A directory that is removed on drop, if not before.
struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    fn make(parent: &Path) -> Result<Self, DemoSetupError> {
        let name = getrandom::u64().map_err(io::Error::other);
        let name = name.map(|number| format!("signalbox-demo-{number:016x}"));
        let path = parent.join(name.as_deref().unwrap_or("signalbox-demo"));
        // It contains the operator's token and the keys.
        let made = name.and_then(|_| DirBuilder::new().mode(0o700).create(&path));
        match made {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(DemoSetupError::Make { path, source }),
        }
    }

    fn remove(self) -> Result<(), DemoSetupError> {
        let removed = fs::remove_dir_all(&self.path);
        removed.map_err(|source| DemoSetupError::Remove {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // `remove` reports errors; after it, nothing is left here.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config;

    #[test]
    fn a_temporary_directory_is_private_and_removed_on_drop() {
        let parent = tempfile::tempdir().unwrap();
        let directory = TemporaryDirectory::make(parent.path()).unwrap();
        let path = directory.path.clone();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(path.join("something"), "in it").unwrap();
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn a_default_address_in_use_is_replaced() {
        let taken = occupied();
        let [http, coap, udp] = taken.addresses();
        let preset = Box::leak(Box::new([
            ("http", leaked(&http)),
            ("coap", leaked(&coap)),
            ("coaps", "127.0.0.1:0"),
            ("udp", leaked(&udp)),
        ]));
        let (config, layers) = config::load(preset, None, Vec::new()).unwrap();
        let setup = DemoSetup::set(&config, &layers).unwrap();
        let given = [setup.config.http, setup.config.coap, setup.config.udp];
        assert_eq!(given.map(|address| address.port()), [0; 3]);
        assert_eq!(setup.changes.len(), 3);
        for (change, address) in setup.changes.iter().zip([&http, &coap, &udp]) {
            assert!(change.contains(address.as_str()), "{change}");
        }
        assert!(setup.temporary().is_some_and(Path::is_dir));
        setup.strike().unwrap();
    }

    #[test]
    fn a_configured_value_stays() {
        let taken = occupied();
        let [http, coap, udp] = taken.addresses();
        let data = tempfile::tempdir().unwrap();
        let chosen = vec![
            ("http", http),
            ("coap", coap),
            ("coaps", "127.0.0.1:0".to_owned()),
            ("udp", udp),
            ("data_dir", data.path().display().to_string()),
        ];
        let (config, layers) = config::load(&[], None, chosen).unwrap();
        let setup = DemoSetup::set(&config, &layers).unwrap();
        assert_eq!(
            (setup.config.http, setup.config.coap, setup.config.udp),
            (config.http, config.coap, config.udp)
        );
        assert_eq!((setup.temporary(), setup.changes.len()), (None, 0));
        assert_eq!(setup.config.data_dir, data.path());
        setup.strike().unwrap();
        assert!(data.path().is_dir());
    }

    /// Addresses in use.
    struct Occupied {
        http: TcpListener,
        coap: UdpSocket,
        udp: UdpSocket,
    }

    fn occupied() -> Occupied {
        let any = "127.0.0.1:0";
        Occupied {
            http: TcpListener::bind(any).unwrap(),
            coap: UdpSocket::bind(any).unwrap(),
            udp: UdpSocket::bind(any).unwrap(),
        }
    }

    impl Occupied {
        fn addresses(&self) -> [String; 3] {
            let Self { http, coap, udp } = self;
            let addresses = [http.local_addr(), coap.local_addr(), udp.local_addr()];
            addresses.map(|address| address.unwrap().to_string())
        }
    }

    fn leaked(text: &str) -> &'static str {
        Box::leak(text.to_owned().into_boxed_str())
    }
}
