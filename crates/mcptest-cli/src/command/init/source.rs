//! The servers that are tested: from the arguments, or asked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcptest_init::entry_point::{self, is_entry_point};
use mcptest_init::launch::Launch;
use mcptest_init::names::{Unique, server_name};
use mcptest_suite::suite::{HttpAddress, Server};

use super::project::{Project, project_facts, user_configs};
use super::questions::Questions;
use crate::cli::InitArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::secrets;
use crate::sources::{self, ResolvedConfig};

/// Timeouts for the start: programs that are downloaded first take longer.
const START: Duration = Duration::from_secs(60);
const SLOW_START: Duration = Duration::from_secs(180);

/// A server to start.
pub struct ChosenServer {
    /// Its name, if the configuration gives it one.
    pub name: Option<String>,
    /// The name that its command or address suggests.
    pub suggested: String,
    pub server: Server,
    kind: Kind,
}

/// The way in which it is written.
enum Kind {
    Command { cwd: Option<String> },
    Http,
    Configured { config: usize, folder: String },
}

/// The servers, and the configuration that some of them come from.
pub struct Chosen {
    pub servers: Vec<ChosenServer>,
    config: Option<ResolvedConfig>,
}

impl Chosen {
    /// The servers as a suite writes them.
    pub fn launch(&self, chosen: &ChosenServer, name: &str) -> Launch {
        match &chosen.kind {
            Kind::Command { cwd } => Launch::command(name, &chosen.server.argv, cwd.clone()),
            Kind::Http => {
                let (url, headers) = match &chosen.server.http {
                    Some(http) => (http.url.as_str(), http.headers.as_slice()),
                    None => ("", &[][..]),
                };
                Launch::http(name, url, headers)
            }
            Kind::Configured { config, folder } => {
                let configured = self
                    .config
                    .as_ref()
                    .and_then(|found| found.config.servers.get(*config));
                configured.map_or_else(Launch::default, |configured| {
                    Launch::configured(name, &configured.target, folder)
                })
            }
        }
    }
}

/// Finds the servers.
///
/// # Errors
/// Several sources, none, or one that cannot be used.
pub fn choose(
    args: &InitArgs,
    project: &Project,
    questions: Questions,
    output: &Output,
) -> Result<Chosen, Failure> {
    secrets::hide(sources::secrets_of(&args.header));
    let words = if args.last.is_empty() {
        &args.command
    } else {
        &args.last
    };
    let given = [
        !args.command.is_empty(),
        !args.last.is_empty(),
        args.url.is_some(),
        args.from.is_some(),
    ];
    if given.iter().filter(|given| **given).count() > 1 {
        return Err(Failure::Message(
            "give one of `--command`, `--url`, `--from` and a command after `--`".to_owned(),
        ));
    }
    if let Some(url) = &args.url {
        return Ok(single(http(url, args)));
    }
    if let Some(file) = &args.from {
        return from_file(file, args, project, questions, output);
    }
    if !words.is_empty() {
        return from_words(words, args, project, questions, output);
    }
    ask(args, project, questions, output)
}

fn single(server: ChosenServer) -> Chosen {
    Chosen {
        servers: vec![server],
        config: None,
    }
}

fn http(url: &str, args: &InitArgs) -> ChosenServer {
    let headers = args
        .header
        .iter()
        .map(|header| (header.name.clone(), header.value.clone()))
        .collect();
    let mut server = Server::command(Vec::new(), PathBuf::from("."));
    server.http = Some(HttpAddress {
        url: url.to_owned(),
        headers,
        ..HttpAddress::default()
    });
    ChosenServer {
        name: None,
        suggested: server_name(sources::host_of(url).split(':').next().unwrap_or_default()),
        server,
        kind: Kind::Http,
    }
}

