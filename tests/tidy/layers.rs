//! Does every layer import only layers below it, and is every third-party crate in its layer?

use std::fs;

use super::hold;
use super::manifest::{self, Dependency, Kind};
use super::tree::{self, Source};

/// A layer and the layers it may import.
struct Layer {
    name: &'static str,
    imports: &'static [&'static str],
    /// What its tests may import besides.
    tests_import: &'static [&'static str],
}

/// The import table of ARCHITECTURE.md.
const LAYERS: [Layer; 9] = [
    Layer {
        name: "protocol",
        imports: &[],
        tests_import: &[],
    },
    Layer {
        name: "dtls",
        imports: &[],
        tests_import: &[],
    },
    Layer {
        name: "engine",
        imports: &["dtls", "protocol"],
        tests_import: &[],
    },
    Layer {
        name: "store",
        imports: &["engine"],
        tests_import: &["store"],
    },
    Layer {
        name: "actors",
        imports: &["engine", "store"],
        tests_import: &[],
    },
    Layer {
        name: "harness",
        imports: &["dtls", "protocol"],
        tests_import: &[],
    },
    Layer {
        name: "xtask",
        imports: &[],
        tests_import: &[],
    },
    Layer {
        name: "fuzz",
        imports: &["dtls", "protocol"],
        tests_import: &[],
    },
    // The tests of the whole service act as its devices, and as a server for foreign ones.
    Layer {
        name: ROOT,
        imports: &["actors", "engine", "store", "harness"],
        tests_import: &["dtls", "protocol"],
    },
];

const ROOT: &str = "signalbox";

/// Third-party crates that have a layer, checked in manifests.
const CRATES: [(&str, &[&str]); 34] = [
    ("aes", &["dtls"]),
    ("aes-gcm", &["dtls"]),
    ("aws-lc-rs", &["dtls"]),
    ("cbc", &["dtls"]),
    ("ccm", &["dtls"]),
    ("chacha20poly1305", &["dtls", "store"]),
    ("coap-lite", &["protocol"]),
    ("sled", &["store"]),
    ("minicbor", &["protocol", "store"]),
    ("deadpool-postgres", &["store"]),
    ("refinery", &["store"]),
    ("tokio-postgres", &["store"]),
    ("tokio-postgres-rustls", &["store"]),
    ("roxmltree", &["protocol"]),
    ("actix", &["actors", ROOT]),
    ("actix-rt", &["actors", ROOT]),
    ("actix-web", &["actors", ROOT]),
    ("reqwest", &["actors", ROOT]),
    ("rustls-native-certs", &["actors"]),
    ("rustls-pki-types", &["dtls"]),
    ("rustls-webpki", &["dtls"]),
    ("url", &["engine", ROOT]),
    ("hashbrown", &["engine"]),
    ("hmac", &["dtls", "engine"]),
    ("hdrhistogram", &["harness"]),
    ("indicatif", &[ROOT]),
    ("jiff", &["engine"]),
    ("jsonwebtoken", &[ROOT]),
    ("metrics", &["actors", "store", ROOT]),
    ("metrics-exporter-prometheus", &[ROOT]),
    ("chrono", &["engine", "protocol"]),
    ("proc-macro2", &[ROOT]),
    ("syn", &[ROOT]),
    ("tokio", &["store", "actors", "harness", ROOT]),
];

/// Third-party crates that have a file or folder, checked in code.
const PATHS: [(&str, &[&str]); 17] = [
    (
        "aes",
        &["dtls/benches/bare_cbc.rs", "dtls/src/record/protection"],
    ),
    ("aes_gcm", &["dtls/src/record"]),
    (
        "cbc",
        &["dtls/benches/bare_cbc.rs", "dtls/src/record/protection"],
    ),
    ("ccm", &["dtls/src/record/protection"]),
    (
        "coap_lite",
        &[
            "protocol/src/coap/message/header.rs",
            "protocol/tests/coap_properties",
        ],
    ),
    (
        "chrono",
        &["engine/src/moment.rs", "protocol/src/lwm2m/value/time.rs"],
    ),
    ("deadpool_postgres", POSTGRES),
    ("refinery", POSTGRES),
    ("tokio_postgres", POSTGRES),
    ("tokio_postgres_rustls", POSTGRES),
    ("jiff", &["engine/src/zone.rs"]),
    ("hashbrown", &["engine/src/indexed_map.rs"]),
    (
        "hmac",
        &[
            "dtls/benches/bare_cbc.rs",
            "dtls/src/key_schedule.rs",
            "dtls/src/record/recorded.rs",
            "engine/src/delivery/signature.rs",
            "engine/src/firmware/image_key.rs",
            "engine/src/node/secret.rs",
        ],
    ),
    ("rustls_native_certs", &["actors/src/http/trust.rs"]),
    ("rustls_pki_types", &["dtls/src/x509.rs"]),
    ("webpki", &["dtls/src/x509.rs"]),
    (
        "roxmltree",
        &[
            "protocol/src/lwm2m/model/definition/reading.rs",
            "protocol/src/lwm2m/model/definition/reading",
        ],
    ),
];

