"""Opening a connection, and what its token is good for."""

import time
import uuid

import websockets

from throng import Device
from world import check, new_id, refused, same


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
