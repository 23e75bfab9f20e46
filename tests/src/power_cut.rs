//! A power cut: what a process wrote and did not sync is gone.
//!
//! The server runs with a small library preloaded (`power_cut.c`) that notes each sync. After
//! the server was killed its folder is put back to what these syncs promise. Linux only.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::Rng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use crate::binaries;

/// The file that is written without a sync on purpose; it may survive a cut or not.
const ACKNOWLEDGED: &str = "acknowledged";

/// What a disk does with things that it has not promised.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Names that were made, replaced or removed since their folder was synced are as they were
    /// then, as POSIX allows. Otherwise they are as the process left them, as with a journal
    /// that was written just before.
    pub old_names: bool,
    /// Of what was written after the last sync some is there, and part of that as zeros.
    /// Otherwise files end where their last sync found them.
    pub torn: bool,
    /// The file `acknowledged`, never synced, is there.
    pub acknowledged: bool,
}

impl Manner {
    /// Each manner in turn.
    pub fn of(number: usize) -> Manner {
        let bit = |place: usize| number >> place & 1 == 1;
        Manner { old_names: bit(0), torn: bit(1), acknowledged: bit(2) }
    }
}

/// The preloaded library, and what it notes.
pub struct PowerCut {
    folder: TempDir,
}

impl PowerCut {
    /// Compile the library.
    pub fn new() -> PowerCut {
        let folder =
            tempfile::Builder::new().prefix("power-cut-").tempdir().expect("a folder can be made");
        let power = PowerCut { folder };
        let status = Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o"])
            .arg(power.library())
            .arg(binaries::root().join("tests/src/power_cut.c"))
            .arg("-ldl")
            .status()
            .expect("there is a C compiler, cc");
        assert!(status.success(), "power_cut.c does not compile");
        fs::create_dir(power.kept()).expect("a folder can be made");
        power
    }

    /// The environment of a server whose syncs are noted; of files whose name contains `forget`
    /// they are not, as if the server had left them out.
    pub fn environment(&self, forget: Option<&str>) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_str().expect("temporary folders are UTF-8").to_owned();
        let mut environment = vec![
            ("LD_PRELOAD".to_owned(), text(self.library())),
            ("POWER_CUT_JOURNAL".to_owned(), text(self.journal())),
            ("POWER_CUT_KEPT".to_owned(), text(self.kept())),
        ];
        environment.extend(forget.map(|name| ("POWER_CUT_FORGET".to_owned(), name.to_owned())));
        environment
    }

    /// Put the folder of a dead server back to what was synced.
    pub fn cut(&self, data: &Path, manner: Manner, random: &mut StdRng) {
        let disk = Disk { synced: Synced::read(&self.journal()), files: self.files(data), manner };
        let after = data.with_extension("after");
        disk.rebuild(data, &after, random);
        let acknowledged = data.join(ACKNOWLEDGED);
        if manner.acknowledged && acknowledged.exists() {
            fs::copy(acknowledged, after.join(ACKNOWLEDGED)).expect("a file can be copied");
        }
        fs::remove_dir_all(data).expect("a folder can be removed");
        fs::rename(&after, data).expect("a folder can be renamed");
        self.settle(data);
    }

    /// All that is in the folder now is on the disk for good, as after a cut or a long time. No
    /// server may run.
    pub fn settle(&self, data: &Path) {
        fs::remove_dir_all(self.kept()).expect("a folder can be removed");
        fs::create_dir(self.kept()).expect("a folder can be made");
        let mut journal = fs::File::create(self.journal()).expect("the journal can be written");
        for folder in folders(data) {
            let mut line = format!("D {}", inode(&folder));
            for path in entries(&folder) {
                line += &format!(" {}={}", name(&path), inode(&path));
                if path.is_file() {
                    let size = path.metadata().expect("a file has a size").len();
                    writeln!(journal, "F {} {size}", inode(&path))
                        .expect("the journal can be written");
                }
            }
            writeln!(journal, "{line}").expect("the journal can be written");
        }
    }

    /// Every file of the folder, and those that were there, by inode.
    fn files(&self, data: &Path) -> BTreeMap<u64, PathBuf> {
        let folders = folders(data).into_iter().chain([self.kept()]);
        let paths = folders.flat_map(|folder| entries(&folder));
        paths.filter(|path| path.is_file()).map(|path| (inode(&path), path)).collect()
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("power_cut.so")
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }
}

