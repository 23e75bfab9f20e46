#!/usr/bin/env python3
"""Check that the commands of osc-placement say to allocd what they say to Placement.

    check.py --allocd PATH_OF_THE_BINARY
    check.py --record VENV

The first plays story.txt against allocd at each microversion and compares with expected.txt. The second plays it
against the real Placement of that virtual environment (../conformance/requirements-peer.txt) and writes expected.txt.
Needs the packages of requirements.txt and ../conformance/requirements.txt.
"""
import argparse
import concurrent.futures
import difflib
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CONFORMANCE = HERE.parent / "conformance"
sys.path.insert(0, str(CONFORMANCE))
import run  # noqa: E402 - the servers of the conformance tests

EXPECTED = HERE / "expected.txt"
VERSIONS = ["1.0", "1.12", "1.14", "1.21", "1.28", "1.29", "1.38", "1.39"]

# How long a server may take to start, and a story to be told, in seconds: only so that nothing hangs for ever.
READY, TOLD = 120, 1200


def allocd(binary):
    """The command that serves allocd on {port} with {data}."""
    return f"exec {shlex.quote(str(binary))} serve --listen 127.0.0.1:{{port}} --data-dir {{data}}"


def placement(venv):
    """The command that serves the real Placement."""
    return f"PEER_VENV={shlex.quote(str(venv))} exec {shlex.quote(str(CONFORMANCE / 'peer-server.sh'))} {{port}} {{data}}"


def play(command, version):
    """Play the story at one microversion on a new server: (line, command, answer) in order."""
    with tempfile.TemporaryDirectory() as folder:
        server = run.Server(command, {"AUTH_STRATEGY": "noauth2"}, pathlib.Path(folder), READY)
        try:
            server.wait_until_ready()
            told = subprocess.run([sys.executable, str(HERE / "transcript.py"), f"http://{run.HOST}:{server.port}", version],
                                  stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=TOLD, check=False)
            if told.returncode:
                sys.exit(f"the story at {version} ended with status {told.returncode}; the server:\n{server.log_tail()}")
            return json.loads(told.stdout)
        finally:
            server.stop()


def merge(transcripts):
    """One text of all transcripts: each command once, and each answer with the microversions that it was given at."""
    answers = {}
    for version, transcript in transcripts.items():
        for place, command, answer in transcript:
            answers.setdefault((place, command), {}).setdefault(answer, []).append(version)
    text = []
    for (_, command), of_versions in sorted(answers.items(), key=lambda item: item[0][0]):
        text.append(f"$ openstack {command}\n")
        text.extend(f"[{' '.join(versions)}]\n{answer}" for answer, versions in of_versions.items())
        text.append("\n")
    return "".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--allocd", type=pathlib.Path, help="the server's binary")
    side.add_argument("--record", type=pathlib.Path, metavar="VENV", help="the real Placement's virtual environment")
    parser.add_argument("--jobs", type=int, default=2, help="servers at a time (default 2)")
    options = parser.parse_args()
    command = allocd(options.allocd.resolve()) if options.allocd else placement(options.record.resolve())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        transcripts = dict(zip(VERSIONS, pool.map(lambda version: play(command, version), VERSIONS)))
    told = merge(transcripts)
    commands = sum(map(len, transcripts.values()))
    if options.record:
        EXPECTED.write_text(told)
        print(f"{commands} commands at {len(VERSIONS)} microversions recorded")
        return 0
    difference = list(difflib.unified_diff(EXPECTED.read_text().splitlines(), told.splitlines(), "Placement", "allocd",
                                           lineterm="", n=8))
    print("\n".join(difference))
    print(f"{commands} commands of osc-placement at {len(VERSIONS)} microversions: "
          + ("some answers differ" if difference else "all answers are Placement's"))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
