//! Which packages does a manifest depend on?
//!
//! Reads the few shapes cargo's own documents use: `[dependencies]` with a line each,
//! `[dependencies.NAME]`, either under `[target.…]`, and `package = "…"` behind another name.

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

/// Every dependency a manifest names; the workspace's own list is none.
pub(crate) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for (line, text) in (1..).zip(manifest.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if let Some(header) = text.strip_prefix('[') {
            section = Section::of(header.trim_end_matches(']'));
            if let Section::One(kind, name) = &section {
                found.push(Dependency {
                    package: name.clone(),
                    kind: *kind,
                    line,
                });
            }
            continue;
        }
        let Some((key, value)) = text.split_once('=') else {
            continue;
        };
        match &section {
            Section::Many(kind) => {
                let name = key.trim().split('.').next().unwrap_or_default();
                let package = renamed(value).unwrap_or(name).trim_matches('"').to_owned();
                found.push(Dependency {
                    package,
                    kind: *kind,
                    line,
                });
            }
            Section::One(..) if key.trim() == "package" => {
                let last = found.last_mut().expect("the header was a dependency");
                last.package = value.trim().trim_matches('"').to_owned();
            }
            Section::One(..) | Section::Other => {}
        }
    }
    found
}

enum Section {
    Many(Kind),
    One(Kind, String),
    Other,
}

impl Section {
    fn of(header: &str) -> Self {
        if header.starts_with("workspace") {
            return Self::Other;
        }
        // `target.'cfg(unix)'.dependencies` ends as every other does.
        let tables = [
            ("dev-dependencies", Kind::Dev),
            ("build-dependencies", Kind::Normal),
            ("dependencies", Kind::Normal),
        ];
        for (table, kind) in tables {
            if header == table || header.ends_with(&format!(".{table}")) {
                return Self::Many(kind);
            }
            let opening = format!("{table}.");
            if let Some(at) = header.find(&opening) {
                return Self::One(kind, header[at + opening.len()..].to_owned());
            }
        }
        Self::Other
    }
}

fn renamed(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.split('"').nth(1)
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