/// The engine on PostgreSQL.
const POSTGRES: &[&str] = &["store/src/postgres.rs", "store/src/postgres"];

/// Derives that give a type a format, and the places whose types are named for that format.
const DERIVES: [(&str, &[&str]); 4] = [
    (
        "Serialize",
        &[
            "src/api",
            "src/api.rs",
            "engine/src/delivery/body.rs",
            "engine/src/delivery/body",
        ],
    ),
    ("Deserialize", &["src/api", "src/api.rs"]),
    ("Encode", &["store/src/record", "store/src/record.rs"]),
    ("Decode", &["store/src/record", "store/src/record.rs"]),
];

fn each_dependency() -> Vec<(String, String, Dependency)> {
    let mut all = Vec::new();
    for folder in tree::packages() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let inside = folder
            .strip_prefix(tree::root())
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let (layer, path) = match inside.as_str() {
            "" => (ROOT.to_owned(), "Cargo.toml".to_owned()),
            _ => (inside.clone(), format!("{inside}/Cargo.toml")),
        };
        let dependencies = manifest::dependencies(&text).into_iter();
        all.extend(dependencies.map(|dependency| (layer.clone(), path.clone(), dependency)));
    }
    all
}

#[test]
fn every_layer_is_in_the_import_table() {
    let folders = tree::packages();
    let names = folders.iter().map(|folder| {
        let inside = folder.strip_prefix(tree::root()).unwrap();
        inside.to_string_lossy().into_owned()
    });
    let mut found: Vec<String> = names
        .map(|name| {
            if name.is_empty() {
                ROOT.to_owned()
            } else {
                name
            }
        })
        .collect();
    let mut expected: Vec<&str> = LAYERS.iter().map(|layer| layer.name).collect();
    found.sort();
    expected.sort_unstable();
    assert_eq!(
        found, expected,
        "the layers that exist, and the rows of tests/tidy/layers.rs"
    );
}

#[test]
fn every_layer_imports_only_layers_below_it() {
    let is_ours = |name: &str| LAYERS.iter().any(|layer| layer.name == name);
    let mut found = Vec::new();
    for (name, path, dependency) in each_dependency() {
        let Dependency {
            package,
            kind,
            line,
        } = dependency;
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            continue;
        };
        let in_tests = kind == Kind::Dev && layer.tests_import.contains(&package.as_str());
        if is_ours(&package) && !layer.imports.contains(&package.as_str()) && !in_tests {
            found.push(format!("{path}:{line}: {name} imports {package}"));
        }
    }
    hold(
        "a layer imports what the table of ARCHITECTURE.md allows",
        &found,
    );
}

#[test]
fn third_party_crates_stay_in_their_layer() {
    let mut found = Vec::new();
    for (name, path, Dependency { package, line, .. }) in each_dependency() {
        let layers = CRATES
            .iter()
            .find(|(third, _)| *third == package)
            .map(|(_, layers)| layers);
        if layers.is_some_and(|layers| !layers.contains(&name.as_str())) {
            found.push(format!("{path}:{line}: {package}"));
        }
    }
    hold("a third-party crate has its layers", &found);
}

#[test]
fn third_party_crates_stay_in_their_file() {
    let mut found = Vec::new();
    for (third, places) in PATHS {
        found.extend(super::mentions_of(third, |source, _| !source.is_in(places)));
    }
    hold("a third-party crate is wrapped in its file", &found);
}

#[test]
fn formats_are_derived_only_where_types_are_named_for_them() {
    let mut found = Vec::new();
    for source in tree::sources() {
        for (line, name) in derives_of(source) {
            let format = DERIVES.iter().find(|(format, _)| *format == name);
            if format.is_some_and(|(_, places)| !source.is_in(places)) {
                found.push(format!("{}:{line}: derive({name})", source.path));
            }
        }
    }
    hold(
        "types of the engine and the protocol are not serialisable",
        &found,
    );
}

/// The entries of each `derive(…)` of a file, with their lines.
fn derives_of(source: &Source) -> Vec<(usize, &str)> {
    let lists = source.syntax.places(&["derive", "("]).into_iter();
    let tokens = lists.flat_map(|place| {
        let inside = &source.syntax.tokens[place + 2..];
        inside.iter().take_while(|token| token.text != ")")
    });
    tokens.map(|token| (token.line, &*token.text)).collect()
}
