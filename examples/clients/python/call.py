"""Calls a worker from Python: a plain NATS request, no library of ours.

    python call.py [owner/worker] [name]
"""

import asyncio
import json
import os
import sys
import uuid
from datetime import datetime, timedelta, timezone

import nats

TIMEOUT = 10  # seconds


async def main() -> None:
    target = sys.argv[1] if len(sys.argv) > 1 else "dev/hello"
    name = sys.argv[2] if len(sys.argv) > 2 else "Ada"
    owner, worker = target.split("/")

    nc = await nats.connect(
        os.environ.get("NATS_URL", "nats://127.0.0.1:4222"),
        # Inboxes of the owner's own: with users of NATS it may read no others.
        inbox_prefix=f"_INBOX.{owner}",
        # Without NATS this program ends, rather than trying for two minutes.
        max_reconnect_attempts=1,
    )
    try:
        deadline = datetime.now(timezone.utc) + timedelta(seconds=TIMEOUT)
        reply = await nc.request(
            f"pinwheel.call.fetch.{owner}.{worker}",
            json.dumps({"name": name}).encode(),
            timeout=TIMEOUT,
            headers={
                "Http-Method": "POST",
                "Http-Url": "/greetings?lang=en",
                "Http-Header-Content-Type": "application/json",
                # With an Event-Id of your own, a reply and a line in the worker's log can be told to belong together.
                "Event-Id": str(uuid.uuid4()),
                # Past the deadline nobody waits, so an event that has not started by then is not run.
                "Deadline": deadline.isoformat(),
            },
        )
        headers = reply.headers or {}
        if "Error" in headers:
            sys.exit(headers["Error"])  # "reason: message", as in "no-worker: …"
        print(f"status {headers.get('Http-Status')} after {headers.get('Duration-Ms')} ms", file=sys.stderr)
        print(reply.data.decode())
    finally:
        await nc.close()


if __name__ == "__main__":
    asyncio.run(main())
