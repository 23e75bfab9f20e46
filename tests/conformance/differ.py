#!/usr/bin/env python3
"""Send the same random requests to allocd and to the real Placement, and show where their answers differ.

    differ.py --peer-cmd CMD --allocd-cmd CMD [--seed N] [--seconds N] [--rounds N] [-v]

The commands are those of run.py: {port} and {data} are filled in. Most requests are valid; the others have one fault
in the path, a header, the query or the body. Each round uses providers, consumers and names of its own and removes
them at its end, so that a difference in one round does not show in the next. Compared are status, headers and body,
after what has to differ (request ids, times, drawn uuids) was made alike. What differs for a reason is listed in
EXPECTED, with the row of docs/differences.md that explains it; it is counted and not shown.

The same seed gives the same requests. The exit status is 0 if nothing unexpected differs.
"""
import argparse
import collections
import http.client
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from generate import Generator

HOST = "placement.example"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Headers that say something about the request's outcome. The others are the web server's own.
HEADERS = ("content-type", "openstack-api-version", "vary", "allow", "location", "cache-control", "last-modified",
           "retry-after", "www-authenticate", "x-openstack-request-id")
# What Placement's error objects have; allocd adds more.
MEMBERS = {"status", "title", "detail", "code", "request_id", "min_version", "max_version"}
# Words of Python and its libraries that allocd has words of its own for (docs/differences.md).
WORDS = [(re.compile(pattern, re.DOTALL), kept) for pattern, kept in (
    (r"(Failed validating .*?) in schema.*?(\s+On instance.*?)?:.*?(?=  $|\n\n\n </body>|  \"|$)", r"\1 ..."),
    (r"(Invalid query string parameters: ).*?(?:UTF-8|codec).*?(?=  $|\n\n\n </body>|$)", r"\1..."),
    (r"(Malformed JSON: ).*?(?=  $|\n\n\n </body>|$)", r"\1..."),
    (r"(invalid version string: .*?;).*?(?=  $|\n\n\n </body>|$)", r"\1 ..."),
)]


class Answer:
    """What a server said, with what has to differ made alike."""

    def __init__(self, response, body, known):
        self.status = response.status
        self.headers = {}
        for name in HEADERS:
            value = response.getheader(name)
            if value is None:
                continue
            if name in ("last-modified", "x-openstack-request-id"):
                value = "present"
            if name == "content-type":
                value = value.replace("UTF-8", "utf-8")
            self.headers[name] = self.alike(value, known)
        self.text = body.decode("utf-8", "backslashreplace")
        self.body = self.alike(self.text, known)
        if self.headers.get("content-type", "").startswith("application/json") and body:
            self.body = self.document(self.body)
        elif self.status >= 400:
            self.body = own_words(self.body)

    @staticmethod
    def alike(text, known):
        text = re.sub(r"req-[0-9a-f-]{36}", "req-ID", text)
        return UUID.sub(lambda found: found[0] if found[0] in known else "UUID", text)

    @staticmethod
    def document(text):
        try:
            value = json.loads(text)
        except ValueError:
            return text
        if isinstance(value, dict) and isinstance(value.get("errors"), list):
            for error in value["errors"]:
                for name in set(error) - MEMBERS:
                    del error[name]
                if isinstance(error.get("detail"), str):
                    error["detail"] = own_words(error["detail"])
        return unordered(value)

    def differs(self, other):
        """The parts that differ, in words."""
        parts = []
        if self.status != other.status:
            parts.append("status")
        names = sorted(set(self.headers) | set(other.headers))
        parts += [name for name in names if self.headers.get(name) != other.headers.get(name)]
        if self.body != other.body:
            parts.append("body")
        return parts


def own_words(text):
    """A message without what comes from Python or one of its libraries, and with lists by chance sorted."""
    for pattern, kept in WORDS:
        text = pattern.sub(kept, text)
    return re.sub(r"(No such trait )(\w+(?:, \w+)+)", lambda found: found[1] + ", ".join(sorted(found[2].split(", "))),
                  text)


def unordered(value, key=None):
    """The same document with the lists sorted that have no order in the API."""
    if isinstance(value, dict):
        return {name: unordered(member, name) for name, member in value.items()}
    if isinstance(value, list):
        members = [unordered(member) for member in value]
        if key == "errors":
            return members
        return sorted(members, key=lambda member: json.dumps(member, sort_keys=True))
    return value


class Server:
    """One server, started with an empty directory."""

    def __init__(self, name, command, directory):
        self.name = name
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        data = directory / name
        data.mkdir()
        command = command.replace("{port}", str(self.port)).replace("{data}", str(data))
        self.log = open(directory / f"{name}.log", "wb")  # noqa: SIM115  (it lives as long as the server)
        self.process = subprocess.Popen(["sh", "-c", "exec " + command.removeprefix("exec ")], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)

    def wait(self, seconds=60):
        """Until it answers."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                self.send("GET", "/", {}, None, set())
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{self.name} does not answer: {pathlib.Path(self.log.name).read_text(errors='replace')[-2000:]}")

    def send(self, method, path, headers, body, known):
        """Sends a request with exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", HOST)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response, response.read(), known)
        finally:
            connection.close()

    def stop(self):
        """Ends the server."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def is_peer_fault(_, ours, peer):
    """Placement fails with 500 where the request is merely malformed."""
    return peer.status == 500 and ours.status in (200, 400, 404, 409)


def is_shadow_consumer(request, ours, peer):
    """A refused or empty first write leaves a consumer of generation 0 in Placement."""
    texts = ours.text + peer.text
    return "consumer generation conflict" in texts and request.path.startswith(("/allocations", "/reshaper"))


def is_sql(_, ours, peer):
    """Raw SQL in Placement's message."""
    return ours.status == peer.status == 409 and "sqlite3.IntegrityError" in peer.text


