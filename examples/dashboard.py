#!/usr/bin/env python3
"""A dashboard: watches current usage, and prints it whenever it has changed.

    dashboard.py --nats nats://127.0.0.1:4222 [--until SEQUENCE]

A watcher that comes late gets every key first and then what changes. `_as_of` comes after each
round of changes: what is shown is then true as of that event. With --until it ends there.
"""

import argparse
import asyncio
import json

import nats


async def main():
    """Watch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--until", type=int, default=None, help="end with this event")
    arguments = parser.parse_args()
    nc = await nats.connect(arguments.nats)
    bucket = await nc.jetstream().key_value("alloc_usage")
    watcher = await bucket.watchall()
    hosts = {}
    while True:
        try:
            entry = await watcher.updates(timeout=60)
        except nats.errors.TimeoutError:
            continue
        if entry is None:  # all that was there has come
            continue
        if entry.operation in ("DEL", "PURGE"):
            hosts.pop(entry.key, None)
        elif entry.key == "_as_of":
            sequence = json.loads(entry.value)["sequence"]
            used = {}
            for host in hosts.values():
                for name, figures in host["classes"].items():
                    held, capacity = used.get(name, (0, 0))
                    used[name] = (held + figures["held"], capacity + figures["capacity"])
            print(json.dumps({"as_of": sequence, "hosts": len(hosts), "used": used}), flush=True)
            if arguments.until is not None and sequence >= arguments.until:
                break
        else:
            hosts[entry.key] = json.loads(entry.value)
    await nc.close()


if __name__ == "__main__":
    asyncio.run(main())
