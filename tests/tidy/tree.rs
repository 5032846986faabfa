//! Which files is the project made of, and which of their lines are tests?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::syntax::Syntax;

/// A Rust file of the project.
pub(crate) struct Source {
    /// Its path from the repository's root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its tokens, functions and tests.
    pub(crate) syntax: Syntax,
    tests: Vec<(usize, usize)>,
}

impl Source {
    /// Whether a line is part of a test.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&line))
    }

    /// Whether it is one of these files or in one of these folders.
    pub(crate) fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            let rest = self.path.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file, read once for all rules.
pub(crate) fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(read_all);
    &SOURCES
}

fn read_all() -> Vec<Source> {
    let mut sources: Vec<Source> = files("rs").iter().map(|path| read(path)).collect();
    mark_test_files(&mut sources);
    assert!(
        sources.len() > 30,
        "the tree is there: {} files",
        sources.len()
    );
    sources
}

/// The folder of every manifest.
pub(crate) fn packages() -> Vec<PathBuf> {
    files("toml")
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .map(|path| {
            path.parent()
                .expect("a manifest lies in a folder")
                .to_path_buf()
        })
        .collect()
}

fn read(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let syntax = Syntax::of(&text);
    Source {
        path: name_of(path),
        text,
        tests: syntax.test_lines.clone(),
        syntax,
    }
}

fn name_of(path: &Path) -> String {
    let inside = path
        .strip_prefix(root())
        .expect("every file lies under the root");
    inside.to_string_lossy().replace('\\', "/")
}

/// Files with an extension, in order, without build output and hidden files.
fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                let is_ours = !name.starts_with('.')
                    && !["target", "node_modules", "signalbox-data"].contains(&name.as_str());
                folders.extend(is_ours.then_some(path));
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file is a test as a whole if it is in a package's `tests` or `benches`, or is a module that
/// only tests declare.
fn mark_test_files(sources: &mut [Source]) {
    let mut modules = BTreeSet::new();
    for source in &*sources {
        let names = source.syntax.test_modules.iter();
        modules.extend(names.map(|name| format!("{}{name}", module_folder(&source.path))));
    }
    for source in sources {
        let in_package = source
            .path
            .split_once('/')
            .is_some_and(|(_, rest)| starts_as_test(rest));
        let is_module = modules.iter().any(|module| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
        if in_package || starts_as_test(&source.path) || is_module {
            source.tests.push((1, usize::MAX));
        }
    }
}

fn starts_as_test(path: &str) -> bool {
    path.starts_with("tests/") || path.starts_with("benches/")
}

/// Where the child modules of a file lie, with a closing `/`.
fn module_folder(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, "lib" | "main")) => format!("{folder}/"),
        _ => format!("{stem}/"),
    }
}
