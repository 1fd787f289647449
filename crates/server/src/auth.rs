//! Who may ask for what.

use axum::http::{HeaderMap, Method};

use gt_operations::Actor;

use crate::connections::Client;
use crate::problem::Problem;
use crate::service::Service;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    token: Option<String>,
}

impl Caller {
    /// Nobody is known yet.
    pub(crate) fn nobody() -> Self {
        Self { token: None }
    }

    /// Who that is in the store; nothing for whoever showed no token.
    pub(crate) fn actor(&self) -> Option<Actor> {
        let name = self.token.clone()?;
        Some(Actor { name, owner: String::new() })
    }

    /// The name of the token that was shown; empty if none was.
    pub(crate) fn name(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }
}

/// What is asked of whoever comes in.
#[derive(Debug)]
pub(crate) struct Keys {
    insecure: bool,
}

impl Keys {
    pub(crate) fn new(insecure: bool) -> Self {
        Self { insecure }
    }

    pub(crate) async fn check(
        &self,
        _service: &Service,
        _route: &str,
        _client: Option<Client>,
        _method: &Method,
        _headers: &HeaderMap,
    ) -> Result<Caller, Box<Problem>> {
        let _ = self.insecure;
        Ok(Caller::nobody())
    }
}
