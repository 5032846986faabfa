//! Which packages does a manifest depend on?

use toml::de::{DeTable, DeValue};

/// What a dependency is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// The package is built with it.
    Normal,
    /// Its tests are.
    Dev,
}

/// One line of a manifest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Dependency {
    /// The package.
    pub(crate) package: String,
    /// What it is for.
    pub(crate) kind: Kind,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// Every dependency a manifest names, in the order of their lines, without the workspace's own
/// list.
pub(crate) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let table = DeTable::parse(manifest).expect("cargo has read this manifest");
    let mut found = Vec::new();
    collect(table.get_ref(), manifest, &mut found);
    found.sort_by_key(|dependency| dependency.line);
    found
}

fn collect(table: &DeTable<'_>, manifest: &str, found: &mut Vec<Dependency>) {
    for (key, value) in table {
        let Some(inside) = value.get_ref().as_table() else {
            continue;
        };
        let kind = match key.get_ref().as_ref() {
            "dependencies" | "build-dependencies" => Kind::Normal,
            "dev-dependencies" => Kind::Dev,
            "target" => {
                let targets = inside.values().filter_map(|it| it.get_ref().as_table());
                targets.for_each(|target| collect(target, manifest, found));
                continue;
            }
            _ => continue,
        };
        found.extend(inside.iter().map(|(name, value)| {
            Dependency {
                package: renamed(value.get_ref())
                    .unwrap_or(name.get_ref())
                    .to_owned(),
                kind,
                line: 1 + manifest[..name.span().start].matches('\n').count(),
            }
        }));
    }
}

/// The package behind another name.
fn renamed<'a>(value: &'a DeValue<'_>) -> Option<&'a str> {
    value.get("package")?.get_ref().as_str()
}

#[cfg(test)]
mod tests {
    use super::{Kind, dependencies};

    const MANIFEST: &str = r#"
[workspace.dependencies]
unused = "1"

[package]
name = "dependencies"

[dependencies]
one.workspace = true # why
two = { version = "1", features = ["x"] }
"three" = "1"
four = { package = "real-four", version = "1" }

[dev-dependencies]
five = "1"

[target.'cfg(unix)'.dependencies]
six = "1"

[dependencies.seven]
version = "1"
package = "real-seven"

[lints]
workspace = true
"#;

    #[test]
    fn every_shape_of_a_dependency_is_read() {
        let found: Vec<(String, Kind)> = dependencies(MANIFEST)
            .into_iter()
            .map(|dependency| (dependency.package, dependency.kind))
            .collect();
        let expected = [
            ("one", Kind::Normal),
            ("two", Kind::Normal),
            ("three", Kind::Normal),
            ("real-four", Kind::Normal),
            ("five", Kind::Dev),
            ("six", Kind::Normal),
            ("real-seven", Kind::Normal),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }
}
