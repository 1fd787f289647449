//! Parameters and rows in PostgreSQL's terms.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::StoreError;
use crate::engine::{Param, Row};

/// A parameter that outlives the call that named it, because requests may be sent later.
#[derive(Debug, Clone)]
pub(super) enum OwnedParam {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<&Param<'_>> for OwnedParam {
    fn from(param: &Param<'_>) -> Self {
        match param {
            Param::Null => Self::Null,
            Param::Int(number) => Self::Int(*number),
            Param::Text(text) => Self::Text((*text).to_owned()),
            Param::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

impl OwnedParam {
    /// The type that we give when the server was not asked first. For NULL the server finds it out.
    pub(super) fn kind(&self) -> Type {
        match self {
            Self::Null => Type::UNKNOWN,
            Self::Int(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Blob(_) => Type::BYTEA,
        }
    }
}

impl ToSql for OwnedParam {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
            Self::Int(number) if *kind == Type::INT8 => number.to_sql(kind, out),
            Self::Text(text) if <&str as ToSql>::accepts(kind) => text.as_str().to_sql(kind, out),
            Self::Blob(bytes) if *kind == Type::BYTEA => bytes.as_slice().to_sql(kind, out),
            other => Err(format!("{} where {kind} is wanted", other.kind()).into()),
        }
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A row of an answer.
pub(super) struct ServerRow<'r>(pub(super) &'r tokio_postgres::Row);

impl ServerRow<'_> {
    fn kind(&self, column: usize) -> Result<&Type, StoreError> {
        let column_of = self.0.columns().get(column);
        column_of
            .map(tokio_postgres::Column::type_)
            .ok_or_else(|| StoreError::Corrupt(format!("there is no column {column}")))
    }
}

impl Row for ServerRow<'_> {
    fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let corrupt = |error| unexpected(column, &error);
        match *self.kind(column)? {
            Type::INT4 => {
                let small: Option<i32> = self.0.try_get(column).map_err(corrupt)?;
                Ok(small.map(i64::from))
            }
            _ => self.0.try_get(column).map_err(corrupt),
        }
    }

    fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        self.0.try_get(column).map_err(|error| unexpected(column, &error))
    }

    fn blob_or_null(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        self.0.try_get(column).map_err(|error| unexpected(column, &error))
    }
}

fn unexpected(column: usize, error: &tokio_postgres::Error) -> StoreError {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    StoreError::Corrupt(format!("column {column}: {error}{cause}"))
}
