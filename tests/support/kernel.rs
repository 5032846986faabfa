//! What does a process cost? Its memory and processor time as Linux counts them in `/proc`.

use std::fs;

/// How processor time is counted for programs, on every processor this runs on.
const TICKS_PER_S: f64 = 100.0;

/// The memory a process holds.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    resident_kib(&status).expect("Linux counts its memory") * 1_024
}

/// How long all threads of a process have run, in seconds.
pub(crate) fn processor_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    ticks(&stat).expect("Linux counts its time") / TICKS_PER_S
}

/// `VmRSS:   1234 kB` of a `status`.
pub(crate) fn resident_kib(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// User and system time of a `stat`, proc(5): fields 14 and 15, behind the name in parentheses.
pub(crate) fn ticks(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}
