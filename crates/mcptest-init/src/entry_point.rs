//! Commands that start a file or a project: `server.py`, `src/index.ts`, `package.json`,
//! `pyproject.toml`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The facts about the machine and the project. Paths are relative to the folder in which the
/// command will run.
pub struct ProjectFacts<'a> {
    /// The text of a file.
    pub read: &'a dyn Fn(&Path) -> Option<String>,
    /// Returns true if a program is on PATH.
    pub has_program: &'a dyn Fn(&str) -> bool,
    /// The version of Node: major and minor.
    pub node: &'a dyn Fn() -> Option<(u32, u32)>,
}

/// A command line, and its name for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// Program and arguments.
    pub argv: Vec<String>,
}

/// The reason why a file cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotStart(pub String);

/// The first Node that runs TypeScript by itself.
const NODE_WITH_TYPESCRIPT: (u32, u32) = (22, 18);

/// Returns true if a path is that of an entry point, not of a configuration.
#[must_use]
pub fn is_entry_point(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(
        ending,
        Some("py" | "ts" | "mts" | "cts" | "js" | "mjs" | "cjs")
    ) || matches!(name, Some("package.json" | "pyproject.toml"))
}

/// The command line for a file.
///
/// # Errors
/// The file says nothing about a start, or something is not built or installed.
pub fn start(path: &Path, facts: &ProjectFacts<'_>) -> Result<EntryPoint, CannotStart> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name {
        Some("package.json") => return package(path, facts),
        Some("pyproject.toml") => return python_project(path, facts),
        _ => {}
    }
    let argv = match path.extension().and_then(|ending| ending.to_str()) {
        Some("py") => python_file(path, facts)?,
        Some("ts" | "mts" | "cts") => typescript(path, facts)?,
        _ => vec!["node".to_owned(), shown(path)],
    };
    Ok(EntryPoint { argv })
}

/// The entry points of a folder that are worth an offer, the most likely first.
#[must_use]
pub fn candidates(facts: &ProjectFacts<'_>) -> Vec<PathBuf> {
    let files = [
        "server.py",
        "main.py",
        "src/server.py",
        "src/main.py",
        "server.ts",
        "index.ts",
        "src/index.ts",
        "src/server.ts",
        "server.js",
        "server.mjs",
        "index.js",
        "dist/index.js",
        "build/index.js",
    ];
    let speaks_mcp = |text: &str| {
        [
            "modelcontextprotocol",
            "fastmcp",
            "FastMCP",
            "mcp.server",
            "McpServer",
            "from mcp",
        ]
        .iter()
        .any(|mark| text.contains(mark))
    };
    let mut found = Vec::new();
    for file in ["pyproject.toml", "package.json"] {
        let path = PathBuf::from(file);
        let text = (facts.read)(&path);
        let offers = text.is_some_and(|text| speaks_mcp(&text) || text.contains("mcp"));
        if offers && start(&path, facts).is_ok() {
            found.push(path);
        }
    }
    for file in files {
        let path = PathBuf::from(file);
        if (facts.read)(&path).is_some_and(|text| speaks_mcp(&text)) {
            found.push(path);
        }
    }
    found
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The path of a file beside another.
fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(name)
}

/// The words before a Python file or module: `uv run`, the interpreter of a virtual environment,
/// or the one on PATH.
fn python(path: &Path, facts: &ProjectFacts<'_>, script: Option<&str>) -> Option<Vec<String>> {
    let exists = |name: &str| (facts.read)(&beside(path, name)).is_some();
    let has_metadata = script.is_some_and(|text| text.contains("# /// script"));
    let project = (facts.read)(&beside(path, "pyproject.toml"));
    let uses_uv = exists("uv.lock")
        || has_metadata
        || project.is_some_and(|text| text.contains("[tool.uv") || text.contains("uv_build"));
    if uses_uv && (facts.has_program)("uv") {
        return Some(vec!["uv".to_owned(), "run".to_owned()]);
    }
    for folder in [".venv", "venv"] {
        // The interpreter is binary: its configuration shows that it is there.
        let configuration = beside(path, &format!("{folder}/pyvenv.cfg"));
        if (facts.read)(&configuration).is_some() {
            return Some(vec![shown(&beside(path, &format!("{folder}/bin/python")))]);
        }
    }
    ["python3", "python"]
        .into_iter()
        .find(|program| (facts.has_program)(program))
        .map(|program| vec![program.to_owned()])
}

