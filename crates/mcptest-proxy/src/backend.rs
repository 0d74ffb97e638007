//! The server behind a proxied connection: a process, or a bridge to HTTP.

use std::process::ExitStatus;
use std::sync::Arc;

use mcptest_http::credentials::WaitClock;
use mcptest_wire::{HttpServer, ServerCommand, ServerProcess, StderrLines};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::ProxyError;
use crate::http::Bridge;

/// The server behind the proxy.
#[derive(Debug, Clone)]
pub enum ProxiedServer {
    /// A program to start.
    Command(ServerCommand),
    /// A server over HTTP.
    Http(HttpServer),
}

/// The running server of a session.
pub(crate) enum Backend {
    Process(Box<ServerProcess>),
    Bridge(Bridge),
}

pub(crate) type Input = Box<dyn AsyncWrite + Send + Unpin>;
pub(crate) type Output = Box<dyn AsyncRead + Send + Unpin>;

impl Backend {
    /// Starts the server. A process writes its stderr to ours.
    pub(crate) async fn open(target: &ProxiedServer) -> Result<(Self, Input, Output), ProxyError> {
        match target {
            ProxiedServer::Command(command) => {
                let (process, stdin, stdout) =
                    ServerProcess::start("behind the proxy", command).map_err(ProxyError::Start)?;
                let process = Self::Process(Box::new(process));
                Ok((process, Box::new(stdin), Box::new(stdout)))
            }
            ProxiedServer::Http(server) => {
                let (bridge, input, output) = Bridge::start(server).await?;
                Ok((Self::Bridge(bridge), Box::new(input), Box::new(output)))
            }
        }
    }

    /// Starts the server. The last lines that a process writes to stderr are kept.
    pub(crate) async fn open_quiet(
        name: &str,
        target: &ProxiedServer,
    ) -> Result<(Self, Input, Output, Option<StderrLines>), ProxyError> {
        match target {
            ProxiedServer::Command(command) => {
                let (process, stdin, stdout, stderr) =
                    ServerProcess::start_quiet(name, command).map_err(ProxyError::Start)?;
                let process = Self::Process(Box::new(process));
                Ok((process, Box::new(stdin), Box::new(stdout), Some(stderr)))
            }
            ProxiedServer::Http(_) => {
                let (bridge, input, output) = Self::open(target).await?;
                Ok((bridge, input, output, None))
            }
        }
    }

    /// Waits for the exit status, if there is one.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Process(process) => process.wait().await.ok(),
            Self::Bridge(_) => None,
        }
    }

    /// The reason why a server over HTTP refused a message without authorization, if it did.
    pub(crate) fn auth_failure(&self) -> Option<String> {
        match self {
            Self::Process(_) => None,
            Self::Bridge(bridge) => bridge.auth_failure(),
        }
    }

    /// The time in which credentials for a server over HTTP were obtained.
    pub(crate) fn clock(&self) -> Option<Arc<WaitClock>> {
        match self {
            Self::Process(_) => None,
            Self::Bridge(bridge) => Some(bridge.clock()),
        }
    }

    /// Stops the server after its input was closed.
    pub(crate) async fn stop(&mut self) {
        match self {
            Self::Process(process) => process.stop().await,
            Self::Bridge(bridge) => bridge.stop().await,
        }
    }

    /// Stops the server without giving it time, after the proxy was stopped.
    pub(crate) async fn stop_now(&mut self) {
        match self {
            Self::Process(process) => process.stop_now().await,
            Self::Bridge(bridge) => bridge.stop().await,
        }
    }
}
