#!/usr/bin/env python3
"""A scheduler: claims room for servers and resizes them, by NATS alone.

    scheduler.py --nats nats://127.0.0.1:4222 --servers 3

It asks for candidates, hands them to the ledger as an ordered list of options, and takes what the
ledger chose: two schedulers never race, and nobody loops on conflicts. Then it resizes each server
(the ledger tries its own host first) and confirms. Prints a line of JSON for each step.
"""

import argparse
import asyncio
import json
import uuid

import nats

from ledger import Refused, command, query


def options(found):
    """The candidates of an answer as options of a command."""
    return [
        {provider: dict(part["resources"]) for provider, part in request["allocations"].items()}
        for request in found["allocation_requests"]
    ]


def tell(step, server, answer):
    """Print what happened."""
    first = answer["events"][0]
    print(json.dumps({
        "step": step,
        "server": server,
        "sequence": first["header"]["sequence"],
        "kind": first["header"]["kind"],
        "option": first["body"].get("option"),
    }), flush=True)


async def claim(nc, server, vcpus):
    """Claim room for a new server on the best host that has it."""
    found = await query(nc, "candidates", resources=f"VCPU:{vcpus}", limit=100)
    return await command(nc, "claim", {
        "consumer": server, "project_id": "example", "user_id": "example",
        "consumer_type": "INSTANCE", "options": options(found),
    }, key=f"claim-{server}")


async def resize(nc, server, vcpus):
    """Move a server to another size: its holding goes to a migration, and it claims anew."""
    found = await query(nc, "candidates", resources=f"VCPU:{vcpus}", limit=100)
    await command(nc, "move_to_migration", {
        "consumer": server, "migration": str(uuid.uuid4()), "kind": "resize",
    }, key=f"resize-{server}-open")
    try:
        return await command(nc, "claim", {
            "consumer": server, "project_id": "example", "user_id": "example",
            "consumer_type": "INSTANCE", "options": options(found),
        }, key=f"resize-{server}-claim")
    except Refused:
        await command(nc, "revert", {"consumer": server, "reason": "no room"}, key=f"resize-{server}-revert")
        raise


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
