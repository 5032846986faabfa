//! What is the operator told? The service's own log, on standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Which events are logged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Filter(String);

impl Filter {
    /// Reads a filter like `info` or `info,actors=debug`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed: Result<EnvFilter, ParseError> = EnvFilter::builder().parse(text);
        match parsed {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("must be a level or a filter like info,actors=debug".to_owned()),
        }
    }

    fn to_filter(&self) -> EnvFilter {
        EnvFilter::builder().parse_lossy(&self.0)
    }
}

/// How events are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A line for machines.
    Json,
}

impl LogFormat {
    /// Reads a format's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("must be text or json".to_owned()),
        }
    }
}

/// The process has a log already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the process has a log already")]
pub struct AlreadyStarted;

/// Begins to write the operator's log.
pub fn start(filter: &Filter, format: LogFormat) -> Result<(), AlreadyStarted> {
    let log = tracing_subscriber::fmt().with_env_filter(filter.to_filter());
    let log = log.with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|_| AlreadyStarted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_names_rooms() {
        assert!(Filter::parse("info").is_ok());
        assert!(Filter::parse("warn,actors=debug").is_ok());
        assert!(Filter::parse("actors=loud").is_err());
    }
}
