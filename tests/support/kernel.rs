//! How much memory and processor time does a process use, as Linux counts them in `/proc`?

use std::fs;

/// The unit of processor time in `/proc`, the same on every platform the tests run on.
const TICKS_PER_S: f64 = 100.0;

/// The resident memory of a process.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    resident_kib(&status).expect("Linux counts its memory") * 1_024
}

/// The processor time of all threads of a process, in seconds.
pub(crate) fn processor_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    ticks(&stat).expect("Linux counts its time") / TICKS_PER_S
}

/// Reads `VmRSS:   1234 kB` in a `status` file.
pub(crate) fn resident_kib(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// User and system time of a `stat` file, proc(5): fields 14 and 15, after the name in parentheses.
pub(crate) fn ticks(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}
