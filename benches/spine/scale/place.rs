//! On which machine was it measured? The facts that BENCHMARKS.md requires of each table, in one
//! sentence.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

/// The machine, the system, the compiler and the commit.
#[derive(Clone, Debug)]
pub(crate) struct MachineInfo {
    /// The date.
    pub(crate) date: String,
    /// Processor, cores, memory, system, compiler and commit.
    pub(crate) words: String,
}

impl MachineInfo {
    /// Collects the facts of this machine.
    pub(crate) fn here() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        let words = [
            processor(),
            format!("{cores} cores"),
            memory(),
            output_of("uname", &["-sr"]),
            compiler(),
            commit(),
        ];
        Self {
            date: output_of("date", &["-u", "+%F"]),
            words: words.join(", "),
        }
    }
}

fn processor() -> String {
    let name = value_of("/proc/cpuinfo", "model name");
    name.unwrap_or_else(|| "a processor without a name".to_owned())
}

fn memory() -> String {
    let kib = value_of("/proc/meminfo", "MemTotal").and_then(|text| {
        let kib: f64 = text.strip_suffix(" kB")?.parse().ok()?;
        Some(kib)
    });
    match kib {
        Some(kib) => format!("{:.0} GiB", kib / 1_048_576.0),
        None => "memory of unknown size".to_owned(),
    }
}

fn compiler() -> String {
    let version = output_of("rustc", &["--version"]);
    let words: Vec<&str> = version.split(' ').take(2).collect();
    words.join(" ")
}

fn commit() -> String {
    let commit = output_of("git", &["rev-parse", "--short", "HEAD"]);
    match output_of("git", &["status", "--porcelain"]).as_str() {
        "" => format!("commit {commit}, a clean tree"),
        _ => format!("commit {commit} with changes"),
    }
}

/// The value of the first line with this name in a file of the kernel.
fn value_of(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn output_of(program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    match command
        .args(words)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
    {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("{program}: {error}"),
    }
}
