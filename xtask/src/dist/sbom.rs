//! The software bill of materials: every crate that is in the program, as CycloneDX 1.5.
//!
//! It is made from `cargo metadata` and `Cargo.lock`: the crates that the package `mcptest` needs
//! on any platform, without those of its tests. It has no time and no random number, so the same
//! lock file gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::output;
use crate::workspace;

/// Writes the file and returns its path.
pub fn make(version: &str, out: &Path) -> Result<PathBuf> {
    let metadata = output(workspace::cargo().args(["metadata", "--format-version=1", "--locked"]))?;
    let metadata: Value =
        serde_json::from_slice(&metadata).context("cargo metadata gave no JSON")?;
    let lock = std::fs::read_to_string(workspace::root().join("Cargo.lock"))
        .context("cannot read Cargo.lock")?;
    let document = document(&metadata, &checksums(&lock), version)?;
    let path = out.join(format!("mcptest-{version}.cdx.json"));
    std::fs::write(&path, format!("{document:#}\n")).context("cannot write the SBOM")?;
    Ok(path)
}

/// The checksums of `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let value = |line: &'_ str, key: &str| -> Option<(usize, usize)> {
        let rest = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        let start = line.len() - rest.len();
        rest.find('"').map(|end| (start, start + end))
    };
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let get = |key: &str| {
            package
                .lines()
                .find_map(|line| value(line, key).map(|(start, end)| &line[start..end]))
        };
        if let (Some(name), Some(version), Some(sum)) =
            (get("name"), get("version"), get("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(&str, &str), &str>,
    version: &str,
) -> Result<Value> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let by_id: BTreeMap<&str, &Value> = packages
        .iter()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let needs: BTreeMap<&str, Vec<&str>> = nodes
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, needed(node))))
        .collect();
    let program = packages
        .iter()
        .find(|package| package["name"] == "mcptest")
        .and_then(|package| package["id"].as_str())
        .context("cargo metadata has no package mcptest")?;
    let mut reached = BTreeSet::from([program]);
    let mut open = vec![program];
    while let Some(id) = open.pop() {
        for need in needs.get(id).into_iter().flatten() {
            if reached.insert(need) {
                open.push(need);
            }
        }
    }
    let mut components: Vec<Value> = reached
        .iter()
        .filter(|id| **id != program)
        .filter_map(|id| by_id.get(id))
        .map(|package| component(package, checksums))
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let mut dependencies: Vec<Value> = reached
        .iter()
        .filter_map(|id| {
            let mut needed: Vec<String> = needs
                .get(id)?
                .iter()
                .filter_map(|need| by_id.get(need).map(|package| purl(package)))
                .collect();
            needed.sort();
            needed.dedup();
            Some(json!({"ref": purl(by_id.get(id)?), "dependsOn": needed}))
        })
        .collect();
    dependencies.sort_by_key(|entry| entry["ref"].to_string());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/mcptest@{version}"),
                "name": "mcptest",
                "version": version,
                "purl": format!("pkg:cargo/mcptest@{version}"),
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The packages that a package is built from: not those of its tests.
fn needed(node: &Value) -> Vec<&str> {
    let kinds = |dependency: &Value| {
        let kinds = dependency["dep_kinds"].as_array();
        kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
    };
    let dependencies = node["deps"].as_array().map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter(|dependency| kinds(dependency))
        .filter_map(|dependency| dependency["pkg"].as_str())
        .collect()
}

fn purl(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    format!("pkg:cargo/{}@{}", text("name"), text("version"))
}

fn component(package: &Value, checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let mut component = json!({
        "type": "library",
        "bom-ref": purl(package),
        "name": text("name"),
        "version": text("version"),
        "purl": purl(package),
    });
    if let Some(licence) = package["license"].as_str() {
        // An old spelling of `OR`, which SPDX does not know.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(sum) = checksums.get(&(text("name"), text("version"))) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_is_built_from_is_listed_and_nothing_else() {
        let package = |name: &str, licence: &str| json!({"id": format!("id-{name}"), "name": name, "version": "1.0.0", "license": licence});
        let needs = |pkg: &str, kind: Value| json!({"pkg": pkg, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("mcptest", "MIT"),
                package("a", "MIT/Apache-2.0"),
                package("b", "MIT"),
                package("tests-only", "MIT"),
                package("other", "MIT"),
            ],
            "resolve": {"nodes": [
                {"id": "id-mcptest", "deps": [needs("id-a", Value::Null), needs("id-tests-only", "dev".into())]},
                {"id": "id-a", "deps": [needs("id-b", "build".into())]},
                {"id": "id-b", "deps": []},
                {"id": "id-tests-only", "deps": []},
                {"id": "id-other", "deps": []},
            ]},
        });
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n\
                    \n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n";
        let document = document(&metadata, &checksums(lock), "1.0.0").unwrap();
        let components = document["components"].as_array().unwrap();
        let names: Vec<&str> = components
            .iter()
            .filter_map(|component| component["name"].as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(components[0]["hashes"][0]["content"], "abc");
        assert_eq!(components[1].get("hashes"), None);
        assert_eq!(
            document["dependencies"][0],
            json!({"ref": "pkg:cargo/a@1.0.0", "dependsOn": ["pkg:cargo/b@1.0.0"]})
        );
    }
}
