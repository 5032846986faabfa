//! Which files of the console are embedded? Those that npm builds from `console/`.
//!
//! Writes `console_bundle.rs`: the files, or, where there is no Node, the sentence that says what
//! to install. Everything else of the service is built without Node.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use console::{ConsoleWorkspace, INSTALL_NODE, INSTALL_PACKAGES, NoConsole, OBJECTS};

#[path = "build/console.rs"]
#[allow(dead_code, reason = "cargo xtask uses the rest")]
mod console;

/// The files and folders whose change builds the console anew. `console/` itself is none of them:
/// Cargo would look through its node_modules whenever it runs.
const WATCHED: [&str; 10] = [
    "build.rs",
    "build/console.rs",
    OBJECTS,
    "console/index.html",
    "console/openapi.json",
    "console/package-lock.json",
    "console/package.json",
    "console/scripts",
    "console/src",
    "console/vite.config.ts",
];

fn main() {
    for watched in WATCHED {
        println!("cargo::rerun-if-changed={watched}");
    }
    if let Err(error) = embed() {
        eprintln!("console: {error}");
        process::exit(1);
    }
}

fn embed() -> io::Result<()> {
    let out = folder_of("OUT_DIR")?;
    // target/PROFILE/build/signalbox-0123456789abcdef/out
    let target = out.ancestors().nth(4).unwrap_or(&out);
    let workspace = ConsoleWorkspace::new(&folder_of("CARGO_MANIFEST_DIR")?, target);
    let text = match workspace.bundle() {
        Ok(bundle) => return fs::write(out.join(TEXT), embedded(&bundle, &out)?),
        Err(NoConsole::Node) => INSTALL_NODE,
        Err(NoConsole::Packages(output)) => {
            println!("cargo::warning=the console is left out: npm could not install its packages");
            eprintln!("{output}");
            INSTALL_PACKAGES
        }
        Err(NoConsole::Sources(output)) => return Err(io::Error::other(output)),
        Err(NoConsole::File(error)) => return Err(error),
    };
    if !workspace.attempt().exists() {
        workspace.note_attempt()?;
    }
    println!("cargo::rerun-if-changed={}", workspace.attempt().display());
    fs::write(
        out.join(TEXT),
        format!("const BUNDLE: Result<Bundle, &str> = Err({text:?});\n"),
    )
}

const TEXT: &str = "console_bundle.rs";

/// Copies the built files beside the generated text, which then depends on nothing else.
fn embedded(bundle: &Path, out: &Path) -> io::Result<String> {
    let copies = out.join("console");
    if copies.is_dir() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    fs::copy(bundle.join("index.html"), copies.join("index.html"))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(bundle.join("assets"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Some(plain) = name.strip_suffix(".gz") {
            fs::copy(&path, copies.join(&name))?;
            names.push(plain.to_owned());
        }
    }
    names.sort();
    let include = |name: &str| format!("include_bytes!({:?})", copies.join(name));
    let mut text = format!(
        "const BUNDLE: Result<Bundle, &str> = Ok(Bundle {{\n    page: {},\n    files: &[\n",
        include("index.html")
    );
    for name in &names {
        let (media, gzip) = (media_of(name)?, include(&format!("{name}.gz")));
        text +=
            &format!("        BundledFile {{ name: {name:?}, media: {media:?}, gzip: {gzip} }},\n");
    }
    Ok(text + "    ],\n});\n")
}

fn media_of(name: &str) -> io::Result<&'static str> {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("css") => Ok("text/css; charset=utf-8"),
        Some("js") => Ok("text/javascript; charset=utf-8"),
        Some("txt") => Ok("text/plain; charset=utf-8"),
        Some("svg") => Ok("image/svg+xml"),
        _ => Err(io::Error::other(format!("no media type for {name}"))),
    }
}

fn folder_of(variable: &str) -> io::Result<PathBuf> {
    let folder = env::var_os(variable).map(PathBuf::from);
    folder.ok_or_else(|| io::Error::other(format!("{variable} is not set")))
}
