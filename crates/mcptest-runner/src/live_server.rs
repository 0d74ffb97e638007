//! One server outside of a run: to inspect it, and to call its tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcptest_suite::suite::Server;
use mcptest_trace::verdict::RunError;
use mcptest_wire::CallOutcome;
use serde_json::{Value, json};

use crate::direct_answer;
use crate::server_credentials::ServerCredentials;
use crate::sessions::{OpenSession, Session, SessionSettings, Sessions, StartupTime};

/// The settings of a server outside of a run.
#[derive(Debug, Clone)]
pub struct InspectSettings {
    /// Timeout for the start and for each answer; overrides the server's.
    pub timeout: Option<Duration>,
    /// The program that `mcptest` means as a server's command.
    pub this_program: PathBuf,
    /// The credentials of servers that require authorization.
    pub credentials: ServerCredentials,
}

/// A connected server. [`close`](Self::close) ends it.
pub struct LiveServer {
    name: String,
    sessions: Sessions,
    session: Arc<Session>,
    handshake: Duration,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The result as the server sent it; it may report an error of the tool.
    Result(Value),
    /// The protocol's error object.
    Refused(Value),
}

impl Answer {
    /// Returns true if the call failed: the result reports an error, or the server refused it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Result(result) => result.get("isError").and_then(Value::as_bool) == Some(true),
            Self::Refused(_) => true,
        }
    }

    /// The value that assertions and snapshots of a direct test are applied to.
    #[must_use]
    pub fn observed(&self) -> Value {
        match self {
            Self::Result(result) => direct_answer::observe(CallOutcome::Result(result.clone())),
            Self::Refused(error) => json!({"result": null, "error": error}),
        }
    }

    /// The text blocks of the result, joined by line ends, or the message of the error.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Result(result) => {
                let blocks = result.get("content").and_then(Value::as_array);
                let texts = blocks
                    .into_iter()
                    .flatten()
                    .filter_map(|block| block.get("text")?.as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            Self::Refused(error) => {
                let message = error.get("message").and_then(Value::as_str);
                message.unwrap_or_default().to_owned()
            }
        }
    }
}

impl LiveServer {
    /// Starts a server, or connects to it.
    ///
    /// # Errors
    /// It does not start or cannot be reached.
    pub async fn open(
        name: &str,
        server: &Server,
        settings: &InspectSettings,
    ) -> Result<Self, RunError> {
        let servers = BTreeMap::from([(name.to_owned(), server.clone())]);
        let sessions = Sessions::new(
            &servers,
            &[],
            SessionSettings {
                timeout: settings.timeout,
                suite_timeout: Duration::from_secs(30),
                this_program: settings.this_program.clone(),
                credentials: settings.credentials.clone(),
            },
        );
        let began = Instant::now();
        match sessions.open(name).await {
            Ok(session) => Ok(Self {
                name: name.to_owned(),
                handshake: began.elapsed(),
                sessions,
                session,
            }),
            Err(error) => {
                sessions.shutdown().await;
                Err(error)
            }
        }
    }

    /// The time from the start to the first answer.
    #[must_use]
    pub fn handshake(&self) -> Duration {
        self.handshake
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The tools that it lists, each entry as sent.
    ///
    /// # Errors
    /// It does not list them.
    pub async fn tools(&self) -> Result<Vec<Value>, RunError> {
        self.session.listing().await
    }

    /// Calls a tool. A server that crashed is started again, a few times. `timeout` overrides the
    /// server's.
    ///
    /// # Errors
    /// The call was not answered; the message has the last lines that the server wrote to stderr.
    pub async fn call(
        &self,
        tool: &str,
        args: &Value,
        timeout: Option<Duration>,
    ) -> Result<Answer, RunError> {
        let session = self.sessions.open(&self.name).await?;
        Ok(match session.call(tool, args, timeout).await? {
            CallOutcome::Result(result) => Answer::Result(result),
            CallOutcome::Error(error) => {
                Answer::Refused(serde_json::to_value(error).unwrap_or_default())
            }
        })
    }

    /// Calls a tool, and returns the lines that the server wrote to stderr meanwhile, too.
    ///
    /// # Errors
    /// The call was not answered.
    pub async fn call_with_stderr(
        &self,
        tool: &str,
        args: &Value,
    ) -> Result<(Answer, Vec<String>), RunError> {
        let open = OpenSession::new(Arc::clone(&self.session));
        let answer = self.call(tool, args, None).await?;
        let lines = if answer.is_error() {
            open.stderr(&StartupTime::default()).await
        } else {
            Vec::new()
        };
        Ok((answer, lines))
    }

    /// The hint that the server does not list a tool, with the name that was probably meant.
    pub async fn unlisted(&self, tool: &str) -> Option<String> {
        direct_answer::unlisted(&self.session, &self.name, tool).await
    }

    /// Ends the server.
    pub async fn close(self) {
        self.session.release().await;
        self.sessions.shutdown().await;
    }
}
