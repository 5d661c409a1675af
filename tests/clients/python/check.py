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
import shlex
import subprocess
import sys
import time
import uuid

import cbor2
import jwt
import websockets

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
                self.secret = file.read().rstrip(b"\r\n")

    def make(self, user, device, ttl=3600):
        if self.command:
            asked = [*self.command, "--user", user, "--device", str(device), "--ttl", str(ttl)]
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


# ---- opening ---------------------------------------------------------------------------------------------------


@check("connect says who it is and when to come back")
async def connect(world):
    [alice] = world.people(1)
    device = await alice.device(7)
    welcome = device.welcome
    same((welcome["user"], welcome["device"]), (alice.id, 7))
    uuid.UUID(welcome["session"])
    assert abs(welcome["server_time"] - time.time() * 1000) < 60_000, welcome
    assert welcome["ping_ms"] > 0, welcome
    low, high = welcome["reconnect_ms"]
    assert 0 <= low <= high, welcome
    same(await device.command("ping"), {}, "ping")
    await refused(device.command("connect"), "bad_request", 1001)


@check("the token may come with the upgrade")
async def bearer(world):
    [alice] = world.people(1)
    headers = {"Authorization": f"Bearer {alice.token(1)}"}
    device = await Device.open(world.base, world.encoding, headers=headers)
    world.opened.append(device)
    same((await device.command("connect"))["user"], alice.id)


@check("a bad token is refused and the connection closed with 4401")
async def bad_token(world):
    [alice] = world.people(1)
    good = alice.token(1)
    head, claims, signature = good.split(".")
    forged = f"{head}.{claims}.{signature[:5]}{'A' if signature[5] != 'A' else 'B'}{signature[6:]}"
    for token in ("", "nonsense", forged, f"{head}.{claims}."):
        device = await Device.open(world.base, world.encoding)
        await refused(device.command("connect", token=token), "unauthorised", 2001)
        same(await device.closed(), 4401, "close code")
        same(device.disconnect["code"], 4401, "disconnect")
        same(device.disconnect["reconnect"], False, "reconnect")


@check("expired tokens and tokens for somebody else are told apart")
async def claims(world):
    if world.tokens.secret is None:
        return "needs the secret"
    user, now = new_id(), int(time.time())
    for claims, name, code in [
        ({"iat": now - 100, "exp": now - 1}, "token_expired", 2002),
        ({"aud": "somebody-else"}, "unauthorised", 2001),
        ({"dev": "1"}, "unauthorised", 2001),
        ({"exp": "never"}, "unauthorised", 2001),
    ]:
        device = await Device.open(world.base, world.encoding)
        token = world.tokens.sign({"sub": user, "dev": 1, **claims})
        await refused(device.command("connect", token=token), name, code)
        same(await device.closed(), 4401, "close code")


@check("a sub that is no UUID becomes one")
async def foreign_sub(world):
    name = f"somebody-{new_id()}"
    device = await Device.connected(world.base, world.tokens.make(name, 1), world.encoding)
    world.opened.append(device)
    namespace = uuid.UUID("9ea01dcc-0b20-4a0e-9d33-1c6f7b2a5d41")
    same(device.welcome["user"], str(uuid.uuid5(namespace, name)))


@check("upgrades that may not be are refused by status")
async def upgrades(world):
    [alice] = world.people(1)

    async def status(**options):
        try:
            device = await Device.open(world.base, **options)
        except websockets.InvalidStatus as error:
            return error.response.status_code
        await device.close()
        return 101

    same(await status(query=f"?token={alice.token(1)}"), 400, "token in the query")
    same(await status(encoding="yaml"), 400, "unknown subprotocol")
    same(await status(origin="https://evil.example"), 403, "foreign origin")
    same(await status(origin="null"), 403, "origin null")
    same(await status(headers={"Authorization": "Bearer nonsense"}), 401, "bad bearer token")
    same(await status(origin=world.base), 101, "own origin")
    if world.encoding == "json":
        device = await Device.open(world.base, offer=False)
        same(device.socket.subprotocol, None, "subprotocol when none is offered")
        same((await device.command("connect", token=alice.token(1)))["user"], alice.id)
        await device.close()


