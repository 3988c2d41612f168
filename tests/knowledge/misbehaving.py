"""Misbehaving: a parser process that answers a file by what its name says."""

import json
import os
import signal
import sys
import time
from pathlib import PurePath

from knowledge.parsing import Limits
from knowledge.sandbox.child import limit_cpu_time, peak_memory, receive, send

ANSWERS = {
    "garbage": b"\xff{",
    "strange": b'{"pages": [{"colour": "red"}]}',
    "long": b"x" * 100_000,
    "failed": b'{"failed": "KeyError"}',
    "fine": b'{"pages": [{"content": "Words."}]}',
}


def main() -> None:
    """Serve until told to misbehave for good."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    send(answers, json.dumps(peak_memory()).encode())
    while receive(requests, 1 << 20) is not None:
        about = json.loads(receive(requests, 1 << 20) or b"{}")
        receive(requests, 1 << 20)
        word = PurePath(about.get("name") or about["origin"]).stem
        if word == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "exit":
            sys.exit(3)
        if word == "hang":
            time.sleep(600)
        if word == "busy":
            limit_cpu_time(Limits(seconds=1))
            while True:
                pass
        send(answers, ANSWERS[word])


if __name__ == "__main__":
    main()
