//! A transport that passes over what a client says before its first request: a notification out of turn, or an answer to
//! nobody, is no reason to go.

use std::future::Future;

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport, until the first request and after.
#[derive(Debug)]
pub struct Patient<T> {
    inner: T,
    begun: bool,
}

impl<T> Patient<T> {
    pub const fn new(inner: T) -> Self {
        Self { inner, begun: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Patient<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            self.begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