@check("another verb before connect closes with 4400")
async def before_connect(world):
    device = await Device.open(world.base, world.encoding)
    await device.post("ping")
    same(await device.closed(), 4400, "close code")


# ---- messages --------------------------------------------------------------------------------------------------


@check("a message reaches every other device with its bytes, and the sender gets its place")
async def delivery(world):
    alice, bob, a, b, conv = await world.pair()
    second = await alice.device(2)
    client_id, payload = new_id(), bytes(range(256))
    sent = await send(a, conv, payload, client_id)
    same(sent["seq"], 2, "seq")
    for device in (b, second):
        message = await device.push("message", conv=conv)
        expected = {"conv": conv, "seq": 2, "from": alice.id, "device": 1, "ts": sent["ts"]}
        same(message, {**expected, "client_id": client_id, "payload": payload}, "message")
    await a.no_push("message", conv=conv)
    same((await send(b, conv, b""))["seq"], 3, "seq")
    same((await a.push("message", conv=conv, seq=3))["payload"], b"", "an empty payload")


@check("payloads of every length around a base64 group, and the longest, arrive as they were")
async def payloads(world):
    _, _, a, b, conv = await world.pair()
    for size in (1, 2, 3, 4, 5, 1000, 65_535, 65_536):
        payload = os.urandom(size)
        seq = (await send(a, conv, payload))["seq"]
        same((await b.push("message", conv=conv, seq=seq))["payload"] == payload, True, f"{size} bytes")
        await b.command("recv", conv=conv, seq=seq)
    await refused(send(a, conv, bytes(65_537)), "too_large", 1002, "payload")


@check("recv and read come back to the other side as receipts")
async def receipts(world):
    alice, bob, a, b, conv = await world.pair()
    seq = (await send(a, conv, b"hello"))["seq"]
    await b.push("message", conv=conv, seq=seq)
    same(await b.command("recv", conv=conv, seq=seq), {}, "recv")
    receipt = await a.push("receipt", conv=conv, user=bob.id, delivered=seq)
    assert receipt["read"] < seq, receipt
    same(await b.command("read", conv=conv, seq=seq), {}, "read")
    await a.push("receipt", conv=conv, user=bob.id, delivered=seq, read=seq)
    # Again and backwards: no error, no effect.
    await b.command("recv", conv=conv, seq=1)
    await b.command("read", conv=conv, seq=1)
    await a.no_push("receipt", conv=conv, read=1)


@check("recv beyond the log and read beyond what was received are refused")
async def beyond(world):
    _, _, a, b, conv = await world.pair()
    seq = (await send(a, conv, b"hello"))["seq"]
    await b.push("message", conv=conv, seq=seq)
    await refused(b.command("recv", conv=conv, seq=seq + 1), "bad_request", 1001, "recv")
    await refused(b.command("read", conv=conv, seq=seq), "bad_request", 1001, "read")
    await refused(b.command("read", conv=conv, seq=seq + 1), "bad_request", 1001, "read")


@check("a repeated client_id is stored once, with other bytes refused")
async def client_ids(world):
    alice, bob, a, b, conv = await world.pair()
    client_id = new_id()
    first = await send(a, conv, b"once", client_id)
    again = await send(a, conv, b"once", client_id)
    same(again, {**first, "duplicate": True}, "repeat")
    await refused(send(a, conv, b"twice", client_id), "client_id_reused", 2006)
    # The same from the user's other device, and after the connection was cut.
    other = await alice.device(2)
    same(await send(other, conv, b"once", client_id), {**first, "duplicate": True}, "repeat elsewhere")
    await a.cut()
    a = await alice.device(1)
    same(await send(a, conv, b"once", client_id), {**first, "duplicate": True}, "repeat after reconnect")
    # Somebody else's ids are their own.
    same((await send(b, conv, b"mine", client_id))["seq"], first["seq"] + 1, "seq of the other user")
    await b.push("message", conv=conv, seq=first["seq"])
    await b.no_push("message", conv=conv)


@check("many sends at once keep their order and their places")
async def order(world):
    _, _, a, b, conv = await world.pair()
    posted = [
        await a.post("send", conv=conv, client_id=new_id(), payload=b"%d" % index) for index in range(100)
    ]
    seqs = [(await a.answer(one))["seq"] for one in posted]
    same(seqs, list(range(2, 102)), "seqs")
    for index in range(100):
        same((await b.push("message", conv=conv))["payload"], b"%d" % index, "order")