/// A command line as it was typed: words, one string, or the path of an entry point.
fn from_words(
    words: &[String],
    args: &InitArgs,
    project: &Project,
    questions: Questions,
    output: &Output,
) -> Result<Chosen, Failure> {
    let words = match words {
        [only] if is_entry_point(Path::new(only)) && project.current.join(only).is_file() => {
            return from_file(Path::new(only), args, project, questions, output);
        }
        [only] if only.contains(char::is_whitespace) && !Path::new(only).exists() => {
            shlex::split(only).ok_or_else(|| {
                Failure::Message(format!(
                    "`{only}` cannot be split into words: check its quotes"
                ))
            })?
        }
        words => words.to_vec(),
    };
    if let [only] = words.as_slice()
        && sources::is_address(only)
    {
        return Ok(single(http(only, args)));
    }
    Ok(single(command(words, &project.current, project)))
}

fn command(argv: Vec<String>, cwd: &Path, project: &Project) -> ChosenServer {
    let relative = project.seen_from_suite(cwd);
    let suggested = suggested_name(&argv);
    ChosenServer {
        name: None,
        suggested,
        server: started(Server::command(argv, cwd.to_owned())),
        kind: Kind::Command {
            cwd: (relative != ".").then_some(relative),
        },
    }
}

/// The server with the timeout of its first start.
fn started(mut server: Server) -> Server {
    server.startup_timeout = if is_downloaded(&server.argv) {
        SLOW_START
    } else {
        START
    };
    server
}

/// Returns true for programs that may have to download the server first.
pub fn is_downloaded(argv: &[String]) -> bool {
    let program = argv.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    [
        "npx", "uvx", "uv", "bunx", "pnpm", "pipx", "docker", "podman",
    ]
    .contains(&program)
}

/// The name that a command line suggests: the package or the file that it starts.
fn suggested_name(argv: &[String]) -> String {
    // Our own mock has the name of what it imitates.
    if argv.first().is_some_and(|first| first == "mcptest") {
        return "server".to_owned();
    }
    let runners = [
        "npx", "uvx", "uv", "run", "node", "python", "python3", "bun", "bunx", "deno", "tsx",
        "pnpm", "dlx", "exec", "fastmcp", "npm", "start", "sh", "bash", "env",
    ];
    let is_name = |word: &&String| {
        let name = word.rsplit('/').next().unwrap_or(word);
        !word.starts_with('-') && !runners.contains(&name) && !name.starts_with("python")
    };
    let word = argv.iter().find(is_name).or(argv.first());
    server_name(word.map_or("server", String::as_str))
}

/// A file: an entry point, or the configuration of a client.
fn from_file(
    file: &Path,
    args: &InitArgs,
    project: &Project,
    questions: Questions,
    output: &Output,
) -> Result<Chosen, Failure> {
    let path = project.current.join(file);
    if !path.is_file() {
        return Err(Failure::Message(format!(
            "cannot read `{}`: no such file",
            file.display()
        )));
    }
    if is_entry_point(file) {
        return entry(&path, file, project, output).map(single);
    }
    configured(file, args, project, questions, output)
}

/// An entry point runs in the folder of the suite if it is below it, else in the current one.
fn entry(
    path: &Path,
    shown: &Path,
    project: &Project,
    output: &Output,
) -> Result<ChosenServer, Failure> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let bases = [&project.folder, &project.current];
    let found = bases
        .into_iter()
        .find_map(|base| Some((base, path.strip_prefix(base).ok()?)));
    let (base, inner) = found.unwrap_or((&project.current, path.as_path()));
    let started = project_facts(base, |facts| entry_point::start(inner, facts));
    let entry = started.map_err(|reason| {
        Failure::Message(format!("cannot start `{}`: {}", shown.display(), reason.0))
    })?;
    output.status(&format!(
        "{} is started with: {}",
        shown.display(),
        entry.argv.join(" ")
    ));
    let mut chosen = command(entry.argv, base, project);
    if let Some(stem) = inner.file_stem().and_then(|stem| stem.to_str()) {
        chosen.suggested = match stem {
            // The server's own name says more.
            "package" | "pyproject" => "server".to_owned(),
            stem => server_name(stem),
        };
    }
    Ok(chosen)
}

