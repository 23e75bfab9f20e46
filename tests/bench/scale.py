#!/usr/bin/env python3
"""How allocd grows: time of a candidates query from 1,000 to 100,000 providers, bytes of memory for
each provider and each allocation, time to start again, and whether readers and the writer hold up
each other. It loads through the ledger's own commands, so there is no peer here: bench.py has one.

    ./scale.py --allocd PATH [--providers 1000,10000,100000] [--allocations 300000] [--seconds 6]
"""
import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import threading
import time
import uuid

import bench
import servers as srv
from topology import make_uuid

QUERY = "/allocation_candidates?resources=VCPU:1,DISK_GB:10,MEMORY_MB:256"
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39",
           "Content-Type": "application/json"}
CLASSES = ["VCPU", "MEMORY_MB", "DISK_GB"]
GROUP = 500                                # commands sent at once


class Opts:
    token, microversion, drain_limit = "admin", "1.39", 60


class Link:
    """One connection to the server."""

    def __init__(self, port):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def ask(self, method, path, body=None):
        self.http.request(method, path, body and json.dumps(body), HEADERS)
        answer = self.http.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {data[:500]}")
        return data

    def commands(self, commands):
        for at in range(0, len(commands), GROUP):
            self.ask("POST", "/ledger/v1/commands", commands[at:at + GROUP])
            progress(at + GROUP, len(commands))


def progress(done, total):
    if sys.stderr.isatty():
        print(f"\r  {min(done, total)} of {total}", end="" if done < total else "\n", file=sys.stderr)


def host(n):
    return make_uuid("scale", n)


def cloud(count):
    inventories = {"VCPU": {"total": 128, "allocation_ratio": 16.0}, "MEMORY_MB": {"total": 1 << 20},
                   "DISK_GB": {"total": 40960}}
    return [command for n in range(count) for command in (
        {"create_provider": {"uuid": host(n), "name": f"scale-{n:06d}"}},
        {"change_inventories": {"provider": host(n), "change": {"replace_all": inventories}}},
        {"set_traits": {"provider": host(n), "traits": ["HW_CPU_X86_AVX2"]}})]


def claims(count, hosts):
    amounts = {"VCPU": 1, "MEMORY_MB": 256, "DISK_GB": 10}
    return [{"claim": {"consumer": str(uuid.uuid4()), "project_id": f"p{n % 20}", "user_id": f"u{n % 20}",
                       "consumer_type": "INSTANCE", "options": [{host(n % hosts): amounts}]}}
            for n in range(count)]


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024


def started(args, data):
    with srv.socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    template = f"{args.allocd} serve --listen 127.0.0.1:{{port}} --data-dir {{data}}"
    server = srv.Command("allocd", template, data, port, Opts)
    begun = time.monotonic()
    server.start()
    return server, time.monotonic() - begun


def timed(server, link, path, seconds):
    """Median milliseconds and CPU milliseconds of one answer, and its bytes."""
    size = len(link.ask("GET", path))
    times, cpu, end = [], server.cpu(), time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 3:
        begun = time.monotonic()
        link.ask("GET", path)
        times.append(time.monotonic() - begun)
    return statistics.median(times) * 1e3, (server.cpu() - cpu) / len(times) * 1e3, size


def grow(args, count, base):
    with tempfile.TemporaryDirectory(dir=args.dir) as data:
        server, _ = started(args, data)
        try:
            link = Link(server.port)
            empty = rss(server.proc.pid)
            link.commands(cloud(count))
            link.ask("GET", QUERY + "&limit=1")
            full = rss(server.proc.pid)
            for limit in ("&limit=1", "&limit=1000", ""):
                wall, cpu, size = timed(server, link, QUERY + limit, args.seconds / 3)
                times = f"{wall / base.setdefault(limit, wall):5.2f} times that of the smallest cloud"
                print(f"{count:7d} providers {limit or ' no limit':12s} {wall:9.3f} ms (CPU {cpu:8.3f}) "
                      f"{size:9d} bytes, {times}")
            print(f"{count:7d} providers: {(full - empty) / count:.0f} bytes each, "
                  "with three inventories and a trait (before texts are kept)")
            if count == args.largest:
                held(args, server, link, count)
        finally:
            server.stop()