@check("a passing message reaches who is there, has no place and is not kept")
async def passing(world):
    alice, bob, a, b, conv = await world.pair()
    same(await a.command("send", conv=conv, passing=True, payload=b"now"), {}, "reply")
    message = await b.push("message", conv=conv)
    assert "seq" not in message and "client_id" not in message, message
    same((message["from"], message["device"], message["payload"]), (alice.id, 1, b"now"))
    same((await send(a, conv, b"kept"))["seq"], 2, "seq")
    await b.close()
    await a.command("send", conv=conv, passing=True, payload=b"missed")
    b = await bob.device(caught_up=False)
    same((await b.push("message", conv=conv))["seq"], 2)
    await b.push("caught_up")
    await b.no_push("message", within=0.1)
    both = {"conv": conv, "passing": True, "payload": b"x", "client_id": new_id()}
    await refused(a.command("send", **both), "bad_request", 1001, "client_id")


@check("an outsider can do nothing, and cannot tell what exists")
async def outsider(world):
    _, _, a, _, conv = await world.pair()
    [eve] = world.people(1)
    e = await eve.device()
    for place in (conv, new_id()):
        answers = {
            str(await refused(e.command(verb, conv=place, **fields), "not_member", 2003))
            for verb, fields in [
                ("send", {"client_id": new_id(), "payload": b"x"}),
                ("send", {"passing": True, "payload": b"x"}),
                ("recv", {"seq": 1}),
                ("read", {"seq": 1}),
                ("sync", {"after": 0, "limit": 1}),
            ]
        }
        same(len(answers), 1, f"refusals {answers}")
    status, problem, _ = await eve.rest.ask("POST", f"/v1/conversations/{conv}/members/{eve.id}")
    same((status, problem["code"]), (403, 2003))
    status, problem, _ = await eve.rest.ask("POST", f"/v1/conversations/{new_id()}/members/{eve.id}")
    same((status, problem["code"]), (403, 2003))


@check("what is wrong with a command is named, and spoils no other")
async def strictness(world):
    _, _, a, _, conv = await world.pair()
    await refused(a.command("send", conv=conv, payload=b""), "bad_request", 1001, "client_id")
    await refused(a.command("recv", conv=conv, seq=0), "bad_request", 1001, "seq")
    await refused(a.command("recv", conv=conv, seq=1.5), "bad_request", 1001, "seq")
    await refused(a.command("recv", conv=conv, seq=2**53), "bad_request", 1001, "seq")
    await refused(a.command("recv", conv=conv, seq=None), "bad_request", 1001, "seq")
    await refused(a.command("ping", colour="red"), "bad_request", 1001, "colour")
    await refused(a.command("sync", conv=conv, after=0, limit=257), "bad_request", 1001, "limit")
    await refused(a.command("sing"), "unknown_verb", 1003, "sing")
    await refused(a.command("payloads"), "unknown_verb", 1003)
    # Without an id only failures are answered.
    await a.socket.send(a.encode({"ping": {}}))
    await a.socket.send(a.encode({"sing": {}}))
    same((await a.orphan()).code, 1003)
    same(a.orphans, [])


@check("several commands in one frame are each answered")
async def frames(world):
    [alice] = world.people(1)
    a = await alice.device()
    replies = [asyncio.get_running_loop().create_future() for _ in range(3)]
    for number, reply in zip((900, 901, 902), replies):
        a.replies[number] = reply
    if world.encoding == "json":
        lines = ['{"id":900,"ping":{}}', '{"id":901,"ping":{}', "", "}", ' {"id" : 902, "p\\u0069ng":{} }', ""]
        await a.socket.send("\n".join(lines))
    else:
        items = [{"id": 900, "ping": {}}, {"id": 901, "ping": []}, [], {"id": 902, "ping": {}}]
        await a.socket.send(b"".join(cbor2.dumps(item) for item in items))
    names = [(await asyncio.wait_for(reply, 10))[0] for reply in replies]
    same(names, ["ping", "error", "ping"], "replies")
    same((await a.orphan()).code, 1001, "the one without an id")


