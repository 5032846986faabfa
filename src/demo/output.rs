//! How is the output of the demo formatted? One aligned line per event, with the elapsed time.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::time::Instant;

/// The width of the column of names; longer names push their line along.
const NAME_WIDTH: usize = 14;

/// Writes the output.
pub(super) struct DemoOutput {
    out: Box<dyn Write>,
    ink: Colour,
    began_at: Instant,
}

/// Whether lines are coloured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Colour {
    /// With colours.
    Coloured,
    /// Plain text.
    Plain,
}

/// Whose event a line prints.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineSource<'a> {
    /// The customer's program, which calls the API.
    Caller,
    /// A device, by its id.
    Device(&'a str),
    /// The customer's webhook endpoint.
    Endpoint,
    /// The mobile network.
    Network,
    /// The operator of the service.
    Operator,
    /// The partner that a plugin forwards events to.
    Partner,
    /// The service, as its API returns it.
    Service,
}

impl Colour {
    /// Colours on a terminal, unless `NO_COLOR` is set (no-color.org).
    pub(super) fn for_stdout(no_color: Option<&OsStr>) -> Self {
        let is_wanted = no_color.is_none_or(OsStr::is_empty);
        if is_wanted && io::stdout().is_terminal() {
            Self::Coloured
        } else {
            Self::Plain
        }
    }
}

impl DemoOutput {
    /// Starts the output; elapsed time counts from here.
    pub(super) fn new(out: Box<dyn Write>, ink: Colour) -> Self {
        Self {
            out,
            ink,
            began_at: Instant::now(),
        }
    }

    /// Writes an event.
    pub(super) fn print(&mut self, who: LineSource<'_>, what: impl Display) -> io::Result<()> {
        let elapsed = format!("{:>7.1} s", self.began_at.elapsed().as_secs_f64());
        let elapsed = self.ink.paint("2", &elapsed);
        let name = format!("{:<NAME_WIDTH$}", who.name());
        let name = self.ink.paint(who.colour(), &name);
        writeln!(self.out, "{elapsed}  {name}  {what}")
    }

    /// Starts a chapter.
    pub(super) fn chapter(&mut self, title: impl Display) -> io::Result<()> {
        self.pause()?;
        self.head(title)
    }

    /// Writes an emphasised line.
    pub(super) fn head(&mut self, text: impl Display) -> io::Result<()> {
        let text = self.ink.paint("1", &text.to_string());
        writeln!(self.out, "{text}")
    }

    /// Writes an unchanged line, for copying.
    pub(super) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Writes an empty line.
    pub(super) fn pause(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }
}

impl LineSource<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Caller => "caller",
            Self::Device(id) => id,
            Self::Endpoint => "endpoint",
            Self::Network => "network",
            Self::Operator => "operator",
            Self::Partner => "partner",
            Self::Service => "service",
        }
    }

    fn colour(&self) -> &'static str {
        match self {
            Self::Caller => "33",
            Self::Device(_) => "36",
            Self::Endpoint => "34",
            Self::Network => "31",
            Self::Operator => "35",
            Self::Partner => "34",
            Self::Service => "32",
        }
    }
}

impl Colour {
    fn paint(self, colour: &str, text: &str) -> String {
        match self {
            Self::Coloured => format!("\x1b[{colour}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn events_are_aligned_in_one_column() {
        let printed = printed_in(Colour::Plain);
        let columns: Vec<_> = printed
            .lines()
            .map(|line| line.find("does").unwrap())
            .collect();
        assert_eq!(columns, [27, 27, 27]);
        assert!(!printed.contains('\x1b'));
    }

    #[test]
    fn colours_are_reset_in_the_same_line() {
        let printed = printed_in(Colour::Coloured);
        for line in printed.lines() {
            assert_eq!(line.matches('\x1b').count(), 4, "{line}");
            assert_eq!(line.matches("\x1b[0m").count(), 2, "{line}");
        }
    }

    #[test]
    fn no_color_turns_colours_off() {
        assert_eq!(Colour::for_stdout(Some(OsStr::new("1"))), Colour::Plain);
    }

    #[test]
    fn a_line_for_copying_is_unchanged() {
        let page = OutputState::default();
        let mut output = DemoOutput::new(Box::new(page.clone()), Colour::Coloured);
        output.line("export TOKEN=abc").unwrap();
        assert_eq!(page.text(), "export TOKEN=abc\n");
    }

    fn printed_in(ink: Colour) -> String {
        let page = OutputState::default();
        let mut output = DemoOutput::new(Box::new(page.clone()), ink);
        for who in [
            LineSource::Caller,
            LineSource::Device("street-lamp"),
            LineSource::Service,
        ] {
            output.print(who, "does something").unwrap();
        }
        page.text()
    }

    #[derive(Clone, Default)]
    struct OutputState(Arc<Mutex<Vec<u8>>>);

    impl OutputState {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for OutputState {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
