//! Connections shared out over threads, each with a runtime of its own: two clients that keep the server busy use two cores.
//!
//! Connections go round in turn and stay where they are, so nothing is stolen or passed on while they are served. The first one stays on the
//! thread that accepts, and a further thread is started when the first connection is meant for it: a server with one client has one thread.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// What becomes of a connection; called on the thread and in the runtime that serve it.
pub(crate) type Serve = Arc<dyn Fn(TcpStream) + Send + Sync>;

/// The threads. They end when this is dropped, and their connections with them.
pub(crate) struct Workers {
    serve: Serve,
    threads: NonZeroUsize,
    started: Vec<mpsc::UnboundedSender<std::net::TcpStream>>,
    connections: usize,
}

impl Workers {
    /// So many threads at most, the calling one included.
    pub(crate) fn new(threads: NonZeroUsize, serve: Serve) -> Self {
        Self {
            serve,
            threads,
            started: Vec::new(),
            connections: 0,
        }
    }

    /// Gives the next connection to whose turn it is.
    pub(crate) fn take(&mut self, stream: TcpStream) -> io::Result<()> {
        let turn = self.connections % self.threads;
        self.connections += 1;
        let Some(other) = turn.checked_sub(1) else {
            (self.serve)(stream);
            return Ok(());
        };
        if other == self.started.len() {
            self.started.push(start(Arc::clone(&self.serve))?);
        }
        // The thread goes on until its sender is dropped. Were it gone, the client would see its connection closed.
        let _ = self.started[other].send(stream.into_std()?);
        Ok(())
    }
}

fn start(serve: Serve) -> io::Result<mpsc::UnboundedSender<std::net::TcpStream>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, mut streams) = mpsc::unbounded_channel();
    let work = async move {
        while let Some(stream) = streams.recv().await {
            // It fails only for a connection that is broken already.
            if let Ok(stream) = TcpStream::from_std(stream) {
                serve(stream);
            }
        }
    };
    std::thread::Builder::new()
        .name("mock-http".to_owned())
        .spawn(move || runtime.block_on(work))?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::ThreadId;

    use tokio::net::TcpListener;

    use super::*;

    /// The threads that served so many connections, in the order of the connections.
    async fn threads_of(threads: usize, connections: usize) -> Vec<ThreadId> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, mut served) = mpsc::unbounded_channel();
        let sender = Mutex::new(sender);
        let serve: Serve = Arc::new(move |stream| {
            let port = stream.peer_addr().unwrap().port();
            sender
                .lock()
                .unwrap()
                .send((port, std::thread::current().id()))
                .unwrap();
        });
        let mut workers = Workers::new(NonZeroUsize::new(threads).unwrap(), serve);
        let mut found = Vec::new();
        for _ in 0..connections {
            let client = TcpStream::connect(address).await.unwrap();
            workers.take(listener.accept().await.unwrap().0).unwrap();
            let (port, thread) = served.recv().await.unwrap();
            assert_eq!(port, client.local_addr().unwrap().port());
            found.push(thread);
        }
        found
    }

    #[tokio::test]
    async fn connections_go_round() {
        let here = std::thread::current().id();
        let [first, second, third, fourth, fifth] = threads_of(3, 5).await.try_into().unwrap();
        assert_eq!(first, here);
        assert!(second != here && third != here && second != third);
        assert_eq!([fourth, fifth], [first, second]);
    }

    #[tokio::test]
    async fn one_thread_is_the_calling_one() {
        let here = std::thread::current().id();
        assert_eq!(threads_of(1, 3).await, [here; 3]);
    }

    #[tokio::test]
    async fn connections_end_with_the_workers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serve: Serve = Arc::new(|stream| {
            tokio::spawn(async move {
                let _open = stream;
                std::future::pending::<()>().await;
            });
        });
        let mut workers = Workers::new(NonZeroUsize::new(2).unwrap(), serve);
        let mut clients = Vec::new();
        for _ in 0..2 {
            clients.push(TcpStream::connect(address).await.unwrap());
            workers.take(listener.accept().await.unwrap().0).unwrap();
        }
        drop(workers);
        // The second one is closed by the end of its thread.
        clients[1].readable().await.unwrap();
        assert_eq!(clients[1].try_read(&mut [0; 1]).unwrap(), 0);
    }
}