fn python_file(path: &Path, facts: &ProjectFacts<'_>) -> Result<Vec<String>, CannotStart> {
    let text = (facts.read)(path).unwrap_or_default();
    let Some(mut argv) = python(path, facts, Some(&text)) else {
        return Err(CannotStart(
            "neither python3 nor python is on PATH".to_owned(),
        ));
    };
    let runs_itself =
        text.contains("__main__") || text.contains(".run(") || text.contains("asyncio.run");
    // A module that only defines the server is run by the library's own command.
    if !runs_itself && text.contains("fastmcp") {
        if argv.first().is_some_and(|first| first != "uv") {
            argv.push("-m".to_owned());
        }
        argv.extend(["fastmcp", "run"].map(str::to_owned));
    }
    argv.push(shown(path));
    Ok(argv)
}

fn python_project(path: &Path, facts: &ProjectFacts<'_>) -> Result<EntryPoint, CannotStart> {
    let text = (facts.read)(path)
        .ok_or_else(|| CannotStart(format!("`{}` cannot be read", path.display())))?;
    let Some((script, module)) = project_script(&text) else {
        return Err(CannotStart(format!(
            "`{}` has no `[project.scripts]`; give the command with `--command`",
            path.display()
        )));
    };
    let argv = python(path, facts, None);
    let argv = match argv {
        Some(words) if words.first().is_some_and(|first| first == "uv") => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let mut argv = vec!["uv".to_owned(), "run".to_owned()];
            if let Some(folder) = folder {
                argv.extend(["--directory".to_owned(), shown(folder)]);
            }
            argv.push(script);
            argv
        }
        Some(words) if words.first().is_some_and(|first| first.contains('/')) => {
            let interpreter = PathBuf::from(&words[0]);
            vec![shown(&beside(&interpreter, &script))]
        }
        _ if (facts.has_program)(&script) => vec![script],
        Some(mut words) => {
            words.extend(["-m".to_owned(), module]);
            words
        }
        None => {
            return Err(CannotStart(
                "neither python3 nor python is on PATH".to_owned(),
            ));
        }
    };
    Ok(EntryPoint { argv })
}

/// The first script of a project and the module that it is in, from `[project.scripts]`.
fn project_script(text: &str) -> Option<(String, String)> {
    let mut inside = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line == "[project.scripts]";
            continue;
        }
        if let Some((name, target)) = line.split_once('=').filter(|_| inside) {
            let name = name.trim().trim_matches(['"', '\'']);
            let target = target.trim().trim_matches(['"', '\'']);
            let module = target.split(':').next().unwrap_or(target);
            // The package of `package.server:main` is what `-m` takes.
            let package = module.split('.').next().unwrap_or(module);
            if !name.is_empty() && !name.starts_with('#') {
                return Some((name.to_owned(), package.to_owned()));
            }
        }
    }
    None
}

fn typescript(path: &Path, facts: &ProjectFacts<'_>) -> Result<Vec<String>, CannotStart> {
    let folders: Vec<&Path> = path.ancestors().skip(1).collect();
    let find = |name: &str| {
        folders
            .iter()
            .any(|folder| (facts.read)(&folder.join(name)).is_some())
    };
    let package = folders
        .iter()
        .find_map(|folder| (facts.read)(&folder.join("package.json")));
    let uses = |name: &str| {
        package
            .as_ref()
            .is_some_and(|text| text.contains(&format!("\"{name}\"")))
    };
    let words = |words: &[&str]| {
        let mut argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        argv.push(shown(path));
        argv
    };
    if find("deno.json") && (facts.has_program)("deno") {
        return Ok(words(&["deno", "run", "--allow-all"]));
    }
    if (find("bun.lock") || find("bun.lockb") || find("bunfig.toml")) && (facts.has_program)("bun")
    {
        return Ok(words(&["bun", "run"]));
    }
    if uses("tsx") {
        return Ok(words(&["npx", "tsx"]));
    }
    if (facts.node)().is_some_and(|version| version >= NODE_WITH_TYPESCRIPT) {
        return Ok(words(&["node"]));
    }
    if (facts.has_program)("bun") {
        return Ok(words(&["bun", "run"]));
    }
    if (facts.has_program)("npx") {
        return Ok(words(&["npx", "--yes", "tsx"]));
    }
    Err(CannotStart(
        "TypeScript needs Node 22.18 or later, npx, bun or deno on PATH".to_owned(),
    ))
}

