//! How does a test run another program, read what it prints and end it?

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use super::poll::{PATIENCE, until};

/// A running program; it ends with this value.
pub(crate) struct Program {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything it printed so far, for the one who reads why a test failed.
    seen: Vec<String>,
}

impl Program {
    /// Starts it; what it prints on either output is read from now on.
    pub(crate) fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (sender, lines) = mpsc::channel();
        follow(child.stdout.take().unwrap(), sender.clone());
        follow(child.stderr.take().unwrap(), sender);
        let input = child.stdin.take();
        Self {
            name,
            child,
            input,
            lines,
            seen: Vec::new(),
        }
    }

    /// Writes a line to its standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its standard input is ours");
        writeln!(input, "{line}").unwrap();
    }

    /// The next thing it prints of which `pick` makes something; other lines are passed over.
    pub(crate) fn hear<T>(&mut self, awaited: &str, pick: impl Fn(&str) -> Option<T>) -> T {
        self.hear_within(PATIENCE, awaited, pick)
    }

    /// The same, with another patience.
    pub(crate) fn hear_within<T>(
        &mut self,
        patience: Duration,
        awaited: &str,
        pick: impl Fn(&str) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{} did not print {awaited}", self.name);
            };
            let picked = pick(&line);
            self.seen.push(line);
            if let Some(picked) = picked {
                return picked;
            }
        }
    }

    /// Takes over what an earlier run of it printed, for the one who reads why a test failed.
    pub(crate) fn follow_up(&mut self, earlier: &mut Self) {
        let mut seen = earlier.printed().to_vec();
        seen.append(&mut self.seen);
        self.seen = seen;
    }

    /// Everything it printed until now.
    pub(crate) fn printed(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// Waits until it ends by itself and gives all it printed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.input = None;
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter());
        assert!(status.success(), "{} ended with {status}", self.name);
        std::mem::take(&mut self.seen)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as an operator does.
    pub(crate) fn terminate(&self) {
        let mut kill = Command::new("kill");
        kill.arg("-TERM").arg(self.child.id().to_string());
        assert!(
            kill.status().unwrap().success(),
            "{} cannot be asked to end",
            self.name
        );
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the end of the program", || self.child.try_wait().unwrap())
    }

    /// Ends it as a power cut would: without a word.
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            self.seen.extend(self.lines.try_iter());
            eprintln!("-- {} printed:\n{}", self.name, self.seen.join("\n"));
        }
    }
}

fn follow(output: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // Nobody reads on when the test is over.
            if lines
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
}
