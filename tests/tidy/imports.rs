//! Do files of a crate import each other in a cycle?
//!
//! A file imports another if it names something that is defined there, in a `use` or in a path;
//! what a module re-exports with `use` counts for the file that defines it. A parent module and its
//! descendants are one unit in several files: imports among them are no cycle. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, Path, UseTree, Visibility,
};

use super::hold;
use super::tree;

/// The folders whose files are the modules of one crate.
const CRATES: [&str; 7] = [
    "protocol/src",
    "engine/src",
    "store/src",
    "actors/src",
    "harness/src",
    "src",
    "xtask/src",
];

/// How many aliases of aliases are followed: more than anybody writes.
const ALIASES_MAX: u8 = 8;

#[test]
fn no_files_of_a_crate_import_each_other() {
    let mut found = Vec::new();
    for name in CRATES {
        let cycles = Crate::read(name).cycles().into_iter();
        found.extend(cycles.map(|cycle| cycle.to_string()));
    }
    hold("no files but parent and child import each other", &found);
}

/// A module, as its names from the crate's root.
type Module = Vec<String>;

/// A name in code: where it occurs, and its segments.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Named {
    within: Module,
    segments: Vec<String>,
}

/// The modules of a crate and what they name.
#[derive(Default)]
struct Crate {
    /// The file of each module; modules within a file have that file.
    files: BTreeMap<Module, String>,
    /// What a module brings into scope with `use`.
    aliases: BTreeMap<(Module, String), Named>,
    named: BTreeSet<Named>,
}

/// Files that reach each other, and the imports among them.
struct Cycle {
    files: BTreeSet<String>,
    imports: Vec<(String, String)>,
}

impl Crate {
    /// The crate whose files lie in a folder.
    fn read(folder: &str) -> Self {
        let mut read = Self::default();
        for source in tree::sources().iter().filter(|source| !source.is_test(1)) {
            let inside = source.path.strip_prefix(folder);
            if let Some(inside) = inside.and_then(|path| path.strip_prefix('/')) {
                read.add(inside, &source.path, &source.text);
            }
        }
        read
    }

    /// Adds a file, by its path within the crate and from the repository's root.
    fn add(&mut self, inside: &str, file: &str, text: &str) {
        let within: Module = match inside.trim_end_matches(".rs") {
            "lib" | "main" => vec![],
            stem => stem.split('/').map(str::to_owned).collect(),
        };
        self.files.insert(within.clone(), file.to_owned());
        let parsed = syn::parse_file(text).expect("the compiler has read this text");
        let mut reader = Reader {
            read: self,
            within,
            file,
        };
        reader.visit_file(&parsed);
    }

    /// The module that a name leads to, or that defines it; None if it belongs to another crate.
    fn module_of(&self, named: &Named, depth: u8) -> Option<Module> {
        let mut at = named.within.clone();
        let (first, rest) = named.segments.split_first()?;
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop()?;
            }
            name => at = self.step(&at, name, depth)?,
        }
        for segment in rest {
            match segment.as_str() {
                "super" => {
                    at.pop()?;
                }
                name => match self.step(&at, name, depth) {
                    Some(next) => at = next,
                    None => break,
                },
            }
        }
        Some(at)
    }

    /// The module that a name within a module leads to; None if the name is defined there.
    fn step(&self, at: &Module, name: &str, depth: u8) -> Option<Module> {
        let mut child = at.clone();
        child.push(name.to_owned());
        if self.files.contains_key(&child) {
            return Some(child);
        }
        let alias = self.aliases.get(&(at.clone(), name.to_owned()))?;
        self.module_of(alias, depth.checked_sub(1)?)
    }

    /// Each file with the files that it imports, except within a family of modules.
    fn imports(&self) -> BTreeSet<(&str, &str)> {
        let pairs = self.named.iter().filter_map(|named| {
            let to = self.module_of(named, ALIASES_MAX)?;
            let from = &named.within;
            let is_family = from.starts_with(&to) || to.starts_with(from);
            let (from, to) = (self.files.get(from)?, self.files.get(&to)?);
            (!is_family && from != to).then_some((from.as_str(), to.as_str()))
        });
        pairs.collect()
    }

    fn cycles(&self) -> Vec<Cycle> {
        let imports = self.imports();
        let reached: BTreeMap<&str, BTreeSet<&str>> = imports
            .iter()
            .map(|(from, _)| (*from, reached_from(from, &imports)))
            .collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
        let mut cycles: Vec<Cycle> = Vec::new();
        for file in reached.keys().filter(|file| reaches(file, file)) {
            if cycles.iter().any(|cycle| cycle.files.contains(*file)) {
                continue;
            }
            let among = reached[file].iter().filter(|other| reaches(other, file));
            let files: BTreeSet<String> = among.map(|file| (*file).to_owned()).collect();
            let is_inside =
                |(from, to): &&(&str, &str)| files.contains(*from) && files.contains(*to);
            let inside = imports.iter().filter(is_inside);
            let inside = inside.map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
            let imports = inside.collect();
            cycles.push(Cycle { files, imports });
        }
        cycles
    }
}

