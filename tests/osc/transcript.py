#!/usr/bin/env python3
"""Play story.txt against a server at one microversion, and print what the client says, as JSON.

    transcript.py URL VERSION

What differs between two servers that answer alike is made the same: uuids that the server chose, the order that
Placement leaves open (rows of lists, members of a cell), and the print of a whole schema that ends jsonschema's messages.
"""
import ast
import json
import pathlib
import re
import shlex
import sys
import urllib.request

from client import Client

STORY = pathlib.Path(__file__).resolve().with_name("story.txt")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
SCHEMA = re.compile(r"  Failed validating .*(?= \(HTTP 400\))", re.DOTALL)
MADE_UP = "uuuuuuuu-uuuu-uuuu-uuuu-uuuuuuuuuuuu"  # as long as what it stands for
NAMES = {
    "host1": "10000000-0000-4000-8000-000000000001",
    "host2": "10000000-0000-4000-8000-000000000002",
    "host3": "10000000-0000-4000-8000-000000000003",
    "numa0": "10000000-0000-4000-8000-000000000010",
    "numa1": "10000000-0000-4000-8000-000000000011",
    "nobody": "10000000-0000-4000-8000-000000000099",
    "server1": "20000000-0000-4000-8000-000000000001",
    "server2": "20000000-0000-4000-8000-000000000002",
    "server3": "20000000-0000-4000-8000-000000000003",
    "agg1": "30000000-0000-4000-8000-000000000001",
    "agg2": "30000000-0000-4000-8000-000000000002",
    "project": "40000000-0000-4000-8000-000000000001",
    "user": "50000000-0000-4000-8000-000000000001",
}


def number(version):
    """1.12 as (1, 12)."""
    return tuple(map(int, version.split(".")))


def story(version):
    """The commands of the story at a microversion, each with the number of its line."""
    for place, line in enumerate(STORY.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        first, rest = line.split(" ", 1)
        span = re.fullmatch(r"(?:(\d+\.\d+)\+|(\d+\.\d+)?-(\d+\.\d+))", first)
        if not span:
            yield place, line
        elif number(span[1] or span[2] or "1.0") <= number(version) <= number(span[3] or "1.999"):
            yield place, rest


def owner(version):
    """The options that say to whom allocations belong, which came with 1.8 and 1.38."""
    options = ""
    if number(version) >= (1, 8):
        options += f"--project-id {NAMES['project']} --user-id {NAMES['user']}"
    if number(version) >= (1, 38):
        options += " --consumer-type INSTANCE"
    return options


def generation(url, provider):
    """The present generation of a provider."""
    request = urllib.request.Request(f"{url}/resource_providers/{NAMES[provider]}", headers={"X-Auth-Token": "admin"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["generation"])


def words(line, url, version):
    """The words of a command, names replaced."""
    line = line.replace("{owner}", owner(version))
    line = re.sub(r"\{generation of (\w+)\}", lambda found: generation(url, found[1]), line)
    return shlex.split(line.format(**NAMES))


def reads(line):
    """Whether a command lists or shows something."""
    command = re.split(r" -| \{| [A-Z]", line, maxsplit=1)[0].split()
    return "list" in command or "show" in command


def ordered(value):
    """A value with its members in order: a cell's text, or a dict."""
    if isinstance(value, dict):
        return {name: ordered(value[name]) for name in sorted(value)}
    if not isinstance(value, str) or not value.strip():
        return value
    text = value.strip()
    if text.startswith("{"):
        return value.replace(text, str(ordered(ast.literal_eval(text))))
    return value.replace(text, ",".join(sorted(text.split(","))))


def table(text):
    """A table with its cells in order, and if it is a list its rows; the rows of one candidate stay together."""
    lines = text.splitlines()
    rows = [[ordered(cell) for cell in line.split("|")] for line in lines[3:-1]]
    if lines[1].startswith("| #"):
        rows = numbered(rows, 1, lambda row, place: [row[0], f" {place} ".ljust(len(row[1])), *row[2:]])
    elif not lines[1].startswith("| Field"):
        rows.sort()
    return "\n".join([*lines[:3], *("|".join(row) for row in rows), lines[-1]]) + "\n"


def numbered(rows, key, renumber):
    """Rows whose member `key` says which of them are one candidate: candidates in order and numbered anew."""
    candidates = {}
    for row in rows:
        candidates.setdefault(str(row[key]).strip(), []).append(row)
    blank = sorted((sorted((renumber(row, 0) for row in rows), key=str) for rows in candidates.values()), key=str)
    return [renumber(row, place) for place, rows in enumerate(blank, 1) for row in rows]


def document(text):
    """JSON with its values in order, and if it is a list its rows. The fields keep the client's order."""
    told = json.loads(text)
    if isinstance(told, dict):
        told = {name: ordered(value) for name, value in told.items()}
    else:
        told = [{name: ordered(value) for name, value in row.items()} for row in told]
        if told and "#" in told[0]:
            told = numbered(told, "#", lambda row, place: {**row, "#": place})
        else:
            told.sort(key=str)
    return json.dumps(told, indent=2) + "\n"


def normal(text):
    """What the client told, without what two servers may do differently."""
    text = UUID.sub(lambda found: found[0] if found[0] in NAMES.values() else MADE_UP, text)
    if text[:1] in ("[", "{"):
        return document(text)
    return table(text) if text.startswith("+-") else text


def play(url, version):
    """What the client says to each command of the story: line, command, answer."""
    client = Client(url, version)
    for place, line in story(version):
        for form in ([], ["-f", "json"]) if reads(line) else ([],):
            status, out, err = client.run(words(line, url, version) + form)
            complaint = SCHEMA.sub("  [...]", normal(err).strip())
            answer = normal(out) + (f"! {complaint}\n" if complaint else "")
            yield place, " ".join([line, *form]), answer + (f"status {status}\n" if status else "ok\n")


if __name__ == "__main__":
    json.dump(list(play(*sys.argv[1:])), sys.stdout)