impl Default for PowerCut {
    fn default() -> Self {
        Self::new()
    }
}

/// What was synced.
#[derive(Default)]
struct Synced {
    /// The size of each file at its last sync, by inode.
    sizes: BTreeMap<u64, u64>,
    /// The names in each folder at its last sync, and their inodes.
    folders: BTreeMap<u64, Vec<(String, u64)>>,
}

impl Synced {
    fn read(journal: &Path) -> Synced {
        let text = fs::read_to_string(journal).expect("the journal can be read");
        let mut synced = Synced::default();
        // A last line without its end was written by a sync that had not returned yet.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let mut words = line.split(' ');
            let (kind, inode) = (words.next(), number(words.next().unwrap_or_default()));
            if kind == Some("F") {
                synced.sizes.insert(inode, number(words.next().unwrap_or_default()));
            } else {
                let entries =
                    words.map(|word| word.rsplit_once('=').expect("an entry has an inode"));
                let entries = entries.map(|(name, inode)| (name.to_owned(), number(inode)));
                synced.folders.insert(inode, entries.collect());
            }
        }
        synced
    }
}

/// A disk at the moment of the cut.
struct Disk {
    synced: Synced,
    files: BTreeMap<u64, PathBuf>,
    manner: Manner,
}

impl Disk {
    /// Make `after` what is left of `before`, folder by folder. A folder that is not named in
    /// what was synced of the one above it is lost with all that is in it.
    fn rebuild(&self, before: &Path, after: &Path, random: &mut StdRng) {
        fs::create_dir(after).expect("a folder can be made");
        let names = self.names(before);
        let is_left = |folder: &PathBuf| names.iter().any(|(known, _)| *known == name(folder));
        for (name, inode) in &names {
            let Some(path) = self.files.get(inode) else {
                assert!(before.join(name).is_dir(), "{name}, inode {inode}, was not kept");
                continue;
            };
            if name != ACKNOWLEDGED
                && let Some(bytes) = self.content(*inode, path, random)
            {
                fs::write(after.join(name), bytes).expect("a file can be written");
            }
        }
        for folder in entries(before).into_iter().filter(|path| path.is_dir() && is_left(path)) {
            self.rebuild(&folder, &after.join(name(&folder)), random);
        }
    }

    fn names(&self, folder: &Path) -> Vec<(String, u64)> {
        if self.manner.old_names {
            return self.synced.folders.get(&inode(folder)).cloned().unwrap_or_default();
        }
        entries(folder).iter().map(|path| (name(path), inode(path))).collect()
    }

    /// What is left of a file; none: nothing, not even its name.
    fn content(&self, inode: u64, path: &Path, random: &mut StdRng) -> Option<Vec<u8>> {
        let mut bytes = fs::read(path).expect("a file can be read");
        let synced = self.synced.sizes.get(&inode).copied();
        if synced.is_none() && !self.manner.torn && !self.manner.old_names {
            return None;
        }
        let sure = usize::try_from(synced.unwrap_or(0)).expect("a size").min(bytes.len());
        if !self.manner.torn {
            bytes.truncate(sure);
            return Some(bytes);
        }
        bytes.truncate(random.random_range(sure..=bytes.len()));
        let zeros = random.random_range(sure..=bytes.len());
        bytes[zeros..].fill(0);
        Some(bytes)
    }
}

/// A folder and all below it.
fn folders(top: &Path) -> Vec<PathBuf> {
    let below = entries(top).into_iter().filter(|path| path.is_dir());
    let mut found: Vec<PathBuf> = below.flat_map(|path| folders(&path)).collect();
    found.push(top.to_owned());
    found
}

/// What is in a folder, in an order that is the same each time.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("a folder can be read");
    let mut paths: Vec<PathBuf> =
        listed.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).expect("a file that was listed is there").ino()
}

fn name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned()
}

fn number(text: &str) -> u64 {
    text.parse().expect("the journal has numbers")
}
