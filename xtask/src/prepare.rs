//! What do the interop and browser tests need, and how is it installed?
//!
//! Foreign CoAP and DTLS stacks, two SMS centres, two brokers, a reader of metrics, a receiver of
//! events and callers: libcoap's programs, OpenSSL, GnuTLS, Mosquitto, PostgreSQL, PgBouncer, Node,
//! curl, jq and nc from the system's packages; aiocoap with tinydtls, Prometheus' own client, the
//! library of Standard Webhooks, Schemathesis and Java 21 in a Python environment; node-smpp,
//! aedes, oidc-provider and a newer PostgreSQL from npm; a device on Eclipse Leshan, checks on
//! Eclipse Californium, an SMS centre on jSMPP, attacks with TLS-Attacker and its scanner that
//! Maven builds, all under `target/interop`. On a machine that has them all, this takes a moment.

mod maven;
mod node;
mod python;

use std::path::Path;

use crate::console;
use crate::machine::{self, Need, has_program, succeeds};
use crate::steps::{Stop, step};

use node::Modules;

// Debian builds libcoap's programs once per TLS library and names them accordingly; others build
// one.
const NEEDS: [Need; 23] = [
    Need {
        what: "Python 3.10 or newer as python3",
        package: "python3",
        is_met: || {
            succeeds(
                "python3",
                &["-c", "import sys; sys.exit(sys.version_info < (3, 10))"],
            )
        },
    },
    Need {
        what: "Python's venv and ensurepip",
        package: "python3-venv",
        is_met: || succeeds("python3", &["-c", "import venv, ensurepip"]),
    },
    Need {
        what: "Python's headers, which DTLSSocket is built with",
        package: "python3-dev",
        is_met: || {
            let finds = "import os, sys, sysconfig; \
                 sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))";
            succeeds("python3", &["-c", finds])
        },
    },
    Need {
        what: "autoreconf, which tinydtls of DTLSSocket is built with",
        package: "autoconf",
        is_met: || has_program("autoreconf"),
    },
    Need {
        what: "aclocal, which autoreconf runs",
        package: "automake",
        is_met: || has_program("aclocal"),
    },
    Need {
        what: "coap-client of libcoap 4.3",
        package: "libcoap3-bin",
        is_met: || {
            ["coap-client-notls", "coap-client"]
                .into_iter()
                .any(has_program)
        },
    },
    Need {
        what: "coap-server of libcoap 4.3",
        package: "libcoap3-bin",
        is_met: || {
            ["coap-server-notls", "coap-server"]
                .into_iter()
                .any(has_program)
        },
    },
    Need {
        what: "coap-client of libcoap 4.3 on OpenSSL",
        package: "libcoap3-bin",
        is_met: || has_program("coap-client-openssl"),
    },
    Need {
        what: "coap-client of libcoap 4.3 on GnuTLS",
        package: "libcoap3-bin",
        is_met: || has_program("coap-client-gnutls"),
    },
    Need {
        what: "OpenSSL 3 as openssl",
        package: "openssl",
        is_met: || succeeds("openssl", &["version"]),
    },
    Need {
        what: "GnuTLS' client as gnutls-cli",
        package: "gnutls-bin",
        is_met: || has_program("gnutls-cli"),
    },
    Need {
        what: "a JDK, Java 17 or newer",
        package: "default-jdk-headless",
        is_met: maven::has_compiler,
    },
    Need {
        what: "Maven as mvn",
        package: "maven",
        is_met: || succeeds("mvn", &["--version"]),
    },
    Need {
        what: "Node.js 20.19 or newer as node (22.12 or newer in later lines)",
        package: "nodejs",
        is_met: console::has_node,
    },
    Need {
        what: "npm",
        package: "npm",
        is_met: || succeeds("npm", &["--version"]),
    },
    Need {
        what: "Chromium, for the browser tests",
        package: "chromium",
        is_met: console::has_chromium,
    },
    Need {
        what: "curl, as the guide of /docs uses it",
        package: "curl",
        is_met: || has_program("curl"),
    },
    Need {
        what: "jq, as the guide of /docs uses it",
        package: "jq",
        is_met: || has_program("jq"),
    },
    Need {
        what: "mosquitto 2, an MQTT broker",
        package: "mosquitto",
        // Debian installs it where only root looks.
        is_met: || has_program("mosquitto") || Path::new("/usr/sbin/mosquitto").is_file(),
    },
    Need {
        what: "mosquitto_pub and mosquitto_sub",
        package: "mosquitto-clients",
        is_met: || has_program("mosquitto_pub") && has_program("mosquitto_sub"),
    },
    Need {
        what: "the programs of a PostgreSQL server, version 15 or later",
        package: "postgresql",
        is_met: || {
            let versions = std::fs::read_dir("/usr/lib/postgresql")
                .into_iter()
                .flatten();
            let mut versions = versions.flatten();
            versions.any(|version| version.path().join("bin/initdb").is_file())
        },
    },
    Need {
        what: "PgBouncer, a pooler of connections",
        package: "pgbouncer",
        // Debian installs it where only root looks.
        is_met: || has_program("pgbouncer") || Path::new("/usr/sbin/pgbouncer").is_file(),
    },
    Need {
        what: "nc of OpenBSD, as docs/plain-devices.md uses it",
        package: "netcat-openbsd",
        is_met: || succeeds("sh", &["-c", "nc -h 2>&1 | grep -q OpenBSD"]),
    },
];

