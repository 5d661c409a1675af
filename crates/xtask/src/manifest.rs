//! The part of Cargo's manifest format that says who depends on whom.
//!
//! Reads tables of dependencies and nothing else; what may depend on what is decided in `layers`.

/// In what way a crate uses another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// For its own code.
    Normal,
    /// For its build script.
    Build,
    /// For its tests, examples and benchmarks.
    Dev,
}

/// One line of a table of dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The package, also when it is renamed.
    pub package: String,
    /// Which table.
    pub kind: Kind,
    /// The line of the manifest, from 1.
    pub line: usize,
}

/// Every dependency a manifest declares, those under `[target.….dependencies]` included.
pub fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut table: Option<Kind> = None;
    // Whether the header itself named the dependency, as `[dependencies.serde]` does.
    let mut in_own_table = false;
    for (index, raw) in manifest.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or("").trim();
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let parts = split_header(header);
            (table, in_own_table) = match parts.iter().position(|part| kind_of(part).is_some()) {
                Some(at) if parts.first().is_some_and(|first| first == "target") || at == 0 => {
                    let kind = kind_of(&parts[at]).expect("the position is that of a table of dependencies");
                    if let Some(package) = parts.get(at + 1) {
                        found.push(Dependency { package: package.clone(), kind, line: index + 1 });
                    }
                    (Some(kind), parts.len() > at + 1)
                }
                _ => (None, false),
            };
            continue;
        }
        let (Some(kind), Some((key, value))) = (table, line.split_once('=')) else { continue };
        if in_own_table {
            if key.trim() == "package" {
                let last = found.last_mut().expect("the header was pushed");
                last.package = unquote(value).to_owned();
            }
            continue;
        }
        let name = key.trim().split('.').next().unwrap_or("").trim().trim_matches('"');
        let package = renamed(value).unwrap_or(name);
        found.push(Dependency { package: package.to_owned(), kind, line: index + 1 });
    }
    found
}

fn kind_of(table: &str) -> Option<Kind> {
    match table {
        "dependencies" => Some(Kind::Normal),
        "build-dependencies" => Some(Kind::Build),
        "dev-dependencies" => Some(Kind::Dev),
        _ => None,
    }
}

/// `target.'cfg(unix)'.dependencies` has dots inside quotes that do not separate.
fn split_header(header: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in header.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if c == open => quote = None,
            (None, '.') => parts.push(String::new()),
            _ => parts.last_mut().expect("never empty").push(c),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn renamed(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    after.split('"').next()
}

fn unquote(value: &str) -> &str {
    value.trim().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        let manifest = r#"
[package]
name = "sample"
version = "1"

[dependencies]
model.workspace = true
serde = { version = "1", features = ["derive"] } # a remark
wire = { package = "protocol", path = "../protocol" }

[dependencies.store]
workspace = true

[dependencies.engine]
package = "store-sqlite"

[target.'cfg(target_os = "linux")'.dependencies]
libc = "0.2"

[build-dependencies]
cc = "1"

[dev-dependencies]
tempfile.workspace = true

[features]
default = []

[lints]
workspace = true
"#;
        let read: Vec<(String, Kind)> =
            dependencies(manifest).into_iter().map(|found| (found.package, found.kind)).collect();
        let expected = [
            ("model", Kind::Normal),
            ("serde", Kind::Normal),
            ("protocol", Kind::Normal),
            ("store", Kind::Normal),
            ("store-sqlite", Kind::Normal),
            ("libc", Kind::Normal),
            ("cc", Kind::Build),
            ("tempfile", Kind::Dev),
        ];
        assert_eq!(read, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn tables_of_the_workspace_are_no_dependencies_of_a_crate() {
        assert_eq!(dependencies("[workspace.dependencies]\nlibc = \"0.2\"\n"), []);
    }
}
