//! Ways out of the cage, tried one by one, with all layers and with those of older kernels.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use agentd_engine::process::{Cage, Layers, ProcessError};
use rustix::pty::OpenptFlags;

use crate::support::{Fake, assert_none_left, example, marked, supervisor};

/// Files by their paths: content, mode, owner, time.
type Looks = BTreeMap<PathBuf, (Option<Vec<u8>>, u32, u32, i64)>;

/// The world outside: what an escape could reach.
struct Outside {
    dir: tempfile::TempDir,
    victim: Child,
    _listener: UnixListener,
    _docker: UnixListener,
    _abstract: UnixListener,
    _terminal: OwnedFd,
    terminal: String,
    _tcp: std::net::TcpListener,
    tcp: String,
    name: String,
}

impl Outside {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Not in /tmp, which a cage has for itself anyway.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = dir.path();
        for sub in [
            "home/.ssh",
            "home/.docker/run",
            "home/.cargo/registry",
            "home/.npm",
            "home/.m2",
            "home/go",
            "home/bin",
            "home/empty",
            "work/sub",
            "work/agentd",
            "tmp/tmp",
            "tmp/shm",
        ] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        for file in [
            "home/.bashrc",
            "home/.ssh/authorized_keys",
            "home/bin/tool",
            "home/note",
            "work/agentd/config.toml",
        ] {
            fs::write(root.join(file), "mine\n").unwrap();
        }
        let listener = UnixListener::bind(root.join("home/daemon.sock")).unwrap();
        let docker = UnixListener::bind(root.join("home/.docker/run/docker.sock")).unwrap();
        let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let window = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("agentd-cage-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let abstract_listener = UnixListener::bind_addr(&address).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let victim = Command::new("sleep")
            .arg("600")
            .current_dir(root.join("home"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            victim,
            _listener: listener,
            _docker: docker,
            terminal: window.into_string().unwrap(),
            _terminal: terminal,
            _abstract: abstract_listener,
            tcp: tcp.local_addr().unwrap().to_string(),
            _tcp: tcp,
            name,
            dir,
        }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn text(&self, below: &str) -> String {
        self.path(below).to_str().unwrap().to_owned()
    }

    fn cage(&self, layers: Layers) -> Cage {
        Cage {
            writable: vec![self.path("work")],
            visible: vec![self.path("home"), example("escape"), example("fake-agent")],
            readonly: vec![self.path("work/agentd")],
            tmp: Some(self.path("tmp/tmp")),
            layers,
            ..Cage::default()
        }
    }

    /// What can be seen of the home: content, mode, owner, times.
    fn look(&self) -> Looks {
        fn add(dir: &Path, found: &mut Looks) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let meta = entry.path().symlink_metadata().unwrap();
                let bytes = meta.is_file().then(|| fs::read(entry.path()).unwrap());
                let mode = meta.permissions().mode();
                found.insert(entry.path(), (bytes, mode, meta.uid(), meta.mtime()));
                if meta.is_dir() {
                    add(&entry.path(), found);
                }
            }
        }
        let mut found = BTreeMap::new();
        add(&self.path("home"), &mut found);
        add(&self.path("work/agentd"), &mut found);
        found
    }