def held(args, server, link, hosts):
    before = rss(server.proc.pid)
    link.commands(claims(args.allocations, hosts))
    time.sleep(1)
    after = rss(server.proc.pid)
    rows = args.allocations * len(CLASSES)
    print(f"{args.allocations} consumers of {len(CLASSES)} classes each: {(after - before) / rows:.0f} bytes "
          f"for each (consumer, provider, class); RSS {after >> 20} MiB")
    server.stop()
    begun = time.monotonic()
    server.start()
    Link(server.port).ask("GET", QUERY + "&limit=1")
    print(f"start with {hosts} providers and {args.allocations} consumers, to the first candidates: "
          f"{time.monotonic() - begun:.2f} s")


def together(args):
    """p99 of claims alone and beside candidate queries at full rate, and the other way round."""
    with tempfile.TemporaryDirectory(dir=args.dir) as data:
        server, _ = started(args, data)
        try:
            Link(server.port).commands(cloud(1000))
            file = os.path.join(data, "providers")
            with open(file, "w") as f:
                f.write("\n".join(host(n) for n in range(1000)))
            claim = ("claims", 4, {"providers": file, "project": make_uuid("p"), "user": make_uuid("u"),
                                   "track": os.path.join(data, "track")})
            query = ("candidates", 2, {"path": QUERY + "&limit=1000"})
            rows = {"claims alone": [], "claims beside queries": [], "queries alone": [],
                    "queries beside claims": []}
            for _ in range(args.rounds):
                rows["claims alone"].append(run(args, server, claim))
                rows["queries alone"].append(run(args, server, query))
                both = at_once(args, server, claim, query)
                rows["claims beside queries"].append(both[0])
                rows["queries beside claims"].append(both[1])
            for label, runs in rows.items():
                middle = {k: statistics.median(r["latency"][k] for r in runs) for k in ("p50_ms", "p99_ms")}
                rate = statistics.median(r["rate"] for r in runs)
                print(f"{label:22s} {rate:9.0f}/s  p50 {middle['p50_ms']:7.3f} ms  p99 {middle['p99_ms']:7.3f} ms")
        finally:
            server.stop()


def run(args, server, what):
    script, conc, params = what
    return bench.run_wrk(server, script, conc, params, args.seconds, 0.5, 10, Opts)


def at_once(args, server, *whats):
    results = [None] * len(whats)

    def one(at):
        results[at] = run(args, server, whats[at])
    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(whats))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fsync(args):
    """Median milliseconds of an fdatasync of 4 KiB where the ledger lies."""
    times = []
    with tempfile.NamedTemporaryFile(dir=args.dir) as f:
        for _ in range(200):
            os.write(f.fileno(), b"x" * 4096)
            begun = time.monotonic()
            os.fdatasync(f.fileno())
            times.append(time.monotonic() - begun)
    return statistics.median(times) * 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--allocd", required=True, help="the program allocd")
    p.add_argument("--providers", default="1000,10000,100000")
    p.add_argument("--allocations", type=int, default=300000, help="consumers in the largest cloud")
    p.add_argument("--seconds", type=float, default=6, help="how long one measurement takes")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", choices=["grow", "together"])
    p.add_argument("--dir", help="where the ledgers lie (default: the temporary folder)")
    args = p.parse_args()
    counts = [int(n) for n in args.providers.split(",")]
    args.largest = max(counts)
    print(f"fdatasync p50 {fsync(args):.2f} ms; load {os.getloadavg()[0]:.1f}; {os.cpu_count()} processors")
    if args.only != "together":
        base = {}
        for count in counts:
            grow(args, count, base)
    if args.only != "grow":
        together(args)


if __name__ == "__main__":
    main()