def is_mapping(request, ours, peer):
    """`mappings` that are no lists."""
    return ours.status == 400 and peer.status in (204, 409, 400) and "mappings" in (request.text or "") \
        and "mappings" in ours.text


def is_another_one(_, ours, peer):
    """Of several classes, providers or consumers at fault another one is named."""
    def without_names(answer):
        return re.sub(r"[0-9a-fA-F-]{32,36}|\b[A-Z0-9_]{3,}\b|No such resource class .*?\.|'[^']*'", "X", str(answer.body))
    if ours.status != peer.status or ours.status not in (400, 409) or ours.headers != peer.headers:
        return False
    short = "Unable to allocate inventory: "  # whichever of its reasons
    return without_names(ours) == without_names(peer) or (short in ours.text and short in peer.text)


def is_another_violation(_, ours, peer):
    """Of several violations of a schema another one is told, or a keyword that Placement spells with `anyOf`."""
    return ours.status == peer.status == 400 and ours.headers == peer.headers \
        and "JSON does not validate" in ours.text and "JSON does not validate" in peer.text


def is_nan(request, ours, _):
    """NaN is no JSON."""
    return ours.status == 400 and "NaN" in (request.text or "") and "Malformed JSON" in ours.text


def is_latin(request, ours, peer):
    """Text in a path that is no ASCII is shown as it is."""
    return ours.status == peer.status == 404 and "%C3" in request.path


EXPECTED = [is_peer_fault, is_shadow_consumer, is_sql, is_mapping, is_another_one, is_another_violation, is_nan, is_latin]


def expected(request, ours, peer):
    """The reason why these answers differ, if there is one."""
    return next((rule.__doc__ for rule in EXPECTED if rule(request, ours, peer)), None)


def show(number, request, parts, ours, peer):
    """Prints a difference."""
    print(f"\n--- {number}: {', '.join(parts)}\n{request.method} {request.path}")
    for name, value in request.headers.items():
        if name != "x-auth-token" or value != "admin":
            print(f"  {name}: {value}")
    if request.body is not None:
        print(f"  {request.text[:1500]}")
    for name, answer in (("placement", peer), ("allocd", ours)):
        headers = {part: answer.headers.get(part) for part in parts if part in HEADERS}
        body = answer.body if isinstance(answer.body, str) else json.dumps(answer.body, sort_keys=True)
        print(f"  {name}: {answer.status} {headers or ''} {body[:1500]!r}")
    sys.stdout.flush()


def signature(request, parts, ours, peer):
    """What makes two differences the same."""
    path = re.sub(r"[0-9a-fA-F-]{32,36}|CUSTOM_\w+", "X", urllib.parse.urlsplit(request.path).path)
    told = str(peer.body) if peer.status >= 400 else ""
    words = re.sub(r"[^a-z ]|'.*?'|uuid|customc\w+", "", told.lower())[:200]
    return request.method, path, tuple(parts), ours.status, peer.status, words


def compare(options, ours, peer):
    """Sends requests until there are enough; the numbers of requests, differences and expected differences."""
    end = time.monotonic() + options.seconds
    seen, reasons, statuses = collections.Counter(), collections.Counter(), collections.Counter()
    number = 0
    for turn in range(options.first, options.first + options.rounds):
        if time.monotonic() > end:
            break
        generator = Generator(random.Random(f"{options.seed}/{turn}"))
        for request in generator.requests():
            number += 1
            answers = [server.send(request.method, request.path, request.headers, request.body, generator.known)
                       for server in (ours, peer)]
            generator.learn(request, answers[1])
            statuses[answers[1].status] += 1
            parts = answers[0].differs(answers[1])
            if options.verbose:
                print(number, turn, request.method, request.path, answers[0].status, answers[1].status)
            if not parts:
                continue
            reason = expected(request, *answers)
            reason = reason or generator.diverged and "Follows from an earlier difference of the round."
            if answers[0].status != answers[1].status and request.method != "GET":
                generator.diverged = True  # what follows would differ for this reason
            if reason:
                reasons[reason] += 1
                continue
            kind = signature(request, parts, *answers)
            seen[kind] += 1
            if seen[kind] == 1:
                show(f"round {turn} request {number}", request, parts, *answers)
    print(f"\n{number} requests; statuses of Placement {dict(sorted(statuses.items()))}")
    for reason, count in reasons.items():
        print(f"{count} expected: {reason}")
    print(f"{sum(seen.values())} unexpected differences of {len(seen)} kinds")
    return len(seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--peer-cmd", required=True, help="starts Placement; {port} and {data} are filled in")
    parser.add_argument("--allocd-cmd", required=True, help="starts allocd; likewise")
    parser.add_argument("--seed", type=int, default=1, help="for the requests (default 1)")
    parser.add_argument("--seconds", type=float, default=60, help="start no round after so long (default 60)")
    parser.add_argument("--rounds", type=int, default=1_000_000, help="at most so many rounds")
    parser.add_argument("--first", type=int, default=0, help="begin with this round (default 0)")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each request")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        servers = []
        try:
            for name, command in (("allocd", options.allocd_cmd), ("placement", options.peer_cmd)):
                servers.append(Server(name, command, directory))
            for server in servers:
                server.wait()
            kinds = compare(options, *servers)
        finally:
            for server in servers:
                server.stop()
    sys.exit(1 if kinds else 0)


if __name__ == "__main__":
    main()
