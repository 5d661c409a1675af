"""What waits for a device that is away, and what a new connection gets."""

import asyncio

from world import check, new_id, same, send


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
