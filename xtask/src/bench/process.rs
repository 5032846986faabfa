//! What does another program say, what does it cost, and how does it surely end?
//!
//! It ends with its value here, and by the kernel if this process ends without a word. What it
//! costs is read from Linux's `/proc`.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::steps::{Stop, shown};

/// How processor time is counted for programs, on every processor this runs on.
const TICKS_PER_S: f64 = 100.0;

/// Lines shown of a program that disappointed.
const LINES_SHOWN: usize = 30;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// A running program.
pub(crate) struct Process {
    name: String,
    child: Child,
    lines: Receiver<Line>,
    last: VecDeque<String>,
}

/// A line, and when it was read.
pub(crate) struct Line {
    /// When.
    pub(crate) at: Instant,
    /// What.
    pub(crate) text: String,
}

impl Process {
    /// Starts it; what it prints on either output is read from now on.
    pub(crate) fn start(command: &Command) -> Result<Self, Stop> {
        let name = shown(command);
        let mut child = guarded(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Stop::Failed(format!("cannot start {name}: {error}")))?;
        let (sender, lines) = mpsc::channel();
        follow(child.stdout.take().expect("it was piped"), sender.clone());
        follow(child.stderr.take().expect("it was piped"), sender);
        Ok(Self {
            name,
            child,
            lines,
            last: VecDeque::new(),
        })
    }

    /// The next thing it prints of which `pick` makes something; other lines are passed over.
    pub(crate) fn hear<T>(
        &mut self,
        awaited: &str,
        deadline: Instant,
        pick: impl FnMut(&Line) -> Option<T>,
    ) -> Result<T, Stop> {
        match self.hear_until(deadline, pick)? {
            Some(picked) => Ok(picked),
            None => Err(self.disappointed(&format!("did not say in time: {awaited}"))),
        }
    }

    /// The same, or None if it prints nothing of that kind until then.
    pub(crate) fn hear_until<T>(
        &mut self,
        until: Instant,
        mut pick: impl FnMut(&Line) -> Option<T>,
    ) -> Result<Option<T>, Stop> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.disappointed("ended too soon"));
                }
            };
            let picked = pick(&line);
            self.keep(line.text);
            if picked.is_some() {
                return Ok(picked);
            }
        }
    }

    /// Waits until it has ended well, and gives every line not heard before.
    pub(crate) fn finish(&mut self, deadline: Instant) -> Result<Vec<String>, Stop> {
        let mut unheard = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.keep(line.text.clone());
                    unheard.push(line.text);
                }
                // Both outputs are closed, so it has ended or is about to.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.disappointed("did not end in time"));
                }
            }
        }
        let status = self.ended(deadline)?;
        if status.success() {
            return Ok(unheard);
        }
        Err(self.disappointed(&format!("ended with {status}")))
    }

    /// Asks it to end, as an operator does.
    pub(crate) fn terminate(&self) -> Result<(), Stop> {
        let mut kill = Command::new("kill");
        crate::steps::run(kill.arg("-TERM").arg(self.child.id().to_string()))
    }

    /// The memory it holds, as the system counts it.
    pub(crate) fn resident_bytes(&self) -> Result<f64, Stop> {
        let text = self.read("status")?;
        let kib = resident_kib(&text);
        kib.map(|kib| kib * 1_024.0)
            .ok_or_else(|| self.unreadable("status"))
    }

    /// How long all of its threads have run, in seconds.
    pub(crate) fn processor_s(&self) -> Result<f64, Stop> {
        let text = self.read("stat")?;
        let ticks = ticks(&text).ok_or_else(|| self.unreadable("stat"))?;
        Ok(ticks / TICKS_PER_S)
    }

    /// Its end with what it said last, as the reason to stop.
    pub(crate) fn disappointed(&mut self, how: &str) -> Stop {
        let rest: Vec<String> = self.lines.try_iter().map(|line| line.text).collect();
        rest.into_iter().for_each(|line| self.keep(line));
        let last: Vec<&str> = self.last.iter().map(String::as_str).collect();
        Stop::Failed(format!("{} {how}\n{}", self.name, last.join("\n")))
    }

    fn ended(&mut self, deadline: Instant) -> Result<ExitStatus, Stop> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(None) => return Err(self.disappointed("did not end in time")),
                Err(error) => return Err(self.disappointed(&error.to_string())),
            }
        }
    }

    fn keep(&mut self, line: String) {
        if self.last.len() == LINES_SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn read(&self, file: &str) -> Result<String, Stop> {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id()))
            .map_err(|error| Stop::Failed(format!("{} is gone: {error}", self.name)))
    }

    fn unreadable(&self, file: &str) -> Stop {
        Stop::Failed(format!("/proc/{}/{file} is unlike Linux", self.child.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The same command, ended by the kernel when this process ends.
fn guarded(command: &Command) -> Command {
    let mut guarded = Command::new("setpriv");
    guarded.args(["--pdeathsig", "KILL", "--"]);
    guarded.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    guarded
}

fn follow(output: impl Read + Send + 'static, lines: Sender<Line>) {
    thread::spawn(move || {
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = Line {
                at: Instant::now(),
                text: String::from_utf8_lossy(&text).into_owned(),
            };
            // Nobody reads on when the program is dropped.
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}

/// `VmRSS:   1234 kB` of a `status`.
fn resident_kib(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// User and system time of a `stat`, proc(5): fields 14 and 15, behind the name in parentheses.
fn ticks(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::{Process, resident_kib, ticks};
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn the_kernels_figures_are_read() {
        let status = "Name:\tx\nVmHWM:\t    9 kB\nVmRSS:\t    1234 kB\nThreads:\t3\n";
        assert_eq!(resident_kib(status), Some(1_234.0));
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 1 2 3";
        assert_eq!(ticks(stat), Some(300.0));
        assert_eq!(ticks("42 (cut"), None);
    }

    #[test]
    fn a_program_is_heard_and_measured_and_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exec sleep 600"]);
        let mut process = Process::start(&command).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        for word in ["one", "two"] {
            // The order of two outputs is nobody's promise.
            let heard = process.hear("a word", deadline, |line| Some(line.text.clone()));
            assert!(["one", "two"].contains(&heard.unwrap().as_str()), "{word}");
        }
        assert!(process.resident_bytes().unwrap() > 0.0);
        assert!(process.processor_s().unwrap() < 30.0);
        process.terminate().unwrap();
        let stop = process.finish(deadline).unwrap_err().to_string();
        assert!(stop.contains("ended with signal: 15"), "{stop}");
        assert!(stop.contains("one") && stop.contains("two"), "{stop}");
    }

    #[test]
    fn a_program_that_ends_well_leaves_its_lines() {
        let mut command = Command::new("echo");
        command.arg("all is well");
        let mut process = Process::start(&command).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        assert_eq!(process.finish(deadline).unwrap(), ["all is well"]);
    }
}
