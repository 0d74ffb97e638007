//! `mcptest auth`.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcptest_auth::{
    AuthConfig, Grant, Interaction, InteractionFuture, KeySource, LoginSummary, OAuth,
    OAuthOptions, StepOutcome, Store, TokenSummary, canonical_server,
};
use mcptest_json::text::one_line;
use mcptest_report::ExitCode;
use mcptest_runner::InspectSettings;
use mcptest_suite::suite::{HttpAddress, Server};
use mcptest_trace::verdict::ErrorKind;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

use crate::authorization;
use crate::cli::{AuthArgs, AuthCommand, Format, LoginArgs, LogoutArgs, StatusArgs, UrlAuthArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::signals::shutdown_signal;
use crate::sources::{ServerList, Source};
use crate::suites;

const NO_FOLDER: &str = "there is no folder for logins: set MCPTEST_AUTH_DIR";

pub fn auth(args: &AuthArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        AuthCommand::Login(args) => login(args, gates, output),
        AuthCommand::Status(args) => status(args, output),
        AuthCommand::Logout(args) => logout(args, gates, output),
    }
}

fn store() -> Result<Store, Failure> {
    authorization::store().ok_or_else(|| Failure::Message(NO_FOLDER.to_owned()))
}

/// A server to log in to.
struct Target {
    name: String,
    server: Server,
    config: AuthConfig,
}

impl Target {
    fn of_url(url: &str, flags: &UrlAuthArgs) -> Result<Self, Failure> {
        let mut server = Server::command(Vec::new(), PathBuf::from("."));
        server.http = Some(HttpAddress {
            url: url.to_owned(),
            ..HttpAddress::default()
        });
        Ok(Self {
            name: url.to_owned(),
            server,
            // Scopes are added to those of the login before.
            config: AuthConfig {
                scopes: Vec::new(),
                ..authorization::url_config(url, flags)?.0
            },
        })
    }

    /// A server of a suite; flags add scopes to it.
    fn of_suite(
        name: &str,
        suite: Option<&Path>,
        gates: Gates,
        output: &Output,
    ) -> Result<Self, Failure> {
        let server = suite_server(name, suite, gates, output)?;
        let Some(http) = &server.http else {
            return Err(Failure::Message(format!(
                "server `{}` is a program: only servers with a `url` have logins",
                one_line(name)
            )));
        };
        let config = authorization::declared(name, &server).unwrap_or_else(|| {
            output.warning(&format!(
                "server `{0}` has no `auth:`; `mcptest run` uses the login once the suite has \
                 `auth: {{ type: authorization_code }}`",
                one_line(name)
            ));
            AuthConfig::new(&http.url, Grant::AuthorizationCode)
        });
        Ok(Self {
            name: name.to_owned(),
            server,
            config,
        })
    }
}

fn suite_server(
    name: &str,
    suite: Option<&Path>,
    gates: Gates,
    output: &Output,
) -> Result<Server, Failure> {
    let path = match suite {
        Some(path) => path.to_owned(),
        None => suites::find(&[])?.into_iter().next().unwrap_or_default(),
    };
    match ServerList::of_suite(&path, gates, output)?.find(name)? {
        Source::Server { server, .. } => Ok(*server),
        Source::File(_) => Err(Failure::Message("a file has no logins".to_owned())),
    }
}

