#!/usr/bin/env python3
"""A scheduler: claims room for servers and resizes them, by NATS alone.

    scheduler.py --nats nats://127.0.0.1:4222 --servers 3

It names a query, and the ledger searches, chooses and claims in one step: two schedulers never race,
and nobody loops on conflicts. Then it resizes each server (the ledger tries its own host first, and
keeps alternates) and confirms. Prints a line of JSON for each step.
"""

import argparse
import asyncio
import json
import uuid

import nats

from ledger import command


def tell(step, server, answer):
    """Print what happened."""
    print(json.dumps({
        "step": step,
        "server": server,
        "sequence": answer["sequence"],
        "kinds": [event["header"]["kind"] for event in answer["events"]],
    }), flush=True)


async def claim(nc, server, vcpus):
    """Claim room for a new server on the first host that has it."""
    return await command(nc, "claim", {
        "consumer": server, "project_id": "example", "user_id": "example",
        "consumer_type": "INSTANCE", "candidates": f"resources=VCPU:{vcpus}",
    }, key=f"claim-{server}")


async def resize(nc, server, vcpus):
    """Open the move to another size and claim its destination."""
    return await command(nc, "resize", {
        "consumer": server, "migration": str(uuid.uuid4()), "kind": "resize",
        "candidates": f"resources=VCPU:{vcpus}",
    }, key=f"resize-{server}")


async def main():
    """Claim, resize, confirm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nats", default="nats://127.0.0.1:4222")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--vcpus", type=int, default=2, help="of a new server")
    parser.add_argument("--larger", type=int, default=4, help="vcpus after the resize")
    arguments = parser.parse_args()
    nc = await nats.connect(arguments.nats)
    for _ in range(arguments.servers):
        server = str(uuid.uuid4())
        tell("claim", server, await claim(nc, server, arguments.vcpus))
        tell("resize", server, await resize(nc, server, arguments.larger))
        tell("confirm", server, await command(nc, "confirm", {"consumer": server}, key=f"confirm-{server}"))
    await nc.close()


if __name__ == "__main__":
    asyncio.run(main())