/// What a server on OpenSSL is compiled with.
const OPENSSL_NEEDS: [Need; 1] = [Need {
    what: "a C compiler as cc, and OpenSSL's headers",
    package: "libssl-dev",
    is_met: || {
        let compiles = "echo '#include <openssl/ssl.h>' | cc -fsyntax-only -x c -";
        succeeds("sh", &["-c", compiles])
    },
}];

/// What decides which of several PostgreSQL servers is the primary.
const CLUSTER_NEEDS: [Need; 2] = [
    Need {
        what: "Patroni as patroni and patronictl",
        package: "patroni",
        is_met: || has_program("patroni") && has_program("patronictl"),
    },
    Need {
        what: "etcd 3",
        package: "etcd-server",
        is_met: || has_program("etcd"),
    },
];

/// The package of the database.
const DATABASE_PACKAGES: [&str; 1] = ["postgresql"];

/// The packages of which programs that Maven builds are made.
const MAVEN_PACKAGES: [&str; 2] = ["default-jdk-headless", "maven"];

/// The packages by which the console is built and opened.
const BROWSER_PACKAGES: [&str; 3] = ["nodejs", "npm", "chromium"];

/// Installs what is missing.
pub(crate) fn run() -> Result<(), Stop> {
    machine::meet(&NEEDS)?;
    let environment = python::Environment::of_interop();
    if !environment.is_ready() {
        step("Python environment", || environment.make())?;
    }
    for (what, modules) in [
        ("SMS centre on node-smpp", Modules::of_interop("smpp")),
        ("broker on aedes", Modules::of_interop("aedes")),
        (
            "identity provider on oidc-provider",
            Modules::of_interop("oidc-provider"),
        ),
        ("PostgreSQL 17", Modules::of_servers()),
    ] {
        if !modules.is_ready() {
            step(what, || modules.install())?;
        }
    }
    for (what, program) in made_by_maven() {
        if !program.is_ready() {
            step(what, || program.build())?;
        }
    }
    console::prepare()
}

/// Installs the servers that are measured beside the service.
pub(crate) fn peers() -> Result<(), Stop> {
    meet_those_of(&MAVEN_PACKAGES)?;
    let server = maven::Program::of_interop("leshan-server", &["PeerServer", "--check"]);
    match server.is_ready() {
        true => Ok(()),
        false => step("server on Leshan", || server.build()),
    }
}

/// Installs what the server on OpenSSL is compiled with.
pub(crate) fn openssl() -> Result<(), Stop> {
    machine::meet(&OPENSSL_NEEDS)
}

/// Installs the servers of the database that several nodes have.
pub(crate) fn cluster() -> Result<(), Stop> {
    let all = those_of(&DATABASE_PACKAGES).chain(CLUSTER_NEEDS);
    machine::meet(&all.collect::<Vec<Need>>())
}

/// Installs the browser in which the console is measured, and builds the console.
pub(crate) fn browser() -> Result<(), Stop> {
    meet_those_of(&BROWSER_PACKAGES)?;
    console::prepare()
}

fn meet_those_of(packages: &[&str]) -> Result<(), Stop> {
    machine::meet(&those_of(packages).collect::<Vec<Need>>())
}

fn those_of(packages: &[&str]) -> impl Iterator<Item = Need> {
    let needs = NEEDS.iter().copied();
    needs.filter(|need| packages.contains(&need.package))
}

fn made_by_maven() -> [(&'static str, maven::Program); 5] {
    const DEVICE: [&str; 9] = [
        "LeshanDevice",
        "--endpoint",
        "check",
        "--server",
        "coap://127.0.0.1",
        "--bind",
        "127.0.0.1",
        "--check",
        "yes",
    ];
    const ATTACKS: [&str; 2] = ["Attacks", "--check"];
    const CHECKS: [&str; 2] = ["Plugtest", "--check"];
    const SCANNER: [&str; 2] = ["de.rub.nds.tlsscanner.serverscanner.Main", "-help"];
    [
        (
            "device on Leshan",
            maven::Program::of_interop("leshan", &DEVICE),
        ),
        (
            "checks on Californium",
            maven::Program::of_interop("plugtest", &CHECKS),
        ),
        (
            "SMS centre on jSMPP",
            maven::Program::of_interop("jsmpp", &["Smsc", "--check"]),
        ),
        (
            "attacks with TLS-Attacker",
            maven::Program::of_interop("tls-attacker", &ATTACKS),
        ),
        (
            "TLS-Scanner",
            maven::Program::of_interop("tls-scanner", &SCANNER)
                .on(|| python::Environment::of_interop().java()),
        ),
    ]
}