@check("frames of the wrong kind and ill-formed bytes close")
async def wrong_frames(world):
    [alice] = world.people(1)
    a = await alice.device()
    if world.encoding == "json":
        await a.socket.send(b'{"id":1,"ping":{}}')
        same(await a.closed(), 1003, "a binary frame")
        return
    await a.socket.send('{"id":1,"ping":{}}')
    same(await a.closed(), 1003, "a text frame")
    for bytes_ in (bytes.fromhex("bf6470696e67a0ff"), bytes.fromhex("a1647069"), b"\xff"):
        a = await alice.device()
        await a.socket.send(bytes_)
        same((await a.orphan()).code, 1001)
        same(await a.closed(), 4400, "ill-formed CBOR")


@check("the two encodings say the same")
async def encodings(world):
    alice, bob, a, b, conv = await world.pair()
    other = "cbor" if world.encoding == "json" else "json"
    second = await Device.connected(world.base, bob.token(2), other)
    world.opened.append(second)
    await second.push("caught_up")
    await send(a, conv, b"\x00\xff binary")
    same(await b.push("message", conv=conv), await second.push("message", conv=conv), "message")
    page = {"conv": conv, "after": 0, "limit": 10}
    same(await b.command("sync", **page), await second.command("sync", **page), "page")


# ---- what waits ------------------------------------------------------------------------------------------------


@check("what was sent to a device that was away is pushed in order, a window at a time")
async def away(world):
    alice, bob, a, b, conv = await world.pair()
    await b.close()
    count = 600
    posted = [
        await a.post("send", conv=conv, client_id=new_id(), payload=b"%d" % index) for index in range(count)
    ]
    last = [(await a.answer(one))["seq"] for one in posted][-1]
    same(last, count + 1, "last seq")
    b = await bob.device(caught_up=False)
    for index in range(256):
        same((await b.push("message", conv=conv))["seq"], index + 2, "seq")
    await b.no_push("message")
    await b.no_push("caught_up", within=0)
    for index in range(256, count):
        if index % 64 == 0:
            await b.command("recv", conv=conv, seq=index + 1)
        message = await b.push("message", conv=conv)
        same((message["seq"], message["payload"]), (index + 2, b"%d" % index), "order")
    await b.push("caught_up")
    await b.command("recv", conv=conv, seq=last)
    # New ones follow directly.
    same((await send(a, conv, b"new"))["seq"], last + 1)
    same((await b.push("message", conv=conv))["seq"], last + 1)


@check("what was not acknowledged is pushed again, what was is not")
async def again(world):
    alice, bob, a, b, conv = await world.pair()
    seqs = [(await send(a, conv, b"%d" % index))["seq"] for index in range(5)]
    for seq in seqs:
        await b.push("message", conv=conv, seq=seq)
    await b.command("recv", conv=conv, seq=seqs[2])
    await b.cut()
    b = await bob.device(caught_up=False)
    same([(await b.push("message", conv=conv))["seq"] for _ in range(2)], seqs[3:], "pushed again")
    await b.push("caught_up")
    await b.no_push("message")
    await b.command("recv", conv=conv, seq=seqs[-1])
    await b.close()
    b = await bob.device()
    await b.no_push("message")


@check("a first device gets everything since its user became a member, a later one starts at the end")
async def first_device(world):
    alice, bob = world.people(2)
    a = await alice.device()
    conv = await alice.rest.create("group", bob.id)
    seqs = [(await send(a, conv, b"%d" % index))["seq"] for index in range(3)]
    b = await bob.device(1, caught_up=False)
    created = await b.push("message", conv=conv)
    same((created["seq"], created["system"]["event"]), (1, "created"))
    same(sorted(created["system"]["users"]), sorted([alice.id, bob.id]))
    same(created["system"]["by"], alice.id)
    same([(await b.push("message", conv=conv))["seq"] for _ in range(3)], seqs, "waiting messages")
    await b.push("caught_up")
    later = await bob.device(2)
    await later.no_push("message")
    same((await send(a, conv, b"new"))["seq"], seqs[-1] + 1)
    same((await later.push("message", conv=conv))["seq"], seqs[-1] + 1)


