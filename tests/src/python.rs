//! The examples in Python, run as their readers would run them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::binaries;
use crate::nats;

/// Run an example to its end.
pub fn example(name: &str, arguments: &[&str]) -> Output {
    Command::new(python())
        .arg(binaries::root().join("examples").join(name))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap_or_else(|error| panic!("{name} does not run: {error}"))
}

/// `PYTHON`, or the one of the environment that the test command made.
fn python() -> PathBuf {
    let named = env::var_os("PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| nats::cache().join("tools/bin/python"));
    let has = Command::new(&python).args(["-c", "import blake3, msgpack, nats"]).output();
    assert!(
        has.is_ok_and(|output| output.status.success()),
        "{} lacks what the examples need: tests/run installs it, or \
         pip install -r examples/requirements.txt and set PYTHON",
        python.display()
    );
    python
}
