"""Conversations over REST, and how their members hear of it."""

from throng import Rest
from world import check, refused, same, send


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
