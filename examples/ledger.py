"""What the examples share: asking the ledger's service on NATS, again under the same key until the outcome is known."""

import asyncio
import json
import uuid

import nats.errors


class Refused(Exception):
    """The ledger said no; nothing was changed."""

    def __init__(self, code, text, error):
        super().__init__(f"{code}: {text}")
        self.code = code
        self.error = error


async def command(nc, name, body, key=None, project="example", actor="example", patience=60.0):
    """Send one command. Whatever is lost on the way, it is carried out once at most."""
    headers = {"Idempotency-Key": key or str(uuid.uuid4()), "X-Project-Id": project, "Alloc-Actor": actor}
    return await ask(nc, f"alloc.v1.command.{name}", body, headers, patience)


async def query(nc, name, patience=60.0, **parameters):
    """Ask what a GET would answer."""
    return await ask(nc, f"alloc.v1.query.{name}", parameters, {}, patience)


async def ask(nc, subject, body, headers, patience):
    """Ask until there is an answer that says what happened."""
    until = asyncio.get_running_loop().time() + patience
    pause = 0.02
    while True:
        try:
            reply = await nc.request(subject, json.dumps(body).encode(), timeout=3, headers=headers)
            code = int((reply.headers or {}).get("Nats-Service-Error-Code", "0"))
            if code == 0:
                return json.loads(reply.data)
            text = reply.headers["Nats-Service-Error"]
            if code != 503:  # 503: nothing was done, or nobody knows: ask again
                raise Refused(code, text, json.loads(reply.data)["errors"][0])
        except (nats.errors.TimeoutError, nats.errors.NoRespondersError):
            text = "no answer"
        if asyncio.get_running_loop().time() > until:
            raise TimeoutError(f"{subject}: {text}")
        await asyncio.sleep(pause)
        pause = min(2 * pause, 2)
