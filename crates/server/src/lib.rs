//! The work queue over HTTP.
