//! A Postgres of its own for each test, as a user without rights, in a scratch directory.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) struct Server {
    dir: TempDir,
    bin: PathBuf,
    child: Mutex<Option<Child>>,
}

/// Debian's Postgres, which `cargo xtask test` installs where it may.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> =
        versions.flatten().map(|entry| entry.path().join("bin")).collect();
    found.sort();
    found.into_iter().rfind(|bin| bin.join("initdb").is_file())
}

/// The user and group as which the server runs: it refuses root.
fn nobody() -> Option<(u32, u32)> {
    rustix::process::getuid().is_root().then_some((65534, 65534))
}

impl Server {
    /// Starts one; nothing where Postgres is not installed.
    pub(crate) fn start() -> Option<Self> {
        let Some(bin) = programs() else {
            eprintln!("skipped: Postgres is not installed (apt-get install postgresql)");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap();
        if let Some((user, group)) = nobody() {
            chown(dir.path(), Some(user), Some(group)).unwrap();
        }
        let server = Self { dir, bin, child: Mutex::default() };
        let data = server.dir.path().join("data");
        let mut init = server.command("initdb");
        init.arg("-D").arg(data).args(["-U", "fleet", "-A", "trust", "--no-sync"]);
        let output = init.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        server.run();
        Some(server)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(self.dir.path()).stdin(Stdio::null()).env("LC_ALL", "C");
        if let Some((user, group)) = nobody() {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts the server again, after it was killed.
    pub(crate) fn run(&self) {
        let start = Instant::now();
        loop {
            let mut command = self.command("postgres");
            command.arg("-D").arg(self.dir.path().join("data")).arg("-k").arg(self.dir.path());
            command.args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            while child.try_wait().unwrap().is_none() {
                assert!(start.elapsed() < Duration::from_mins(1), "Postgres does not start");
                if self.answers() {
                    *self.child.lock().unwrap() = Some(child);
                    return;
                }
                sleep(Duration::from_millis(50));
            }
            // What is left of the killed one still has its memory.
            sleep(Duration::from_millis(100));
        }
    }

    fn answers(&self) -> bool {
        let mut ready = self.command("pg_isready");
        ready.arg("-h").arg(self.dir.path()).arg("-q");
        ready.status().unwrap().success()
    }

    /// The power goes.
    pub(crate) fn kill(&self) {
        let child = self.child.lock().unwrap().take();
        if let Some(mut child) = child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        url_in(self.dir.path())
    }
}

fn url_in(dir: &Path) -> String {
    format!("postgres://fleet@localhost/postgres?host={}", dir.display())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
