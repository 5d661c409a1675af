"""What is refused, how it is named, and what it spoils."""

import asyncio

import cbor2

from throng import Device
from world import check, new_id, refused, same, send


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
