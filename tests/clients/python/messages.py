"""Messages, receipts and repeats between devices that are connected."""

import os

from world import check, new_id, refused, same, send


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