/// The servers of a client's configuration.
fn configured(
    file: &Path,
    args: &InitArgs,
    project: &Project,
    questions: Questions,
    output: &Output,
) -> Result<Chosen, Failure> {
    let config = ResolvedConfig::read(file)?;
    let wanted = wanted_servers(&config, args, questions, file)?;
    let folder = project.seen_from_suite(&config.folder);
    let mut servers = Vec::new();
    let mut problems = Vec::new();
    for index in wanted {
        let Some(found) = config.servers.get(index) else {
            continue;
        };
        match &found.server {
            Ok(server) => servers.push(ChosenServer {
                name: Some(found.name.clone()),
                suggested: server_name(&found.name),
                server: started(server.clone()),
                kind: Kind::Configured {
                    config: index,
                    folder: folder.clone(),
                },
            }),
            Err(reason) => problems.push(format!("{}: {reason}", found.name)),
        }
    }
    if !problems.is_empty() {
        let others: Vec<&str> = servers
            .iter()
            .filter_map(|server| server.name.as_deref())
            .collect();
        let message = format!(
            "servers of `{}` cannot be started:\n  {}",
            file.display(),
            problems.join("\n  ")
        );
        if others.is_empty() {
            return Err(Failure::Message(message));
        }
        if !questions.interactive() {
            return Err(Failure::Message(format!("{message}\n{}", without(&others))));
        }
        output.warning(&message);
        if !questions.confirm("Continue without them?", true)? {
            return Err(Failure::Message("nothing was written".to_owned()));
        }
    }
    Ok(Chosen {
        servers,
        config: Some(config),
    })
}

/// The advice to leave servers out.
pub fn without(others: &[&str]) -> String {
    let flags: Vec<String> = others
        .iter()
        .map(|name| format!("--server {name}"))
        .collect();
    format!("to leave them out: {}", flags.join(" "))
}

/// The positions of the servers of a configuration that are wanted.
fn wanted_servers(
    config: &ResolvedConfig,
    args: &InitArgs,
    questions: Questions,
    file: &Path,
) -> Result<Vec<usize>, Failure> {
    let names: Vec<&str> = config
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    if names.is_empty() {
        return Err(Failure::Message(format!(
            "`{}` configures no servers",
            file.display()
        )));
    }
    let position = |wanted: &str| {
        names
            .iter()
            .position(|name| *name == wanted)
            .ok_or_else(|| {
                Failure::Message(format!(
                    "`{}` has no server `{wanted}`; its servers are {}",
                    file.display(),
                    names.join(", ")
                ))
            })
    };
    if !args.server.is_empty() {
        return args.server.iter().map(|name| position(name)).collect();
    }
    let enabled: Vec<usize> = (0..names.len())
        .filter(|index| !config.servers[*index].disabled)
        .collect();
    if !questions.interactive() || names.len() < 2 {
        return Ok(enabled);
    }
    let mut shown = format!("Servers of {}:", file.display());
    for (index, server) in config.servers.iter().enumerate() {
        let mark = if server.disabled { " (disabled)" } else { "" };
        shown.push_str(&format!("\n  {}  {}{mark}", index + 1, server.name));
    }
    crate::output::status(&mcptest_json::text::lines(&shown));
    loop {
        let answer = questions.line("Which ones? Numbers or names, separated by spaces", "all")?;
        if answer == "all" {
            return Ok(enabled);
        }
        let chosen: Result<Vec<usize>, Failure> = answer
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .map(|word| match word.parse::<usize>() {
                Ok(number @ 1..) if number <= names.len() => Ok(number - 1),
                _ => position(word),
            })
            .collect();
        match chosen {
            Ok(chosen) if !chosen.is_empty() => return Ok(chosen),
            _ => crate::output::status("  write numbers of the list, such as `1 3`, or `all`"),
        }
    }
}

/// Something that the folder offers.
struct Offer {
    path: PathBuf,
    words: String,
}

/// The configurations and entry points of the project, then those of the user.
fn offers(project: &Project, with_user: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut add_config = |path: PathBuf| {
        let Ok(config) = ResolvedConfig::read(&path) else {
            return;
        };
        let words = match config.servers.len() {
            0 => return,
            1 => "1 server".to_owned(),
            several => format!("{several} servers"),
        };
        offers.push(Offer {
            words: format!("{}, {words}", config.config.format.title),
            path,
        });
    };
    for file in mcptest_config::PROJECT_FILES {
        let path = project.folder.join(file);
        if path.is_file() {
            add_config(path);
        }
    }
    if with_user {
        user_configs().into_iter().for_each(&mut add_config);
    }
    let entries = project_facts(&project.folder, |facts| {
        entry_point::candidates(facts)
            .into_iter()
            .filter_map(|path| Some((entry_point::start(&path, facts).ok()?, path)))
            .collect::<Vec<_>>()
    });
    for (entry, path) in entries {
        offers.push(Offer {
            path: project.folder.join(path),
            words: entry.argv.join(" "),
        });
    }
    offers
}