fn login(args: &LoginArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let mut target = match (&args.url, &args.server) {
        (Some(url), _) => Target::of_url(url, &args.auth)?,
        (None, Some(name)) => Target::of_suite(name, args.suite.as_deref(), gates, output)?,
        (None, None) => return Err(Failure::Message("name a server".to_owned())),
    };
    if target.config.grant != Grant::AuthorizationCode {
        return Err(Failure::Message(format!(
            "server `{}` needs no login: its `auth` has `type: {}`",
            one_line(&target.name),
            target.config.grant.name()
        )));
    }
    let store = store()?;
    add_scopes(&mut target.config, &args.auth.scope, &store);
    let user = Arc::new(Terminal::new(!args.no_browser));
    let options = OAuthOptions {
        interaction: Some(user as Arc<dyn Interaction>),
        ignores_logins: true,
        store: Some(store.clone()),
        ..authorization::options()
    };
    let source = Arc::new(OAuth::new(target.config, options));
    let settings = InspectSettings {
        timeout: args.patience.timeout,
        this_program: PathBuf::new(),
        credentials: authorization::only(Some(&source)),
    };
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let work = async {
            let listed = mcptest_runner::list_tools(&target.name, &target.server, &settings).await;
            if source.summary().await.is_none() && listed.is_ok() {
                // The server answers without a token, and may still take one.
                if source.authorize().await.is_err() {
                    let message = "the server answers without authorization: there is nothing to \
                                   log in to";
                    return Err(Failure::Message(message.to_owned()));
                }
            }
            Ok((listed, source.summary().await))
        };
        tokio::select! {
            done = work => done,
            () = shutdown_signal() => Err(Failure::Interrupted),
        }
    });
    // The thread that reads our input may wait forever; it ends with us.
    runtime.shutdown_background();
    let (listed, token) = outcome?;
    let Some(token) = token else {
        print_steps(&source, output);
        let message = listed.err().map(|error| error.message).unwrap_or_default();
        return Err(Failure::Message(format!("not logged in: {message}")));
    };
    output.result(&logged_in(&target.name, &token, &store));
    match listed {
        Ok(tools) => output.status(&format!("the server lists {} tools", tools.len())),
        Err(error) if error.kind == ErrorKind::Auth => {
            print_steps(&source, output);
            return Err(Failure::Message(error.message));
        }
        Err(error) => output.warning(&format!("the login works, but: {}", error.message)),
    }
    Ok(ExitCode::Passed)
}

/// Requests the scopes of the flags in addition to those of the login before.
fn add_scopes(config: &mut AuthConfig, added: &[String], store: &Store) {
    if added.is_empty() {
        return;
    }
    if config.scopes.is_empty() {
        let server = canonical_server(&config.server);
        let before = store.list().unwrap_or_default();
        let before = before.into_iter().find(|login| login.server == server);
        config.scopes = before.map(|login| login.scopes).unwrap_or_default();
    }
    for scope in added {
        if !config.scopes.contains(scope) {
            config.scopes.push(scope.clone());
        }
    }
}

fn logged_in(name: &str, token: &TokenSummary, store: &Store) -> String {
    let mut out = format!(
        "logged in to {} at {}\n",
        one_line(name),
        one_line(&token.issuer)
    );
    // Writing to a String cannot fail.
    let _ = writeln!(out, "  client   {}", one_line(&token.client_id));
    let _ = writeln!(out, "  scopes   {}", scopes(&token.scopes));
    let end = token.expires_in.map_or("unknown".to_owned(), |seconds| {
        format!("in {}", duration(seconds))
    });
    let refresh = match token.can_refresh {
        true => "it is refreshed without you",
        false => "there is no refresh token: log in again then",
    };
    let _ = writeln!(out, "  expires  {end}; {refresh}");
    let _ = writeln!(out, "  stored   {}", place(store));
    out
}

/// The place of the store and of its key.
fn place(store: &Store) -> String {
    let key = match store.key_source() {
        Ok(Some(KeySource::Passphrase)) => "encrypted with MCPTEST_AUTH_PASSPHRASE",
        Ok(Some(KeySource::Keychain)) => "encrypted; the key is in the system's keychain",
        Ok(Some(KeySource::File)) => "encrypted; the key is in the file `key` beside it",
        Ok(None) => "no logins",
        Err(_) => "it cannot be read",
    };
    format!("{} ({key})", one_line(&store.path().display().to_string()))
}

fn scopes(scopes: &[String]) -> String {
    match scopes {
        [] => "not stated".to_owned(),
        scopes => one_line(&scopes.join(" ")),
    }
}

/// A duration in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn print_steps(source: &OAuth, output: &Output) {
    for (number, step) in source.steps().iter().enumerate() {
        let outcome = match step.outcome {
            StepOutcome::Ok => "ok",
            StepOutcome::Skipped => "skipped",
            StepOutcome::Failed => "failed",
        };
        let number = number + 1;
        output.status(&format!("{number:>3}. {outcome:<8}{}", step.action));
        output.status(&format!("             {}", step.detail));
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))
}

fn status(args: &StatusArgs, output: &Output) -> Result<ExitCode, Failure> {
    let store = store()?;
    let logins = store.list().map_err(|error| error.to_string())?;
    let text = match args.how.format {
        Format::Json => {
            let source = store.key_source().ok().flatten();
            let all = json!({
                "file": store.path().display().to_string(),
                "key": source.map(KeySource::as_str),
                "logins": logins,
            });
            format!("{all:#}\n")
        }
        Format::Pretty => {
            let mut out = String::new();
            for login in &logins {
                write_login(&mut out, login);
            }
            // Writing to a String cannot fail.
            let _ = writeln!(out, "store: {}", place(&store));
            out
        }
    };
    output.result(&text);
    Ok(ExitCode::Passed)
}

