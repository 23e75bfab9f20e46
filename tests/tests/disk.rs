//! A disk that is full, read-only, or fails: commands are refused with the cause, nothing that was
//! acknowledged is lost, reads go on where they can, and it is over by itself when that is.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::failing_disk::{EIO, ENOSPC, EROFS, FailingDisk, Fault};
use system_tests::http::{Answer, Client};
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

/// How long a condition is waited for, so that nothing hangs for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server, and what it has acknowledged.
struct Scene {
    server: Server,
    client: Client,
    host: String,
    asked: usize,
    acknowledged: Vec<String>,
}

impl Scene {
    fn on(disk: &FailingDisk) -> Scene {
        let environment = disk.environment();
        let pairs: Vec<(&str, &str)> =
            environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Scene::of(Server::with(&[], &pairs))
    }

    fn of(server: Server) -> Scene {
        let client = server.client();
        let host = topology::provider(&client, "H1", &[("VCPU", 1_000_000)]);
        let mut scene = Scene { server, client, host, asked: 0, acknowledged: Vec::new() };
        (0..10).for_each(|_| drop(scene.claim().expect(204)));
        scene
    }

    /// One claim of a consumer of its own.
    fn claim(&mut self) -> Answer {
        self.asked += 1;
        let consumer = topology::uuid(&format!("consumer {}", self.asked)).to_string();
        let claim = json!({
            "allocations": {&self.host: {"resources": {"VCPU": 1}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_type": "INSTANCE",
            "consumer_generation": Value::Null,
        });
        let answer = self.client.put(&format!("/allocations/{consumer}"), &claim).unwrap();
        if answer.status == 204 {
            self.acknowledged.push(consumer);
        }
        answer
    }

    fn readyz(&self) -> Value {
        self.client.get("/readyz").unwrap().json()
    }

    #[track_caller]
    fn until_read_only(&self, cause: Option<&str>) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ready = self.readyz();
            if ready["store"]["read_only"].as_str() == cause {
                assert_eq!(ready["ready"], cause.is_none(), "{ready}");
                return ready;
            }
            assert!(
                Instant::now() < deadline,
                "never {cause:?}: {ready}\n{}",
                self.server.log_tail()
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Commands are refused with this cause, by a metric too; what is in memory can be read.
    #[track_caller]
    fn is_refused(&mut self, cause: &str) {
        let answer = self.claim().expect(503);
        assert_eq!(answer.json()["errors"][0]["cause"], cause, "{}", answer.text());
        let metrics = self.client.get("/metrics").unwrap().text();
        let line = format!("allocd_store_read_only{{cause=\"{cause}\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
        self.keeps_its_word();
    }

    /// Every acknowledged claim can be read.
    #[track_caller]
    fn keeps_its_word(&self) {
        for consumer in &self.acknowledged {
            let held = self.client.read(&format!("/allocations/{consumer}"));
            assert!(held["allocations"][&self.host].is_object(), "{consumer}: {held}");
        }
    }

    /// The events, from the log on disk.
    fn events(&self) -> Answer {
        self.client.get("/ledger/v1/events?limit=1000").unwrap()
    }

    /// The log can be read, but for the moments in which it is being opened again.
    #[track_caller]
    fn reads_its_log(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.events();
            if answer.status == 503 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            answer.expect(200);
            return;
        }
    }

    /// Commands are taken again without a restart, and all is there after a kill.
    #[track_caller]
    fn ends_well(mut self) {
        let ready = self.until_read_only(None);
        assert_eq!(ready["reason"], Value::Null);
        self.claim().expect(204);
        let metrics = self.client.get("/metrics").unwrap().text();
        assert!(!metrics.contains("allocd_store_read_only{cause=\"disk_failed\"} 1"), "{metrics}");
        self.keeps_its_word();
        self.server.kill();
        verify_ledger(&self.server.data_dir());
        self.server.restart();
        self.client = self.server.client();
        self.keeps_its_word();
        let events = self.events().expect(200).json();
        assert_eq!(events["events"].as_array().unwrap().len() as u64, events["sequence"]);
        assert!(self.server.terminate().success(), "a clean stop");
    }
}

/// While the faults last nothing is taken; what was acknowledged can be read, and so can the log.
fn fails_and_recovers(faults: &[Fault], told: &str) {
    let disk = FailingDisk::new();
    let mut scene = Scene::on(&disk);
    disk.fail(faults);
    // This one finds out; its outcome is not known.
    scene.claim().expect(503);
    let ready = scene.until_read_only(Some("disk_failed"));
    for _ in 0..50 {
        scene.is_refused("disk_failed");
    }
    let deadline = Instant::now() + PATIENCE;
    while !scene.readyz()["reason"].to_string().contains(told) {
        assert!(Instant::now() < deadline, "{ready}");
        thread::sleep(Duration::from_millis(20));
    }
    scene.reads_its_log();
    let lines = scene.server.log().lines().count();
    assert!(lines < 60, "{lines} lines\n{}", scene.server.log());
    disk.mend();
    scene.ends_well();
}

#[test]
fn a_disk_that_cannot_sync() {
    fails_and_recovers(&[("sync", "*", EIO)], "Input/output error");
}

#[test]
fn a_file_system_that_takes_no_writes() {
    let faults = [("write", "*", EROFS), ("change", "*", EROFS), ("sync", "*", EROFS)];
    fails_and_recovers(&faults, "Read-only file system");
}

#[test]
fn a_disk_without_room_for_the_log() {
    fails_and_recovers(&[("write", ".log", ENOSPC), ("write", ".sst", ENOSPC)], "No space left");
}

/// The log cannot be synced once, and what it holds finds no room in a table either.
#[test]
fn a_disk_without_room_for_a_flush() {
    fails_and_recovers(&[("sync", ".log", EIO), ("write", ".sst", ENOSPC)], "No space left");
}

/// One sync fails, and the disk is well otherwise: commands go on after a moment, each with an
/// outcome that holds.
#[test]
fn a_log_that_cannot_be_synced_now_and_then() {
    let disk = FailingDisk::new();
    let mut scene = Scene::on(&disk);
    for _ in 0..6 {
        disk.fail(&[("sync", ".log", EIO)]);
        scene.claim().expect(503);
        disk.mend();
        scene.until_read_only(None);
        scene.claim().expect(204);
    }
    scene.ends_well();
}

/// A table cannot be read: whoever asks for what is in it is told, never that this was all. What
/// needs no table goes on, and so does the rest once it can be read again.
#[test]
fn a_table_that_cannot_be_read() {
    let disk = FailingDisk::new();
    let mut scene = Scene::on(&disk);
    // The start writes what was in the log to tables; what it read of them is forgotten.
    scene.server.restart();
    scene.client = scene.server.client();
    disk.fail(&[("read", ".sst", EIO)]);
    let told = scene.events();
    assert_eq!(told.status, 500, "{}", told.text());
    scene.claim().expect(204);
    scene.keeps_its_word();
    disk.mend();
    let events = scene.events().expect(200).json();
    assert_eq!(events["events"].as_array().unwrap().len() as u64, events["sequence"]);
    scene.ends_well();
}

/// The checkpoint at the end finds no room: nothing of it stays, and the next start needs none.
#[test]
fn a_checkpoint_that_finds_no_room() {
    let disk = FailingDisk::new();
    let mut scene = Scene::on(&disk);
    disk.fail(&[("write", ".unfinished", ENOSPC)]);
    assert!(scene.server.terminate().success(), "the ledger does not need it");
    let folder = scene.server.data_dir().join("checkpoints");
    let left: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    disk.mend();
    scene.server.restart();
    scene.client = scene.server.client();
    scene.ends_well();
}

fn files(scene: &Scene, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.server.data_dir().join("log")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    found.sort();
    found
}

/// Somebody removes the newest file of the log, in which the last claims are: they are written anew
/// from memory, and a kill takes none of them.
#[test]
fn a_write_ahead_log_that_is_removed() {
    let mut scene = Scene::of(Server::start());
    files(&scene, ".log").iter().for_each(|path| fs::remove_file(path).unwrap());
    let deadline = Instant::now() + PATIENCE;
    while files(&scene, ".log").is_empty() {
        assert!(Instant::now() < deadline, "{}", scene.server.log_tail());
        thread::sleep(Duration::from_millis(20));
    }
    scene.claim().expect(204);
    scene.ends_well();
}

/// A table is removed: commands are refused by its name until it is back.
#[test]
fn a_table_that_is_removed() {
    let mut scene = Scene::of(Server::start());
    scene.server.restart();
    scene.client = scene.server.client();
    let table = files(&scene, ".sst").pop().unwrap();
    let away = scene.server.data_dir().join("away");
    fs::rename(&table, &away).unwrap();
    let ready = scene.until_read_only(Some("disk_failed"));
    let name = table.file_name().unwrap().to_str().unwrap();
    assert!(ready["reason"].to_string().contains(name), "{ready}");
    scene.is_refused("disk_failed");
    fs::rename(&away, &table).unwrap();
    scene.ends_well();
}

/// A volume of its own, of so many bytes; none: this machine lets nobody mount one.
fn volume(bytes: u64) -> Option<Volume> {
    let folder = tempfile::Builder::new().prefix("volume-").tempdir().unwrap();
    let size = format!("size={bytes}");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
        .arg(folder.path())
        .status()
        .is_ok_and(|status| status.success());
    mounted.then_some(Volume { folder })
}

struct Volume {
    folder: tempfile::TempDir,
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A lazy one, since a failing test's server may still run.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// Bytes that are free where this file is.
fn free(path: &Path) -> u64 {
    let stat = rustix::fs::statvfs(path.parent().unwrap()).unwrap();
    stat.f_bavail * stat.f_frsize
}

/// Fills a file system but for so many bytes.
fn fill(path: &Path, leave: u64) {
    let file = fs::File::create(path).unwrap();
    let none = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, none, 0, free(path) - leave).unwrap();
}

/// Cases I20 and J4: a volume of 256 MB fills up, is kept from being full, and gets room again.
/// Without a volume of its own the bound is so high that a file crosses it.
#[test]
fn i20_j4_a_disk_that_fills_up() {
    const MIB: u64 = 1024 * 1024;
    let volume = volume(256 * MIB);
    let (mut scene, ballast) = match &volume {
        Some(volume) => {
            let server = Server::on(&volume.folder.path().join("data"), &[], &[]);
            (Scene::of(server), volume.folder.path().join("ballast"))
        }
        None => {
            println!("no volume can be mounted: the bound is set near what is free");
            let bound = (free(&std::env::temp_dir().join("file")) - 1024 * MIB).to_string();
            let server = Server::with(&["--min-free-bytes", &bound], &[]);
            let ballast = server.data_dir().with_file_name("ballast");
            (Scene::of(server), ballast)
        }
    };
    let store = scene.readyz()["store"].clone();
    let bound = store["min_free_bytes"].as_u64().unwrap();
    if volume.is_some() {
        assert_eq!(bound, 32 * MIB, "an eighth of a small volume");
    }
    fill(&ballast, bound - MIB);
    let ready = scene.until_read_only(Some("disk_full"));
    assert!(ready["reason"].to_string().contains("bytes free"), "{ready}");
    for _ in 0..200 {
        scene.is_refused("disk_full");
    }
    scene.events().expect(200);
    // It also starts on a disk as full, and takes nothing. The first start gives back what the log
    // had set apart for itself, so the disk is filled up once more.
    let more = ballast.with_extension("more");
    for _ in 0..2 {
        scene.server.kill();
        scene.server.restart();
        scene.client = scene.server.client();
        if free(&ballast) >= bound {
            fill(&more, bound - MIB);
        }
        scene.until_read_only(Some("disk_full"));
        scene.is_refused("disk_full");
    }
    let lines = scene.server.log().lines().count();
    assert!(lines < 60, "{lines} lines\n{}", scene.server.log());
    let freed = Instant::now();
    fs::remove_file(&ballast).unwrap();
    fs::remove_file(&more).unwrap_or_default();
    scene.until_read_only(None);
    println!("taken again {:?} after there was room", freed.elapsed());
    scene.ends_well();
}