const NOTHING_NAMED: &str = "no server is named: give `--command CMD…`, `--url URL`, \
     `--from FILE`, or a command after `--`";

/// Asks what to test, or takes the only offer if nobody can be asked.
fn ask(
    args: &InitArgs,
    project: &Project,
    questions: Questions,
    output: &Output,
) -> Result<Chosen, Failure> {
    let offers = offers(project, questions.interactive());
    let shown = |path: &Path| {
        let short = path.strip_prefix(&project.current).unwrap_or(path);
        short.display().to_string()
    };
    if !questions.interactive() {
        return match offers.as_slice() {
            [only] if args.yes => {
                output.status(&format!("using {} ({})", shown(&only.path), only.words));
                from_file(&only.path, args, project, questions, output)
            }
            [] => Err(Failure::Message(NOTHING_NAMED.to_owned())),
            several => {
                let list: Vec<String> = several
                    .iter()
                    .map(|offer| format!("  --from {}    {}", shown(&offer.path), offer.words))
                    .collect();
                Err(Failure::Message(format!(
                    "{NOTHING_NAMED}; this folder has\n{}",
                    list.join("\n")
                )))
            }
        };
    }
    let mut text = String::from("What should be tested?");
    for (index, offer) in offers.iter().enumerate() {
        text.push_str(&format!(
            "\n  {}  {} ({})",
            index + 1,
            shown(&offer.path),
            offer.words
        ));
    }
    crate::output::status(&mcptest_json::text::lines(&text));
    let question = if offers.is_empty() {
        "A command, an address or a file"
    } else {
        "A number, a command, an address or a file"
    };
    let default = if offers.is_empty() { "" } else { "1" };
    loop {
        let answer = questions.line(question, default)?;
        if answer.is_empty() {
            continue;
        }
        if let Some(offer) = answer
            .parse::<usize>()
            .ok()
            .and_then(|number| offers.get(number.checked_sub(1)?))
        {
            return from_file(&offer.path, args, project, questions, output);
        }
        if sources::is_address(&answer) {
            return Ok(single(http(&answer, args)));
        }
        if project.current.join(&answer).is_file() && !answer.contains(' ') {
            return from_file(Path::new(&answer), args, project, questions, output);
        }
        match shlex::split(&answer) {
            Some(words) if !words.is_empty() => {
                return from_words(&words, args, project, questions, output);
            }
            _ => crate::output::status("  this cannot be split into words: check its quotes"),
        }
    }
}

/// The names of servers and their mocks in the suite, all different.
pub fn unique_names(wanted: &[String]) -> Vec<(String, String)> {
    let mut names = Unique::default();
    let servers: Vec<String> = wanted.iter().map(|name| names.name(name)).collect();
    servers
        .into_iter()
        .map(|name| {
            let mock = names.name(&format!("{name}-mock"));
            (name, mock)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_suggests_a_name() {
        for (words, expected) in [
            (
                "npx -y @modelcontextprotocol/server-everything",
                "everything",
            ),
            ("uvx mcp-server-time --local-timezone UTC", "time"),
            ("python3 weather_server.py", "weather"),
            ("/x/venv/bin/python /y/notes.py", "notes"),
            ("uv run my-server", "my"),
            ("docker run -i mcp/fetch", "docker"),
            ("./bin/server", "server"),
            ("mcptest mock --tools-from x.yml", "server"),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(suggested_name(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn names_of_mocks_are_not_those_of_servers() {
        let wanted = ["a", "a-mock", "a"].map(str::to_owned);
        let names = unique_names(&wanted);
        let expected = [
            ("a", "a-mock-2"),
            ("a-mock", "a-mock-mock"),
            ("a-2", "a-2-mock"),
        ];
        assert_eq!(names, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }
}
