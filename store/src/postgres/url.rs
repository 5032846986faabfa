//! Where is a PostgreSQL database? Its URL, as libpq has it (PostgreSQL 34.1.1.2), without what
//! would be unsafe by default.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

/// How long a machine that acknowledges nothing counts as there: a failover takes about as long,
/// and the default of the kernel is a quarter of an hour.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The URL of a PostgreSQL database: `postgres://user@host/database`. Several hosts, separated by
/// commas, are tried in random order until one can be written to. It is shown without its password.
#[derive(Clone, PartialEq)]
pub struct PostgresUrl(Config);

/// A text is not the URL of a PostgreSQL database. The reason has no part of a password.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPostgresUrl(String);

impl PostgresUrl {
    /// Parses the text of an URL.
    pub fn parse(text: &str) -> Result<Self, InvalidPostgresUrl> {
        let refused = |why: &str| Err(InvalidPostgresUrl(why.to_owned()));
        let scheme = ["postgres://", "postgresql://"].into_iter();
        if !scheme.into_iter().any(|scheme| text.starts_with(scheme)) {
            return refused("must be postgres://user@host/database");
        }
        let query = text.split_once('?').map_or("", |(_, query)| query);
        let asked: Vec<_> = query.split('&').map(|it| it.split_once('=')).collect();
        let is_given = |name| asked.iter().flatten().any(|(given, _)| *given == name);
        // With `require` the certificate and its name are checked, as libpq does with
        // `verify-full`.
        let text = text.replace("sslmode=verify-full", "sslmode=require");
        let mut config: Config = text.parse().map_err(because)?;
        let hosts = config.get_hosts().to_vec();
        if hosts.is_empty() {
            return refused("must name a host");
        }
        if hosts.iter().any(is_part_of_password) {
            return refused("a password must be percent-encoded");
        }
        if config.get_password().is_some() && !has_password_before_host(&text) {
            return refused("a password must be before the host: postgres://user:password@host");
        }
        if !is_given("sslmode") {
            config.ssl_mode(match hosts.iter().all(is_of_this_machine) {
                true => SslMode::Disable,
                false => SslMode::Require,
            });
        }
        // Otherwise one that takes connections and answers nothing would hide those after it.
        if !is_given("load_balance_hosts") {
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        if !is_given("target_session_attrs") {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if !is_given("tcp_user_timeout") {
            config.tcp_user_timeout(SILENCE_MAX);
        }
        if !is_given("keepalives_idle") {
            config.keepalives_idle(SILENCE_MAX);
        }
        Ok(Self(config))
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.0.get_password().is_some()
    }

    /// The URL with this password.
    pub fn with_password(mut self, password: &str) -> Self {
        self.0.password(password);
        self
    }

    /// What connections are made with.
    pub(super) fn config(&self) -> &Config {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.0.get_ports().iter().chain(std::iter::repeat(&5432));
        f.write_str("postgres://")?;
        for (place, (host, port)) in self.0.get_hosts().iter().zip(ports).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match host {
                Host::Tcp(host) if host.contains(':') => write!(f, "{comma}[{host}]:{port}")?,
                Host::Tcp(host) => write!(f, "{comma}{host}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
            }
        }
        let database = self.0.get_dbname().or(self.0.get_user());
        write!(f, "/{}", database.unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

/// Why the client library refuses a text: it names options, and quotes none of their values.
fn because(error: tokio_postgres::Error) -> InvalidPostgresUrl {
    let why = error.into_source().map(|source| source.to_string());
    InvalidPostgresUrl(why.unwrap_or_else(|| "cannot be read".to_owned()))
}

/// Whether a password with an `@` that is not encoded ended too early.
fn is_part_of_password(host: &Host) -> bool {
    match host {
        Host::Tcp(host) => host.contains('@'),
        Host::Unix(_) => false,
    }
}

/// Whether the password stands where it is found and masked.
fn has_password_before_host(text: &str) -> bool {
    let credentials = text
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'));
    credentials.is_some_and(|(credentials, _)| credentials.contains(':'))
}

fn is_of_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(host) => {
            let ip = host.parse::<std::net::IpAddr>();
            ip.map_or(host == "localhost", |ip| ip.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_required_except_on_this_machine_or_by_request() {
        for (text, mode) in [
            ("postgres://me@db.example/signalbox", SslMode::Require),
            (
                "postgres://me@127.0.0.1,db.example/signalbox",
                SslMode::Require,
            ),
            ("postgres://me@127.0.0.1:5433/signalbox", SslMode::Disable),
            ("postgres://me@[::1]/signalbox", SslMode::Disable),
            ("postgres://me@localhost/signalbox", SslMode::Disable),
            (
                "postgres://me@%2Frun%2Fpostgresql/signalbox",
                SslMode::Disable,
            ),
            (
                "postgres:///signalbox?host=/run/postgresql",
                SslMode::Disable,
            ),
            (
                "postgres://me@db.example/a?sslmode=disable",
                SslMode::Disable,
            ),
            ("postgres://me@db.example/a?sslmode=prefer", SslMode::Prefer),
            (
                "postgres://me@[::1]/a?sslmode=verify-full",
                SslMode::Require,
            ),
        ] {
            let url = PostgresUrl::parse(text).unwrap();
            assert_eq!(url.config().get_ssl_mode(), mode, "{text}");
        }
    }

    #[test]
    fn a_database_is_shown_by_its_hosts_without_the_password() {
        for (text, shown) in [
            (
                "postgres://me:s3cret@a,b:5433,[::1]/signalbox",
                "a:5432,b:5433,[::1]:5432/signalbox",
            ),
            ("postgresql://me:s3cret@a", "a:5432/me"),
            (
                "postgres:///b?host=/run/postgresql",
                "/run/postgresql:5432/b",
            ),
        ] {
            let url = PostgresUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), format!("postgres://{shown}"), "{text}");
            assert!(!format!("{url:?}").contains("s3cret"));
        }
        let url = PostgresUrl::parse("postgres://me@a/b").unwrap();
        assert!(!url.has_password());
        let url = url.with_password("s3cret");
        assert!(url.has_password() && !format!("{url:?} {url}").contains("s3cret"));
    }

    #[test]
    fn what_is_no_url_of_a_database_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "must be postgres://user@host/database"),
            ("mysql://me@a/b", "must be postgres://user@host/database"),
            ("host=a user=me", "must be postgres://user@host/database"),
            ("postgres:///signalbox", "must name a host"),
            (
                "postgres://me:s3c@ret@a/b",
                "a password must be percent-encoded",
            ),
            (
                "postgres://me@a/b?password=s3cret",
                "a password must be before the host",
            ),
            ("postgres://me@a:b/c", "invalid value for option `port`"),
            (
                "postgres://me@a/b?sslmode=verify-ca",
                "invalid value for option `sslmode`",
            ),
            (
                "postgres://me@a/b?sslrootcert=ca.pem",
                "unknown option `sslrootcert`",
            ),
        ] {
            let refused = PostgresUrl::parse(text).unwrap_err().to_string();
            assert!(refused.starts_with(why), "{text}: {refused}");
            assert!(!refused.contains("s3c"), "{refused}");
        }
    }
}
