//! Which machines does the cluster have, and what do they read? The files of `docs/cluster`, with
//! addresses of loopback and folders of the bench in place of those of the example.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::postgres;
use crate::service::{MASTER_KEY, OPERATOR};

/// The files of the documentation.
pub(crate) const ETCD: &str = include_str!("../../../docs/cluster/etcd.env");
pub(crate) const PATRONI: &str = include_str!("../../../docs/cluster/patroni.yml");
pub(crate) const DATABASE: &str = include_str!("../../../docs/cluster/database.sql");
pub(crate) const NODE: &str = include_str!("../../../docs/cluster/node.env");

/// The machines of each kind.
pub(crate) const MACHINES: u8 = 3;

/// The password of every role of the database; it listens on loopback only.
pub(crate) const PASSWORD: &str = "password-of-this-bench";

/// The secret by which the nodes recognise each other.
pub(crate) const NODE_SECRET: &str = "secret-of-the-nodes-of-this-bench";

/// Networks and addresses of the example, and those of the bench. A connection within loopback
/// comes from 127.0.0.1, whichever address it leads to.
const ADDRESSES: [(&str, &str); 3] = [
    ("10.0.0.0/16", "127.0.0.0/8"),
    ("10.0.1.0/24", "127.0.0.0/8"),
    ("10.0.", "127.40."),
];

/// A machine of the cluster: an address, a name, and a folder in place of its file system.
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) folder: PathBuf,
}

impl Machine {
    /// The machine that has the database server of this number, from 1.
    pub(crate) fn of_database(number: u8, folder: &Path) -> Self {
        Self::new(format!("db{number}"), Self::database(number), folder)
    }

    /// The address of the database server of this number, from 1.
    pub(crate) fn database(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 40, 1, number)
    }

    /// Where the node of this number finds the database server of this number.
    pub(crate) fn link(node: u8, database: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 41, node, database)
    }

    /// The machine that has the node of this number, from 1.
    pub(crate) fn of_node(number: u8, folder: &Path) -> Self {
        let address = Ipv4Addr::new(127, 40, 2, number);
        Self::new(format!("node-{number}"), address, folder)
    }

    fn new(name: String, address: Ipv4Addr, folder: &Path) -> Self {
        let folder = folder.join(&name);
        for kept in ["var/lib", "var/run/postgresql", "etc/signalbox"] {
            fs::create_dir_all(folder.join(kept)).expect("the bench's folder takes another");
        }
        Self {
            name,
            address,
            folder,
        }
    }

    /// Gives the folder to the user that PostgreSQL runs as.
    pub(crate) fn give_to_postgres(&self) {
        let mut chown = Command::new("chown");
        let chown = chown.args(["-R", "postgres"]).arg(&self.folder).status();
        assert!(chown.is_ok_and(|it| it.success()), "root may give files");
    }

    /// A file of the documentation as this machine has it.
    pub(crate) fn file(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (example, ours) in ADDRESSES {
            text = text.replace(example, ours);
        }
        let folder = self.folder.display();
        for (example, ours) in [
            ("{name}", self.name.clone()),
            ("{address}", self.address.to_string()),
            ("{superuser password}", PASSWORD.to_owned()),
            ("{replication password}", PASSWORD.to_owned()),
            ("{database password}", PASSWORD.to_owned()),
            ("{master key}", MASTER_KEY.to_owned()),
            ("{operator token}", OPERATOR.to_owned()),
            ("/var/", format!("{folder}/var/")),
            ("/etc/signalbox/", format!("{folder}/etc/signalbox/")),
            (
                "/usr/lib/postgresql/15/bin",
                postgres::programs().display().to_string(),
            ),
        ] {
            text = text.replace(example, &ours);
        }
        text
    }

    /// The variables of a file of the documentation.
    pub(crate) fn variables(&self, text: &str) -> Vec<(String, String)> {
        let text = self.file(text);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.filter_map(|line| line.split_once('='));
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Writes a file that only its owner can read; returns where.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("the bench's folder takes a file");
        let owner = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&path, owner).expect("the file is ours");
        path
    }
}