/// The program of a package: `bin`, else the script `start`.
fn package(path: &Path, facts: &ProjectFacts<'_>) -> Result<EntryPoint, CannotStart> {
    let fail = |reason: String| CannotStart(format!("`{}`: {reason}", path.display()));
    let text = (facts.read)(path).ok_or_else(|| fail("it cannot be read".to_owned()))?;
    let package: Value = serde_json::from_str(&text)
        .map_err(|error| fail(format!("it is not valid JSON: {error}")))?;
    let bin = match package.get("bin") {
        Some(Value::String(file)) => Some(file.clone()),
        Some(Value::Object(programs)) => {
            let first = programs.values().find_map(Value::as_str);
            first.map(str::to_owned)
        }
        _ => None,
    };
    if let Some(file) = bin {
        let file = file.strip_prefix("./").unwrap_or(&file);
        let program = beside(path, file);
        if (facts.read)(&program).is_none() {
            let build = package.pointer("/scripts/build").is_some();
            let hint = if build {
                "; build it first: npm run build"
            } else {
                ""
            };
            return Err(fail(format!(
                "`bin` names `{file}`, which does not exist{hint}"
            )));
        }
        return Ok(EntryPoint {
            argv: vec!["node".to_owned(), shown(&program)],
        });
    }
    if package.pointer("/scripts/start").is_some() {
        let mut argv = vec!["npm".to_owned()];
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            argv.extend(["--prefix".to_owned(), shown(folder)]);
        }
        // Without this, npm prints its own lines where the protocol is expected.
        argv.extend(["run", "--silent", "start"].map(str::to_owned));
        return Ok(EntryPoint { argv });
    }
    Err(fail(
        "it has neither `bin` nor a script `start`; give the command with `--command`".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn started(
        file: &str,
        files: &[(&str, &str)],
        programs: &[&str],
        node: Option<(u32, u32)>,
    ) -> Result<String, String> {
        let files: BTreeMap<PathBuf, String> = files
            .iter()
            .map(|(name, text)| (PathBuf::from(name), (*text).to_owned()))
            .collect();
        let facts = ProjectFacts {
            read: &|path| files.get(path).cloned(),
            has_program: &|name| programs.contains(&name),
            node: &|| node,
        };
        start(Path::new(file), &facts)
            .map(|entry| entry.argv.join(" "))
            .map_err(|reason| reason.0)
    }

    #[test]
    fn python_files_run_with_what_the_project_uses() {
        let run = "if __name__ == '__main__':\n    mcp.run()\n";
        let all = ["python3", "uv"];
        for (files, programs, expected) in [
            (vec![("server.py", run)], &all[..], "python3 server.py"),
            (
                vec![("server.py", run), ("uv.lock", "")],
                &all,
                "uv run server.py",
            ),
            (
                vec![("server.py", run), ("uv.lock", "")],
                &all[..1],
                "python3 server.py",
            ),
            (
                vec![(
                    "server.py",
                    "# /// script\n# dependencies = []\n# ///\nmcp.run()",
                )],
                &all,
                "uv run server.py",
            ),
            (
                vec![("server.py", run), (".venv/pyvenv.cfg", "")],
                &all,
                ".venv/bin/python server.py",
            ),
            (
                vec![(
                    "server.py",
                    "from fastmcp import FastMCP\nmcp = FastMCP('x')\n",
                )],
                &all,
                "python3 -m fastmcp run server.py",
            ),
            (
                vec![
                    ("server.py", "from fastmcp import FastMCP\n"),
                    ("uv.lock", ""),
                ],
                &all,
                "uv run fastmcp run server.py",
            ),
        ] {
            assert_eq!(
                started("server.py", &files, programs, None).as_deref(),
                Ok(expected)
            );
        }
        assert!(
            started("server.py", &[("server.py", run)], &[], None)
                .unwrap_err()
                .contains("PATH")
        );
    }

    #[test]
    fn typescript_runs_with_what_is_there() {
        let package = r#"{"devDependencies": {"tsx": "4"}}"#;
        for (files, programs, node, expected) in [
            (
                vec![("package.json", package)],
                vec!["npx"],
                Some((24, 0)),
                "npx tsx src/server.ts",
            ),
            (vec![], vec!["npx"], Some((24, 0)), "node src/server.ts"),
            (
                vec![],
                vec!["npx"],
                Some((20, 9)),
                "npx --yes tsx src/server.ts",
            ),
            (
                vec![("bun.lock", "")],
                vec!["bun", "npx"],
                Some((20, 9)),
                "bun run src/server.ts",
            ),
            (
                vec![("deno.json", "")],
                vec!["deno"],
                None,
                "deno run --allow-all src/server.ts",
            ),
        ] {
            assert_eq!(
                started("src/server.ts", &files, &programs, node).as_deref(),
                Ok(expected)
            );
        }
        assert!(started("a.ts", &[], &[], None).is_err());
        assert_eq!(
            started("dist/index.js", &[], &[], None).as_deref(),
            Ok("node dist/index.js")
        );
    }

    #[test]
    fn packages_name_their_programs() {
        for (files, expected) in [
            (
                vec![
                    ("package.json", r#"{"bin": {"x": "./dist/index.js"}}"#),
                    ("dist/index.js", ""),
                ],
                Ok("node dist/index.js"),
            ),
            (
                vec![("package.json", r#"{"bin": "cli.js"}"#), ("cli.js", "")],
                Ok("node cli.js"),
            ),
            (
                vec![("package.json", r#"{"scripts": {"start": "node x"}}"#)],
                Ok("npm run --silent start"),
            ),
            (
                vec![(
                    "package.json",
                    r#"{"bin": "dist/x.js", "scripts": {"build": "tsc"}}"#,
                )],
                Err(
                    "`package.json`: `bin` names `dist/x.js`, which does not exist; build it first: npm run build",
                ),
            ),
            (
                vec![("package.json", "{}")],
                Err(
                    "`package.json`: it has neither `bin` nor a script `start`; give the command with `--command`",
                ),
            ),
        ] {
            let found = started("package.json", &files, &[], None);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        assert!(started("package.json", &[("package.json", "{")], &[], None).is_err());
    }

    #[test]
    fn projects_name_their_scripts() {
        let project =
            "[project]\nname = \"x\"\n[project.scripts]\nmy-server = \"my_pkg.server:main\"\n";
        for (files, programs, expected) in [
            (
                vec![("pyproject.toml", project), ("uv.lock", "")],
                vec!["uv"],
                "uv run my-server",
            ),
            (
                vec![("pyproject.toml", project), (".venv/pyvenv.cfg", "")],
                vec!["python3"],
                ".venv/bin/my-server",
            ),
            (
                vec![("pyproject.toml", project)],
                vec!["python3", "my-server"],
                "my-server",
            ),
            (
                vec![("pyproject.toml", project)],
                vec!["python3"],
                "python3 -m my_pkg",
            ),
        ] {
            assert_eq!(
                started("pyproject.toml", &files, &programs, None).as_deref(),
                Ok(expected)
            );
        }
        assert!(
            started(
                "pyproject.toml",
                &[("pyproject.toml", "[project]\n")],
                &["python3"],
                None
            )
            .is_err()
        );
        let elsewhere = started(
            "sub/pyproject.toml",
            &[("sub/pyproject.toml", project), ("sub/uv.lock", "")],
            &["uv"],
            None,
        );
        assert_eq!(elsewhere.as_deref(), Ok("uv run --directory sub my-server"));
    }

    #[test]
    fn a_folder_offers_what_speaks_the_protocol() {
        let files: BTreeMap<PathBuf, String> = [
            ("server.py", "from fastmcp import FastMCP"),
            ("main.py", "print(1)"),
            (
                "package.json",
                r#"{"dependencies": {"@modelcontextprotocol/sdk": "1"}, "bin": "dist/index.js"}"#,
            ),
            ("dist/index.js", "import {McpServer} from 'x'"),
        ]
        .into_iter()
        .map(|(name, text)| (PathBuf::from(name), text.to_owned()))
        .collect();
        let facts = ProjectFacts {
            read: &|path| files.get(path).cloned(),
            has_program: &|_| true,
            node: &|| None,
        };
        let found = candidates(&facts);
        assert_eq!(
            found,
            ["package.json", "server.py", "dist/index.js"].map(PathBuf::from)
        );
    }
}