fn write_login(out: &mut String, login: &LoginSummary) {
    let kind = match login.is_replacement {
        true => " (replaces a refresh token of the environment)",
        false => "",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}{kind}", one_line(&login.server));
    let _ = writeln!(out, "  issuer   {}", one_line(&login.issuer));
    let _ = writeln!(out, "  client   {}", one_line(&login.client_id));
    let _ = writeln!(out, "  scopes   {}", scopes(&login.scopes));
    let end = match login.expires_in {
        None => "the end of the token is not known".to_owned(),
        Some(seconds) => match u64::try_from(seconds) {
            Ok(left) if left > 0 => format!("the token ends in {}", duration(left)),
            _ => "the token is over".to_owned(),
        },
    };
    let refresh = match login.can_refresh {
        true => "it is refreshed when needed",
        false => "it cannot be refreshed",
    };
    let _ = writeln!(out, "  state    {end}; {refresh}\n");
}

fn logout(args: &LogoutArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let store = store()?;
    let servers = match (&args.url, &args.server) {
        _ if args.all => None,
        (Some(url), _) => Some(vec![canonical_server(url)]),
        (None, Some(name)) => {
            let server = suite_server(name, args.suite.as_deref(), gates, output)?;
            let url = server.http.map(|http| http.url).unwrap_or_default();
            Some(vec![canonical_server(&url)])
        }
        (None, None) => return Err(Failure::Message("name a server".to_owned())),
    };
    let runtime = runtime()?;
    let ended = runtime.block_on(store.log_out(servers.as_deref(), &authorization::hide));
    let ended = match ended {
        // Logins that cannot be decrypted can be removed nevertheless.
        Err(error) if args.all => {
            store.clear().map_err(|error| error.to_string())?;
            output.warning(&format!("{error}; the logins are removed, but not revoked"));
            return Ok(ExitCode::Passed);
        }
        ended => ended.map_err(|error| error.to_string())?,
    };
    if ended.is_empty() {
        output.status("nobody is logged in there");
    }
    for login in ended {
        let revoked = match (login.revoked, login.reason) {
            (true, _) => "its tokens are revoked and deleted".to_owned(),
            (false, reason) => format!(
                "its tokens are deleted, but not revoked: {}",
                reason.unwrap_or_default()
            ),
        };
        output.result(&format!(
            "logged out of {}: {revoked}\n",
            one_line(&login.server)
        ));
    }
    Ok(ExitCode::Passed)
}

/// The user at this terminal.
#[derive(Debug)]
struct Terminal {
    opens_browser: bool,
    /// Lines that were pasted; the thread that reads them starts with the first login page.
    pasted: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    reads: AtomicBool,
    sender: mpsc::UnboundedSender<String>,
}

impl Terminal {
    fn new(opens_browser: bool) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            opens_browser,
            pasted: Mutex::new(Some(receiver)),
            reads: AtomicBool::new(false),
            sender,
        }
    }

    /// Reads lines of the terminal, from now on.
    fn read(&self) {
        if self.reads.swap(true, Ordering::Relaxed) || !std::io::stdin().is_terminal() {
            return;
        }
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
    }
}

impl Interaction for Terminal {
    fn show<'a>(&'a self, url: &'a str) -> InteractionFuture<'a, ()> {
        let opened = self.opens_browser && open::that_detached(url).is_ok();
        let what = match opened {
            true => "a browser opens this page; log in there:",
            false => "open this page in a browser and log in there:",
        };
        // It has no secret, and must not be changed.
        print_verbatim(&format!("{what}\n\n  {url}\n"));
        if std::io::stdin().is_terminal() {
            print_verbatim("(browser on another machine? paste the address of its last page here)");
        }
        self.read();
        Box::pin(std::future::ready(()))
    }

    fn pasted(&self) -> InteractionFuture<'_, String> {
        Box::pin(async {
            let mut pasted = self.pasted.lock().await;
            match pasted.as_mut() {
                Some(lines) => match lines.recv().await {
                    Some(line) => line,
                    None => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        })
    }
}

fn print_verbatim(text: &str) {
    use std::io::Write as _;
    // Nobody reads it then.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
