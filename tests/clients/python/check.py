#!/usr/bin/env python3
"""Checks a running throng server by what docs/protocol.md promises, with libraries nobody at throng wrote.

    check.py BASE_URL --secret-file FILE            # an HS256 secret; tokens are made with PyJWT
    check.py BASE_URL --token-command 'throng token --data DIR'

Each check uses people and conversations of its own, so it can run against a server with other users. One line
a check; the first failure ends the run.
"""

import argparse
import asyncio
import os
import sys

# Each of these registers its checks.
import opening  # noqa: F401
import messages  # noqa: F401
import strictness  # noqa: F401
import waiting  # noqa: F401
import conversations  # noqa: F401
from world import CHECKS, Tokens, World


async def run(arguments):
    passed = skipped = 0
    tokens = Tokens(arguments)
    for encoding in arguments.encodings.split(","):
        world = World(arguments.base.rstrip("/"), tokens, encoding)
        for what, function in CHECKS:
            if arguments.only and function.__name__ not in arguments.only.split(","):
                continue
            try:
                reason = await asyncio.wait_for(function(world), 60)
            except Exception as error:  # Whatever it is, it is the check's answer.
                print(f"FAIL python {encoding}: {what}\n     {type(error).__name__}: {error}", flush=True)
                if arguments.trace:
                    raise
                print(f"{passed} passed, 1 failed", flush=True)
                return 1
            await world.leave()
            if reason:
                skipped += 1
                print(f"skip python {encoding}: {what} ({reason})", flush=True)
            else:
                passed += 1
                print(f"ok   python {encoding}: {what}", flush=True)
    print(f"{passed} passed, 0 failed, {skipped} skipped", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", metavar="BASE_URL", help="such as http://127.0.0.1:7000")
    secret, command = os.environ.get("THRONG_SECRET_FILE"), os.environ.get("THRONG_TOKEN_COMMAND")
    source = parser.add_mutually_exclusive_group(required=not (secret or command))
    source.add_argument("--secret-file", default=secret)
    source.add_argument("--token-command", default=command)
    parser.add_argument("--audience", default=os.environ.get("THRONG_AUDIENCE", "throng"))
    parser.add_argument("--encodings", default="json,cbor")
    parser.add_argument("--only", help="names of checks, separated by commas")
    parser.add_argument("--trace", action="store_true", help="show where a failure happened")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