/// Every file that a file imports, directly or indirectly.
fn reached_from<'a>(file: &str, imports: &BTreeSet<(&'a str, &'a str)>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(at) = open.pop() {
        for (_, to) in imports.iter().filter(|(from, _)| *from == at) {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

impl std::fmt::Display for Cycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files import each other:", self.files.len())?;
        let mut imports = self.imports.iter();
        imports.try_for_each(|(from, to)| write!(f, "\n    {from} -> {to}"))
    }
}

/// Records what a file names.
struct Reader<'a> {
    read: &'a mut Crate,
    within: Module,
    file: &'a str,
}

impl Reader<'_> {
    fn note(&mut self, segments: Vec<String>) {
        let within = self.within.clone();
        self.read.named.insert(Named { within, segments });
    }

    fn bring(&mut self, tree: &UseTree, before: &[String]) {
        let extended = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.bring(&path.tree, &extended(&path.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.alias(last, before.to_vec());
            }
            UseTree::Name(name) => self.alias(name.ident.to_string(), extended(&name.ident)),
            UseTree::Rename(name) => self.alias(name.rename.to_string(), extended(&name.ident)),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bring(tree, before));
            }
            // No globs outside tests: tests/tidy/shape.rs.
            _ => {}
        }
    }

    fn alias(&mut self, name: String, segments: Vec<String>) {
        let within = self.within.clone();
        self.note(segments.clone());
        // `use anyhow;` would lead to itself.
        if segments != [name.clone()] {
            let named = Named {
                within: within.clone(),
                segments,
            };
            self.read.aliases.insert((within, name), named);
        }
    }

    /// Paths among unparsed tokens.
    fn scan(&mut self, stream: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for tree in stream {
            match tree {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.scan(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.end(&mut path);
                    colons = 0;
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.note(path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_for_tests(&item.attrs) || item.content.is_none() {
            return;
        }
        self.within.push(item.ident.to_string());
        self.read
            .files
            .insert(self.within.clone(), self.file.to_owned());
        visit::visit_item_mod(self, item);
        self.within.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.bring(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() && path.segments.len() > 1 {
            let segments = path.segments.iter();
            self.note(segments.map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.visit_path(&item.path);
        self.scan(item.tokens.clone());
    }

    /// `pub(in crate::api)` imports nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute
            .meta
            .require_list()
            .map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
    })
}

#[test]
fn cycles_are_found_by_what_files_name() {
    let nothing: &[&str] = &[];
    for (files, expected) in [
        (
            &[("a", "use crate::b::B;"), ("b", "use super::a::A;")][..],
            &["a", "b"][..],
        ),
        (
            &[("a", "use crate::b::B;"), ("b", "fn b() -> crate::a::A {}")],
            &["a", "b"],
        ),
        (
            &[
                ("a", "use crate::b::B;"),
                ("b", "const B: u8 = say!(crate::a::A);"),
            ],
            &["a", "b"],
        ),
        (
            &[
                ("a", "use crate::{b, c};"),
                ("b", "use crate::c;"),
                ("c", "use crate::a;"),
            ],
            &["a", "b", "c"],
        ),
        // A parent and its descendants are one unit.
        (
            &[("a", "mod b; use b::B;"), ("a/b", "use super::A;")],
            nothing,
        ),
        (
            &[("a/b", "use super::c::C;"), ("a/c", "use super::b::B;")],
            &["a/b", "a/c"],
        ),
        // What is re-exported belongs to the file that defines it.
        (
            &[
                ("a", "pub use b::B;"),
                ("a/b", "use crate::c::C;"),
                ("c", "use crate::a::B;"),
            ],
            &["a/b", "c"],
        ),
        (
            &[
                ("a", "use crate::b; fn a() { b::c::d() }"),
                ("b", ""),
                ("b/c", "use crate::a::A;"),
            ],
            &["a", "b/c"],
        ),
        // Neither tests nor visibilities are imports.
        (
            &[
                ("a", "use crate::b::B;"),
                ("b", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ],
            nothing,
        ),
        (
            &[
                ("a", "use crate::b::B;"),
                ("b", "pub(in crate::a) struct B;"),
            ],
            nothing,
        ),
        (&[("a", "use b::B;"), ("b", "use a::A;")], nothing),
    ] {
        let mut read = Crate::default();
        for (file, text) in files {
            read.add(file, file, text);
        }
        let cycles = read.cycles().into_iter();
        let found: Vec<String> = cycles.flat_map(|cycle| cycle.files).collect();
        assert_eq!(found, expected, "{files:?}");
    }
}