@check("sync gives the log in pages")
async def sync(world):
    # Carol never connects, so everything is kept.
    alice, bob, carol = world.people(3)
    a = await alice.device()
    conv = await alice.rest.create("group", bob.id, carol.id)
    for index in range(9):
        await send(a, conv, b"%d" % index)
    seen, after = [], 0
    while True:
        page = await a.command("sync", conv=conv, after=after, limit=4)
        same(page["head"], 10, "head")
        assert len(page["messages"]) <= 4, page
        seen += page["messages"]
        if not page["more"]:
            break
        after = page["messages"][-1]["seq"]
    same([message["seq"] for message in seen], list(range(1, 11)), "seqs")
    same([message["payload"] for message in seen[1:]], [b"%d" % index for index in range(9)], "payloads")
    same({message["conv"] for message in seen}, {conv}, "conv")
    empty = await a.command("sync", conv=conv, after=10, limit=4)
    same(empty, {"messages": [], "head": 10, "more": False}, "beyond the end")


@check("the same device connecting again replaces the older connection and loses nothing")
async def takeover(world):
    alice, bob, a, b, conv = await world.pair()
    seqs = []

    async def keep_sending():
        for index in range(60):
            seqs.append((await send(a, conv, b"%d" % index))["seq"])

    sending = asyncio.create_task(keep_sending())
    got, old = {}, b
    for _ in range(3):
        await asyncio.sleep(0.02)
        new = await bob.device(1, caught_up=False)
        same(await old.closed(), 4409, "close code of the older")
        same(old.disconnect["code"], 4409, "disconnect")
        same(old.disconnect["reconnect"], False, "reconnect")
        for name, body in old.pushes:
            if name == "message":
                got[body["seq"]] = body["payload"]
        old = new
    await sending
    while set(seqs) - set(got):
        message = await old.push("message", conv=conv)
        got[message["seq"]] = message["payload"]
    same([got[seq] for seq in seqs], [b"%d" % index for index in range(60)], "messages")


# ---- conversations ---------------------------------------------------------------------------------------------


@check("a direct conversation is the same one for the same pair")
async def direct(world):
    alice, bob = world.people(2)
    wish = {"kind": "direct", "members": [bob.id]}
    status, made, _ = await alice.rest.ask("POST", "/v1/conversations", wish)
    same(status, 201, "status")
    same((made["kind"], sorted(made["members"]), made["head"]), ("direct", sorted([alice.id, bob.id]), 1))
    for person, other in [(bob, alice), (alice, bob)]:
        wish = {"kind": "direct", "members": [person.id, other.id]}
        status, found, _ = await person.rest.ask("POST", "/v1/conversations", wish)
        same((status, found["id"]), (200, made["id"]), "asked for again")
    status, _, _ = await alice.rest.ask("DELETE", f"/v1/conversations/{made['id']}/members/me")
    same(status, 400, "leaving a direct conversation")


@check("the list of conversations is that of the user")
async def listing(world):
    alice, bob, carol = world.people(3)
    direct = await alice.rest.create("direct", bob.id)
    group = await bob.rest.create("group", alice.id, carol.id)
    for person, expected in [(alice, {direct, group}), (bob, {direct, group}), (carol, {group})]:
        status, body, _ = await person.rest.ask("GET", "/v1/conversations")
        same(status, 200, "status")
        same({conversation["id"] for conversation in body["conversations"]}, expected, "ids")
    [of_carol] = [one for one in body["conversations"] if one["id"] == group]
    same((of_carol["kind"], of_carol["head"]), ("group", 1))
    same(sorted(of_carol["members"]), sorted([alice.id, bob.id, carol.id]))


