"""What the checks share: tokens, people who did not exist before, and ways to say what is expected."""

import shlex
import subprocess
import time
import uuid

import jwt

from throng import Device, Refused, Rest

CHECKS = []


def check(what):
    """Registers a check under the sentence that it prints."""

    def register(function):
        CHECKS.append((what, function))
        return function

    return register


class Tokens:
    """Makes tokens, with a secret or by asking a command."""

    def __init__(self, arguments):
        self.command = shlex.split(arguments.token_command) if arguments.token_command else None
        self.audience = arguments.audience
        self.secret = None
        if arguments.secret_file:
            with open(arguments.secret_file, "rb") as file:
                self.secret = file.read()
            # A file that is text is taken without its line end.
            if self.secret.isascii():
                self.secret = self.secret.rstrip(b"\r\n")

    def make(self, user, device, ttl=3600):
        if self.command:
            asked = [*self.command, "--user", user, "--device", str(device), "--ttl", f"{ttl}s"]
            return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        return self.sign({"sub": user, "dev": device}, ttl)

    def sign(self, claims, ttl=3600):
        now = int(time.time())
        usual = {"sid": str(uuid.uuid4()), "iat": now, "exp": now + ttl, "aud": self.audience}
        return jwt.encode({**usual, **claims}, self.secret, algorithm="HS256")


class Person:
    """A user who did not exist before."""

    def __init__(self, world):
        self.world = world
        self.id = str(uuid.uuid4())
        self.rest = Rest(world.base, self.token(0))

    def token(self, device, ttl=3600):
        return self.world.tokens.make(self.id, device, ttl)

    async def device(self, number=1, caught_up=True):
        """A connected device, caught up unless something is pending that the check wants to see."""
        device = await Device.connected(self.world.base, self.token(number), self.world.encoding)
        self.world.opened.append(device)
        if caught_up:
            await device.push("caught_up")
        return device


class World:
    def __init__(self, base, tokens, encoding):
        self.base = base
        self.tokens = tokens
        self.encoding = encoding
        self.opened = []

    def people(self, count):
        return [Person(self) for _ in range(count)]

    async def pair(self):
        """Two people in a direct conversation, one connected device each, nothing pending."""
        alice, bob = self.people(2)
        a, b = await alice.device(), await bob.device()
        conv = await alice.rest.create("direct", bob.id)
        for device in (a, b):
            await device.push("message", conv=conv, seq=1)
            await device.command("recv", conv=conv, seq=1)
        return alice, bob, a, b, conv

    async def leave(self):
        for device in self.opened:
            await device.close()
        self.opened.clear()


def new_id():
    return str(uuid.uuid4())


def same(got, expected, what="value"):
    if got != expected:
        raise AssertionError(f"{what}: {got!r}, and not {expected!r}")


async def refused(awaitable, name, code, *parts):
    """The command is refused with this row of the table; the message names these parts."""
    try:
        answer = await awaitable
    except Refused as error:
        same((error.name, error.code), (name, code), "refusal")
        for part in parts:
            if part not in error.message:
                raise AssertionError(f"{part!r} is not named in {error.message!r}")
        return error
    raise AssertionError(f"answered with {answer}, and not refused as {name}")


async def send(device, conv, payload, client_id=None):
    return await device.command("send", conv=conv, client_id=client_id or new_id(), payload=payload)
