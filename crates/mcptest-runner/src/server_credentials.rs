//! Credentials for servers that require authorization, given by the program.

use std::fmt;
use std::sync::Arc;

use mcptest_http::credentials::Credentials;
use mcptest_suite::suite::{HttpAddress, Server, Transport};
use mcptest_wire::{HttpServer, HttpTransport};

type Make = dyn Fn(&str, &Server) -> Option<Arc<dyn Credentials>> + Send + Sync;

/// Makes the source of credentials of a server, by its name. The default makes none.
#[derive(Clone, Default)]
pub struct ServerCredentials(Option<Arc<Make>>);

impl ServerCredentials {
    /// Credentials that a function makes.
    pub fn new(
        make: impl Fn(&str, &Server) -> Option<Arc<dyn Credentials>> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(make)))
    }

    /// The source of credentials of a server, if it has one.
    pub(crate) fn of(&self, name: &str, server: &Server) -> Option<Arc<dyn Credentials>> {
        server.http.as_ref()?;
        self.0.as_ref().and_then(|make| make(name, server))
    }
}

impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerCredentials").finish_non_exhaustive()
    }
}

/// A server over HTTP, as the client and the proxies reach it.
pub(crate) fn http_server(
    address: &HttpAddress,
    credentials: Option<&Arc<dyn Credentials>>,
) -> HttpServer {
    HttpServer {
        url: address.url.clone(),
        headers: address.headers.clone(),
        transport: match address.transport {
            Transport::Auto => HttpTransport::Auto,
            Transport::StreamableHttp => HttpTransport::Streamable,
            Transport::Sse => HttpTransport::Sse,
        },
        credentials: credentials.cloned(),
    }
}
