//! A client that is not ours.

use std::cell::RefCell;

use gt_testkit::CONDITION_TIME_LIMIT;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// A connection for raw SQL.
pub(super) struct Raw {
    client: Client,
    runtime: Runtime,
    heard: RefCell<UnboundedReceiver<String>>,
}

/// Takes the lock that every writer takes.
pub(super) const TAKE_THE_LOCK: &str =
    "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('gt town gt', 0))";

impl Raw {
    pub(super) fn connect(url: &str) -> Self {
        Self::try_connect(url).expect("the server is there")
    }

    /// Nothing if the server does not let us in.
    pub(super) fn try_connect(url: &str) -> Option<Self> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("there is a runtime");
        let (tell, heard) = mpsc::unbounded_channel();
        let client = runtime.block_on(async {
            let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.ok()?;
            tokio::spawn(async move {
                while let Some(Ok(message)) =
                    std::future::poll_fn(|context| connection.poll_message(context)).await
                {
                    if let AsyncMessage::Notification(notification) = message {
                        let _ = tell.send(notification.payload().to_owned());
                    }
                }
            });
            Some(client)
        })?;
        Some(Self { client, runtime, heard: RefCell::new(heard) })
    }

    /// Runs statements without parameters.
    pub(super) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("the server understands");
    }

    /// The next notification.
    pub(super) fn hear(&self) -> String {
        let mut heard = self.heard.borrow_mut();
        let next = async { tokio::time::timeout(CONDITION_TIME_LIMIT, heard.recv()).await };
        self.runtime.block_on(next).expect("in time").expect("something is heard")
    }
}