    /// Every door, and the words that try it.
    fn doors(&self) -> Vec<(&'static str, Vec<String>)> {
        let pid = self.victim.id().to_string();
        let home = |name: &str| self.text(&format!("home/{name}"));
        let work = |name: &str| self.text(&format!("work/{name}"));
        let note = home("note");
        let into = |script: &str| script.replace("NOTE", &note).replace("PID", &pid);
        let door = |name: &'static str, words: &[&str]| {
            (name, words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        fs::write(work("mine"), "mine").unwrap();
        vec![
            // Files
            door("write a file", &["write", &note]),
            door("append to a start-up file", &["append", &home(".bashrc")]),
            door("empty a file", &["truncate", &home("bin/tool")]),
            door("make a file", &["write", &home("new")]),
            door("add a key", &["write", &home(".ssh/authorized_keys2")]),
            door("make a directory", &["mkdir", &home("dir")]),
            door("remove a directory", &["rmdir", &home("empty")]),
            door("remove a file", &["unlink", &home("note")]),
            door("move a file out", &["rename", &work("mine"), &home("moved")]),
            door("move a file in", &["rename", &note, &work("taken")]),
            door("exchange two files", &["exchange", &work("mine"), &note]),
            door("link a file out", &["hardlink", &work("mine"), &home("linked")]),
            door("write by a hard link", &["hardlink-in", &note, &work("hard")]),
            door("make a symbolic link", &["symlink", "/etc/passwd", &home("link")]),
            door("write by a symbolic link", &["write-through-link", &note, &work("soft")]),
            door("write by ..", &["write", &work("../home/note")]),
            door("make a pipe", &["fifo", &home("fifo")]),
            door("make a device", &["device", &home("device")]),
            door("write in the shared /tmp", &["write", &format!("/tmp/{}", self.name)]),
            door("write in /dev/shm", &["write", &format!("/dev/shm/{}", self.name)]),
            door("write in /var/tmp", &["write", &self.text("other")]),
            // Metadata
            door("change a mode", &["chmod", &home("bin/tool")]),
            door("change an owner", &["chown", &note]),
            door("change times", &["utime", &note]),
            door("set an attribute", &["setxattr", &note]),
            // Processes
            door("kill a process", &["kill", &pid]),
            door("stop a process", &["stop", &pid]),
            door("write to the memory of a process", &["proc-mem", &pid]),
            door("go by the root of a process", &["proc-root", &pid, &note]),
            door("go by the directory of a process", &["proc-cwd", &pid, "cwd-note"]),
            door("offer a process to the OOM killer", &["proc-fd", &pid]),
            door("limit a process", &["prlimit", &pid]),
            door("slow a process down", &["renice", &pid]),
            // Sockets
            door("bind a socket", &["bind", &home("bound.sock")]),
            door("use the socket of Docker", &["connect", &home(".docker/run/docker.sock")]),
            door("write to a terminal", &["terminal", &self.terminal]),
            door("use an abstract socket", &["connect-abstract", &self.name]),
            // Mounts and namespaces
            door("enter the mounts of a process", &["setns", &pid, "mnt"]),
            door("enter the users of a process", &["setns", &pid, "user"]),
            door("mount the root writable", &["remount", "/", &note]),
            door("mount the home writable", &["remount", &home(""), &note]),
            door("unmount what is above", &["umount", "/var/tmp", &note]),
            door("mount the home elsewhere", &["bind-mount", &home(""), &work("sub"), "note"]),
            door(
                "as root, mount writable",
                &["as-root", &into("mount -o remount,rw,bind / && echo escaped > NOTE")],
            ),
            door(
                "as root, unmount",
                &["as-root", &into("umount -l /var/tmp && echo escaped > NOTE")],
            ),
            door(
                "as root, mount a proc",
                &[
                    "as-root",
                    &into("mount -t proc proc /proc && echo escaped > /proc/PID/cwd/note"),
                ],
            ),
            door("as root, write", &["as-root", &into("echo escaped > NOTE")]),
            door("as root, kill", &["as-root", &into("kill -9 PID")]),
            door("as root, change a mode", &["as-root", &into("chmod 777 NOTE")]),
            door("write by the root of all", &["write", &format!("/proc/self/root{note}")]),
            // Caches of the user
            door("put something into cargo's cache", &["write", &home(".cargo/registry/x")]),
            door("put something into npm's cache", &["write", &home(".npm/x")]),
            door("put something into Maven's cache", &["write", &home(".m2/x")]),
            door("put something into Go's cache", &["write", &home("go/x")]),
            // Settings that decide, inside of what may be written
            door("write settings", &["write", &work("agentd/config.toml")]),
            door("remove settings", &["unlink", &work("agentd/config.toml")]),
            door(
                "put settings in their place",
                &["rename", &work("mine"), &work("agentd/config.toml")],
            ),
            // What is left behind
            door(
                "leave a daemon",
                &["sh", &into("setsid sh -c 'sleep 0.2; echo escaped > NOTE' & exit 0")],
            ),
            door("by a shell", &["sh", &into("echo escaped > NOTE")]),
            door(
                "by a child that has lost its parents",
                &[
                    "sh",
                    &into(
                        "(setsid sh -c 'echo escaped > NOTE' &) ; sleep 0.1; grep -q escaped NOTE",
                    ),
                ],
            ),
        ]
    }

    /// Tries every door in a world of its own; those that were open.
    fn open_doors(layers: Option<Layers>) -> BTreeSet<&'static str> {
        let mut open = BTreeSet::new();
        let mut world = Self::new();
        for at in 0..world.doors().len() {
            let (name, words) = world.doors().swap_remove(at);
            let before = world.look();
            let mut fake = Fake::new();
            fake.cwd = world.path("work");
            fake.home = Some(world.path("home"));
            fake.cage = layers.map(|layers| world.cage(layers));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ended = fake.try_run(&example("escape"), &words).unwrap();
            assert_none_left(&fake.mark);
            let refused = ended.code == Some(1);
            assert!(refused || ended.code == Some(0), "{name}: {ended:?}");
            let lives = world.victim.try_wait().unwrap().is_none();
            let places = ["/tmp", "/dev/shm"].map(|dir| Path::new(dir).join(&world.name));
            let seen = places.iter().any(|place| fs::remove_file(place).is_ok());
            let same = world.look() == before && lives && !seen;
            // A private /tmp lets it write, and nobody sees it.
            let own_place = name.contains("/tmp") || name.contains("shm");
            if !same || (!refused && !own_place && !name.starts_with("leave")) {
                open.insert(name);
                world = Self::new();
            }
        }
        open
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Whether this system has all layers. CI's has; on another the tables below say nothing.
fn has_all_layers() -> bool {
    supervisor().enforceable().gaps(true).is_empty()
}

#[test]
fn heavy_nothing_escapes_the_cage() {
    if !has_all_layers() {
        return;
    }
    let all = Outside::open_doors(None);
    // Each door is one: without a cage it can be walked through. These need rights or another
    // kind of process, whatever the cage.
    let root = rustix::process::geteuid().is_root();
    assert!(all.len() >= if root { 48 } else { 40 }, "{all:?}");
    let open = Outside::open_doors(Some(Layers::default()));
    assert_eq!(open, BTreeSet::new());
}

/// What an older kernel, or one without namespaces for users, would let through. The table in
/// docs/sandbox.md says the same.
#[test]
fn heavy_what_older_kernels_let_through() {
    if !has_all_layers() {
        return;
    }
    let metadata = ["change a mode", "change an owner", "change times", "set an attribute"];
    let tuning = ["limit a process", "slow a process down"];
    // Landlock cannot take a place out of what it allows, and leaves sockets with a path.
    let settings = ["write settings", "remove settings", "put settings in their place"];
    let others = ["use the socket of Docker", "write to a terminal"];
    let signals = ["kill a process", "stop a process"];
    let newest = Outside::open_doors(Some(Layers { namespaces: false, landlock: 9 }));
    // Only root can give files away.
    let root = rustix::process::geteuid().is_root();
    let can = |door: &&str| root || *door != "change an owner";
    let expected = metadata.into_iter().filter(can).chain(tuning).chain(settings).chain(others);
    let expected: BTreeSet<&str> = expected.collect();
    assert_eq!(newest, expected);
    let third = Outside::open_doors(Some(Layers { namespaces: false, landlock: 3 }));
    let more = signals.into_iter().chain(["use an abstract socket"]);
    assert_eq!(third, expected.into_iter().chain(more).collect());
    let namespaces = Outside::open_doors(Some(Layers { namespaces: true, landlock: 0 }));
    assert_eq!(namespaces, BTreeSet::from(["use an abstract socket"]));
}

#[test]
fn a_caged_program_writes_where_it_may_and_nowhere_else() {
    for layers in [
        Layers::default(),
        Layers { namespaces: false, ..Layers::default() },
        Layers { landlock: 0, ..Layers::default() },
    ] {
        let world = Outside::new();
        let mut fake = Fake::new();
        fake.cwd = world.path("work");
        fake.cage = Some(world.cage(layers));
        let write = |below: &str| world.path(below).join("pids").to_str().unwrap().to_owned();
        let words = ["quiet-daemon", "pids", &write("work"), "pids", &write("home")];
        let ended = fake.run(&words);
        assert_eq!(ended.code, Some(99), "{layers:?} {}", ended.stderr_tail);
        assert!(world.path("work/pids").exists());
        assert!(!world.path("home/pids").exists());
        let held = ended.confined.unwrap();
        assert!(held.files, "{held:?}");
        assert_eq!(held.metadata, layers.namespaces);
    }
}

#[test]
fn a_caged_program_has_its_own_tmp_and_processes() {
    let world = Outside::new();
    let mut fake = Fake::new();
    fake.cwd = world.path("work");
    fake.cage = Some(world.cage(Layers::default()));
    let name = &world.name;
    let script = format!("echo x > /tmp/{name}; ls /proc | grep -c '^[0-9]'; pwd");
    fake.try_run(Path::new("/bin/sh"), &["-c", &script]).unwrap();
    let lines = fake.kept.texts();
    let processes: usize = lines[lines.len() - 2].parse().unwrap();
    assert!(processes < 8, "{lines:?}");
    assert_eq!(lines.last().unwrap(), &world.text("work"));
    let written = fs::read_to_string(world.path("tmp/tmp").join(name));
    assert!(written.is_ok_and(|text| text == "x\n"));
    assert!(!Path::new("/tmp").join(name).exists());
}

#[test]
fn parts_of_a_writable_place_can_be_protected() {
    let world = Outside::new();
    let mut fake = Fake::new();
    fake.cwd = world.path("work");
    fs::create_dir_all(world.path("work/agentd/changes/a")).unwrap();
    let mut cage = world.cage(Layers::default());
    cage.readonly = vec![world.path("work/agentd")];
    cage.writable.push(world.path("work/agentd/changes/a"));
    fake.cage = Some(cage);
    let script = "echo 1 > one; echo 2 > agentd/two; echo 3 > agentd/changes/a/three; \
                  mv agentd other; true";
    fake.try_run(Path::new("/bin/sh"), &["-c", script]).unwrap();
    let is_there = |below: &str| world.path(below).exists();
    assert!(is_there("work/one") && is_there("work/agentd/changes/a/three"));
    assert!(!is_there("work/agentd/two") && !is_there("work/other"));
}

#[test]
fn without_the_network_only_its_own_loopback_is_there() {
    let world = Outside::new();
    for layers in [Layers::default(), Layers { namespaces: false, ..Layers::default() }] {
        let mut fake = Fake::new();
        fake.cwd = world.path("work");
        fake.cage = Some(Cage { network: true, ..world.cage(layers) });
        let ended = fake.try_run(&example("escape"), &["tcp", &world.tcp]).unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr_tail);
        fake.cage = Some(Cage { network: false, ..world.cage(layers) });
        let ended = fake.try_run(&example("escape"), &["tcp", &world.tcp]).unwrap();
        assert_eq!(ended.code, Some(1), "{}", ended.stderr_tail);
        assert!(ended.confined.unwrap().network);
    }
}

#[test]
fn a_killed_supervisor_leaves_no_process() {
    for layers in [Layers::default(), Layers { namespaces: false, landlock: 9 }, Layers::NONE] {
        let world = Outside::new();
        let mut fake = Fake::new();
        fake.cwd = world.path("work");
        fake.cage = Some(world.cage(layers));
        // It kills its parent, or tries to, and leaves a daemon that writes later.
        let script = format!(
            "setsid sh -c 'sleep 1; echo escaped > {}' >/dev/null 2>&1 & \
             kill -9 $PPID; sleep 0.2; exit 3",
            world.text("work/late")
        );
        let result = fake.try_run(Path::new("/bin/sh"), &["-c", &script]);
        match result {
            Ok(ended) => assert_eq!(ended.code, Some(3), "{layers:?}"),
            Err(ProcessError::SupervisorLost { .. }) => assert_eq!(layers, Layers::NONE),
            Err(error) => panic!("{layers:?}: {error}"),
        }
        assert!(marked(&fake.mark).is_empty(), "{layers:?}: {:?}", marked(&fake.mark));
        assert!(!world.path("work/late").exists());
    }
}

#[test]
fn a_system_says_what_it_can_enforce() {
    let held = supervisor().enforceable();
    assert!(held.files, "{held:?}");
    assert_eq!(held, supervisor().enforceable());
}

// contract T1, G5
#[test]
fn what_is_hidden_is_empty_also_for_what_comes_later() {
    let world = Outside::new();
    fs::create_dir_all(world.path("home/keys/mine")).unwrap();
    fs::create_dir_all(world.path("home/keys/theirs")).unwrap();
    fs::write(world.path("home/keys/theirs/early"), "secret").unwrap();
    let mut fake = Fake::new();
    fake.cwd = world.path("work");
    let cage = world.cage(Layers::default());
    fake.cage = Some(Cage { hidden: vec![world.path("home/keys/theirs")], ..cage });
    let script = format!(
        "while ! [ -e {0}/mine/late ]; do sleep 0.02; done; \
         cat {0}/mine/late; ls -A {0}/theirs; cat {0}/theirs/late {0}/theirs/early; \
         echo x > {0}/theirs/planted; true",
        world.text("home/keys")
    );
    let writer = world.path("home/keys");
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        fs::write(writer.join("theirs/late"), "secret").unwrap();
        fs::write(writer.join("mine/late"), "known\n").unwrap();
    });
    fake.try_run(Path::new("/bin/sh"), &["-c", &script]).unwrap();
    thread.join().unwrap();
    assert_eq!(fake.kept.texts(), ["known"]);
    assert!(!world.path("home/keys/theirs/planted").exists());
}
