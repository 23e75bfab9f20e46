//! The tool `replay`, run as an operator runs it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::binaries;

/// What it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit status.
    pub status: i32,
    /// What it told.
    pub out: String,
    /// What it complained of.
    pub err: String,
}

impl Said {
    /// Check that these texts are in what it told, in this order.
    #[track_caller]
    pub fn tells(&self, texts: &[&str]) {
        let mut rest = self.out.as_str();
        for text in texts {
            match rest.split_once(text) {
                Some((_, after)) => rest = after,
                None => panic!("{text:?} is not there, or not in its place:\n{}", self.out),
            }
        }
    }

    /// What it told as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.out))
    }
}

/// Run it on a ledger's folder; the server may run on it. Panics if it finds a fault.
#[track_caller]
pub fn replay(data_dir: &Path, arguments: &[&str]) -> Said {
    let output = Command::new(binaries::replay())
        .args(arguments)
        .arg("--data-dir")
        .arg(data_dir)
        .output()
        .expect("replay runs");
    let said = Said {
        status: output.status.code().expect("replay ends by itself"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert_eq!(said.status, 0, "replay {arguments:?}:\n{}{}", said.out, said.err);
    said
}
