#!/usr/bin/env python3
"""Check that Placement's own HTTP tests which allocd is expected to pass do pass, and say which others do.

    check.py --allocd PATH_OF_THE_BINARY [--same-host-moves sum|max] [--grow] [--jobs N]

expected.txt lists gabbi files, one a line, all of whose tests pass. A failure in one of them fails this check; a
failure in any other file does not, but a file that passes in full and is not listed is named, and with --grow added,
so that the list only ever grows. Needs the packages of requirements.txt (run.py does).
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.txt"


def read_expected():
    """The names in expected.txt."""
    lines = (line.partition("#")[0].strip() for line in EXPECTED.read_text().splitlines())
    return {line for line in lines if line}


def grow(names):
    """Add names to expected.txt, and keep its list sorted under its comment."""
    lines = EXPECTED.read_text().splitlines()
    comment = [line for line in lines if line.startswith("#")]
    EXPECTED.write_text("\n".join(comment + sorted(read_expected() | set(names))) + "\n")


def run(allocd, same_host_moves, jobs, verbose):
    """Run all files; the report of run.py as a dict."""
    server = (f"exec {shlex.quote(str(allocd))} serve --listen 127.0.0.1:{{port}} --data-dir {{data}}"
              f" --same-host-moves {same_host_moves}")
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch, "report.json")
        command = [sys.executable, str(HERE / "run.py"), "--server-cmd", server, "--jobs", str(jobs),
                   "--skip-file", str(HERE / "known-unrunnable.txt"), "--json", str(report)]
        log = subprocess.DEVNULL if not verbose else None
        process = subprocess.Popen(command, stdout=log)
        try:
            process.wait()
        except BaseException:
            process.terminate()  # run.py ends its servers then
            process.wait()
            raise
        if not report.exists():
            sys.exit(f"run.py ended with status {process.returncode} and without a report")
        return json.loads(report.read_text())


def first_failure(file):
    """Why a file did not pass, in a line."""
    if file["error"]:
        return file["error"].strip().splitlines()[-1]
    test = next(test for test in file["tests"] if test["status"] == "failed")
    return f"{test['name']}: {(test['message'].strip() or '?').splitlines()[0][:200]}"


def passes(file):
    """Whether all tests of a file ran and passed."""
    return file["passed"] == file["total"] and file["total"] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--allocd", required=True, type=pathlib.Path, help="the server's binary")
    parser.add_argument("--same-host-moves", choices=["sum", "max"], default="sum",
                        help="the server's setting; the tests pass with both (default sum)")
    parser.add_argument("--grow", action="store_true", help="add further files that pass to expected.txt")
    parser.add_argument("--jobs", type=int, default=2, help="servers at a time (default 2)")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each file as it is done")
    options = parser.parse_args()
    allocd = options.allocd.resolve()
    if not allocd.is_file():
        parser.error(f"there is no {allocd}: cargo build --workspace --bins")

    report = run(allocd, options.same_host_moves, options.jobs, options.verbose)
    files = {file["file"].removesuffix(".yaml"): file for file in report["files"]}
    expected = read_expected()
    unknown = sorted(expected - files.keys())
    broken = sorted(name for name in expected & files.keys() if not passes(files[name]))
    further = sorted(name for name in files.keys() - expected if passes(files[name]))
    open_files = sorted(name for name in files.keys() - expected if not passes(files[name]))

    for name in open_files:
        print(f"not yet    {name} {files[name]['passed']}/{files[name]['total']}  {first_failure(files[name])}")
    for name in further:
        print(f"passes now {name} {files[name]['total']}" + ("" if options.grow else "  (--grow adds it to expected.txt)"))
    for name in broken:
        print(f"BROKEN     {name} {files[name]['passed']}/{files[name]['total']}  {first_failure(files[name])}")
    for name in unknown:
        print(f"BROKEN     {name}: expected.txt names it, openstack-placement has no such file")
    if options.grow:
        grow(further)
    complete = sum(map(passes, files.values()))
    print(f"{complete} of {len(files)} files pass in full, {report['passed']} of "
          f"{sum(file['total'] for file in files.values())} tests; {len(expected)} files are expected to")
    bad = len(broken) + len(unknown)
    print(f"expected files: {len(expected) - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