@check("members come, go and leave, and everybody is told in the log")
async def membership(world):
    alice, bob, carol = world.people(3)
    a, b, c = [await person.device() for person in (alice, bob, carol)]
    conv = await alice.rest.create("group", bob.id)
    for device in (a, b):
        push = await device.push("conversation", conv=conv, event="added")
        same((push["kind"], sorted(push["members"]), push["head"]), ("group", sorted([alice.id, bob.id]), 1))
        await device.push("message", conv=conv, seq=1)
    await send(a, conv, b"before carol")
    path = f"/v1/conversations/{conv}/members"
    status, body, _ = await alice.rest.ask("POST", f"{path}/{carol.id}")
    same((status, sorted(body["members"])), (200, sorted([alice.id, bob.id, carol.id])))
    await c.push("conversation", conv=conv, event="added")
    await b.push("conversation", conv=conv, event="changed")
    for device in (a, b, c):
        system = (await device.push("message", conv=conv, seq=3))["system"]
        same(system, {"event": "added", "users": [carol.id], "by": alice.id}, "system")
    await c.no_push("message", within=0.2)
    page = await c.command("sync", conv=conv, after=0, limit=10)
    same([message["seq"] for message in page["messages"]], [3], "what carol may see")
    status, _, _ = await bob.rest.ask("DELETE", f"{path}/{carol.id}")
    same(status, 204, "status")
    await c.push("conversation", conv=conv, event="removed")
    for device in (a, b):
        system = (await device.push("message", conv=conv, seq=4))["system"]
        same(system, {"event": "removed", "users": [carol.id], "by": bob.id}, "system")
    await send(a, conv, b"after carol")
    await c.no_push("message")
    await refused(send(c, conv, b"still here?"), "not_member", 2003)
    await refused(c.command("sync", conv=conv, after=0, limit=10), "not_member", 2003)
    status, problem, _ = await alice.rest.ask("DELETE", f"{path}/{carol.id}")
    same((status, problem["code"]), (404, 2004), "removing who is gone")
    status, _, _ = await bob.rest.ask("DELETE", f"{path}/me")
    same(status, 204, "status")
    system = (await a.push("message", conv=conv, seq=6))["system"]
    same(system, {"event": "left", "users": [bob.id], "by": bob.id}, "system")


@check("REST refuses in the words of the table")
async def problems(world):
    alice, bob = world.people(2)
    for rest, method, path, body, status, code in [
        (Rest(world.base, None), "GET", "/v1/conversations", None, 401, 2001),
        (Rest(world.base, "nonsense"), "GET", "/v1/conversations", None, 401, 2001),
        (alice.rest, "POST", "/v1/conversations", b"{", 400, 1001),
        (alice.rest, "POST", "/v1/conversations", {"kind": "party", "members": [bob.id]}, 400, 1001),
        (alice.rest, "POST", "/v1/conversations", {"kind": "direct", "members": ["bob"]}, 400, 1001),
        (alice.rest, "POST", "/v1/conversations", {"kind": "group", "members": [], "colour": 1}, 400, 1001),
        (alice.rest, "POST", f"/v1/conversations/nonsense/members/{bob.id}", None, 400, 1001),
    ]:
        got, problem, kind = await rest.ask(method, path, body)
        same((got, kind), (status, "application/problem+json"), f"{method} {path} {body}: {problem}")
        same(problem["code"], code, f"code of {problem}")
        assert problem["name"] and problem["status"] == status, problem


# ---- tokens ----------------------------------------------------------------------------------------------------


@check("refresh extends the session of the same device and no other")
async def refresh(world):
    alice, bob = world.people(2)
    a = await alice.device()
    before = time.time() * 1000
    answer = await a.command("refresh", token=alice.token(1, ttl=7200))
    assert before + 7_000_000 < answer["expires_at"] < before + 7_400_000, answer
    for token in (bob.token(1), alice.token(2), "nonsense"):
        await refused(a.command("refresh", token=token), "unauthorised", 2001)
    same(await a.command("ping"), {}, "ping")


@check("a session ends with its token, with notice, unless refreshed")
async def expiry(world):
    alice, bob = world.people(2)
    short = await Device.connected(world.base, alice.token(1, ttl=4), world.encoding)
    kept = await Device.connected(world.base, bob.token(1, ttl=4), world.encoding)
    world.opened += [short, kept]
    notice = await short.push("token_expiring")
    assert abs(notice["expires_at"] - time.time() * 1000) < 10_000, notice
    await kept.push("token_expiring")
    await kept.command("refresh", token=bob.token(1))
    same(await short.closed(), 4401, "close code")
    same(short.disconnect["code"], 4401, "disconnect")
    same(await kept.command("ping"), {}, "ping")


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
