//! A session over standard input and output.

use std::io::{self, Read, Write};

use rmcp::service::ServerInitializeError;
use rmcp::{ServiceExt as _, transport};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, duplex};

use crate::caller::McpCaller;
use crate::server::McpServer;

/// Serves a client over standard input and output until it closes them.
pub fn serve_stdio(caller: McpCaller) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve(caller, transport::stdio()));
    // A thread that waits for a line of standard input would keep the process.
    runtime.shutdown_background();
    served
}

/// Bytes that wait between a stream and the session.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// Serves a client over streams that block, until it closes them.
pub fn serve_streams(
    caller: McpCaller,
    mut input: Box<dyn Read + Send>,
    mut output: Box<dyn Write + Send>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (read, write) = (runtime.handle().clone(), runtime.handle().clone());
    let (mut to_session, from_client) = duplex(WAITING_BYTES_MAX);
    let (to_client, mut from_session) = duplex(WAITING_BYTES_MAX);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("gt-mcp-input").spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = input.read(&mut bytes) {
            if read.block_on(to_session.write_all(&bytes[..count])).is_err() {
                break;
            }
        }
    })?;
    let writing = thread("gt-mcp-output").spawn(move || -> io::Result<()> {
        let mut bytes = [0; 8192];
        loop {
            let count = write.block_on(from_session.read(&mut bytes))?;
            if count == 0 {
                return output.flush();
            }
            output.write_all(&bytes[..count])?;
        }
    })?;
    let served = runtime.block_on(serve(caller, (from_client, to_client)));
    // The client may have gone before it read everything.
    let _ = writing.join();
    runtime.shutdown_background();
    served
}

/// Serves a client over these streams until it closes them.
pub(crate) async fn serve<R, W>(caller: McpCaller, streams: (R, W)) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = match McpServer::of(caller).serve(streams).await {
        Ok(server) => server,
        // A client that goes before it has begun is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    server.waiting().await.map(drop).map_err(io::Error::other)
}
