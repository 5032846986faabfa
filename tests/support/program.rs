//! How does a test run another program, read its output and end it?

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use super::poll::{PATIENCE, until};

/// A running program. It is killed when this value is dropped.
pub(crate) struct Program {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// All output so far, shown if the test fails.
    output: Vec<String>,
}

impl Program {
    /// Starts a program and reads both of its outputs from now on.
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
            output: Vec::new(),
        }
    }

    /// Writes a line to the program's standard input.
    pub(crate) fn write_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its standard input is ours");
        writeln!(input, "{line}").unwrap();
    }

    /// Closes the program's standard input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line of output for which `pick` returns something; other lines are skipped.
    pub(crate) fn wait_for<T>(&mut self, awaited: &str, pick: impl Fn(&str) -> Option<T>) -> T {
        self.wait_for_within(PATIENCE, awaited, pick)
    }

    /// The same with another timeout.
    pub(crate) fn wait_for_within<T>(
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
            self.output.push(line);
            if let Some(picked) = picked {
                return picked;
            }
        }
    }

    /// Prepends the output of an earlier run, shown if the test fails.
    pub(crate) fn follow_up(&mut self, earlier: &mut Self) {
        let mut output = earlier.printed().to_vec();
        output.append(&mut self.output);
        self.output = output;
    }

    /// All output so far.
    pub(crate) fn printed(&mut self) -> &[String] {
        self.output.extend(self.lines.try_iter());
        &self.output
    }

    /// Waits until the program ends by itself and returns all its output.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.input = None;
        let status = self.child.wait().unwrap();
        self.output.extend(self.lines.iter());
        assert!(status.success(), "{} ended with {status}", self.name);
        std::mem::take(&mut self.output)
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, as an operator does.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    /// Sends SIGHUP, as an operator does after a change of files.
    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    /// Stops the program until [`Program::resume`]: it keeps its connections and does nothing.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets the program continue.
    pub(crate) fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.arg(signal).arg(self.child.id().to_string());
        assert!(
            kill.status().unwrap().success(),
            "{} does not take {signal}",
            self.name
        );
    }

    /// Waits until the program has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the end of the program", || self.child.try_wait().unwrap())
    }

    /// Whether the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills the program as a power cut would.
    pub(crate) fn kill(&mut self) {
        // The program may have ended already; then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            self.output.extend(self.lines.try_iter());
            eprintln!("-- {} printed:\n{}", self.name, self.output.join("\n"));
        }
    }
}

fn follow(output: impl Read + Send + 'static, lines: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // The receiver is gone once the test is over.
            if lines
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
}
