#!/usr/bin/env python3
"""An auditor: follows every event from the first on and checks that history is whole and unchanged.

    auditor.py --nats nats://127.0.0.1:4222 --ledger http://127.0.0.1:8778 [--until SEQUENCE]

Each record names the hash of the one before it. A record that came before is dropped; what the
broker lacks is read from the ledger. Prints the last sequence and its hash: keep it outside the
ledger's reach, and compare it next time. Ends with status 1 at the first thing that is not as it
must be.
"""

import argparse
import asyncio
import json
import sys
import urllib.request

import msgpack
import nats
import nats.js.api
from blake3 import blake3

RECORD = "allocd 2026 record: format byte and header"
BODY = "allocd 2026 record: body"


def read(record):
    """A record's header and its hash."""
    length = int.from_bytes(record[1:5], "big")
    encoded, body = record[5:5 + length], record[5 + length:]
    header = msgpack.unpackb(encoded)
    if record[0] != 1 or blake3(body, derive_key_context=BODY).digest() != header["body_digest"]:
        raise ValueError(f"event {header['sequence']} has another body than its header says")
    return header, blake3(record[:1] + encoded, derive_key_context=RECORD).digest()


class Chain:
    """Where the chain of hashes stands."""

    def __init__(self):
        self.sequence = 0
        self.hash = bytes(32)
        self.kinds = {}

    def add(self, record):
        """The next record; one that was seen is dropped."""
        header, digest = read(record)
        if header["sequence"] <= self.sequence:
            return
        if header["sequence"] != self.sequence + 1 or header["previous_hash"] != self.hash:
            raise ValueError(f"event {header['sequence']} does not follow on event {self.sequence}")
        self.sequence, self.hash = header["sequence"], digest
        self.kinds[header["kind"]] = self.kinds.get(header["kind"], 0) + 1


def from_ledger(ledger, after):
    """Records after an event, from the ledger itself."""
    request = urllib.request.Request(f"{ledger}/ledger/v1/events?after={after}&limit=1000", headers={
        "X-Auth-Token": "admin", "Accept": "application/vnd.allocd.records"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = answer.read()
    while body:
        length = int.from_bytes(body[:4], "big")
        yield body[4:4 + length]
        body = body[4 + length:]


async def main():
    """Follow and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--ledger", default="http://127.0.0.1:8778")
    parser.add_argument("--until", type=int, default=None, help="end with this event")
    arguments = parser.parse_args()
    nc = await nats.connect(arguments.nats)
    chain = Chain()
    refilled = 0
    messages = await nc.jetstream().subscribe(
        "alloc.v1.event.>", stream="ALLOC_EVENTS", ordered_consumer=True,
        deliver_policy=nats.js.api.DeliverPolicy.ALL)
    while arguments.until is None or chain.sequence < arguments.until:
        try:
            message = await messages.next_msg(timeout=10)
        except nats.errors.TimeoutError:
            continue
        try:
            header, _ = read(message.data)
            gap = header["sequence"] > chain.sequence + 1
        except (ValueError, KeyError, IndexError):
            gap = True  # no event at all: what belongs here is in the ledger
        if gap:
            for record in await asyncio.to_thread(lambda: list(from_ledger(arguments.ledger, chain.sequence))):
                chain.add(record)
                refilled += 1
        else:
            chain.add(message.data)
    print(json.dumps({
        "sequence": chain.sequence, "hash": chain.hash.hex(), "refilled": refilled, "kinds": chain.kinds}))
    await nc.close()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ValueError as error:
        print(f"the history is not whole: {error}", file=sys.stderr)
        sys.exit(1)
