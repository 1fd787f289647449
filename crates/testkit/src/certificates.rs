//! Certificates of a server that only tests know.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::postgres::server_user;

/// A certificate for a host and the authority that signed it, made with `openssl`.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
}

impl Certificates {
    /// Makes a new authority, and has it sign a certificate for `host`.
    pub fn for_host(host: &str) -> Self {
        let directory = tempfile::tempdir().expect("make a directory for certificates");
        let certificates = Self { directory };
        certificates.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
             -subj /CN=gt-test-authority -keyout authority.key -out authority.pem",
        );
        certificates.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={host} \
             -addext subjectAltName=DNS:{host} -keyout server.key -out server.csr"
        ));
        certificates.openssl(
            "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
             -copy_extensions copy -days 2 -out server.pem",
        );
        // PostgreSQL refuses a key that others can read, and looks at it as its own user.
        let key = certificates.file("server.key");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("protect the key");
        fs::set_permissions(certificates.directory.path(), Permissions::from_mode(0o755))
            .expect("let the server in");
        if let Some(user) = server_user() {
            chown(&key, Some(user.id), Some(user.group)).expect("give the key away");
        }
        certificates
    }

    /// The certificate of the authority.
    pub fn authority(&self) -> PathBuf {
        self.file("authority.pem")
    }

    /// The certificate of the host.
    pub fn server_certificate(&self) -> PathBuf {
        self.file("server.pem")
    }

    /// The key of the host.
    pub fn server_key(&self) -> PathBuf {
        self.file("server.key")
    }

    /// Lines for the settings of a server that uses the certificate, and refuses unencrypted
    /// network connections.
    pub fn settings(&self) -> String {
        let access = self.file("access");
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        fs::write(&access, rules).expect("write who may come");
        format!(
            "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\nhba_file = '{}'\n",
            self.file("server.pem").display(),
            self.file("server.key").display(),
            access.display()
        )
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace()).current_dir(self.directory.path());
        let output = command.output().expect("openssl is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {said}");
    }
}
