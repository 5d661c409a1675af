"""A small throng client, written from docs/protocol.md: one connection of one device, in JSON or CBOR."""

import asyncio
import base64
import io
import itertools
import json
import urllib.error
import urllib.request
import uuid

import cbor2
import websockets

# How long an answer or a push may take before it counts as missing.
PATIENCE = 10.0

IDS = {"conv", "from", "user", "client_id", "session", "by"}
ID_LISTS = {"users", "members"}


class Refused(Exception):
    """An error reply."""

    def __init__(self, error):
        super().__init__(f"{error['code']} {error['name']}: {error['message']}")
        self.code = error["code"]
        self.name = error["name"]
        self.message = error["message"]
        self.temporary = error["temporary"]
        self.retry_after_ms = error["retry_after_ms"]


class Closed(Exception):
    """The connection is over."""

    def __init__(self, code, disconnect):
        super().__init__(f"closed with {code}")
        self.code = code
        self.disconnect = disconnect


def to_cbor(value, name=None):
    """A command's value as CBOR wants it: ids as 16 bytes."""
    if isinstance(value, dict):
        return {key: to_cbor(inner, key) for key, inner in value.items()}
    if name in IDS and isinstance(value, str):
        return uuid.UUID(value).bytes
    return value


def from_cbor(value, name=None):
    if isinstance(value, dict):
        return {key: from_cbor(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [str(uuid.UUID(bytes=inner)) if name in ID_LISTS else from_cbor(inner) for inner in value]
    if name in IDS:
        return str(uuid.UUID(bytes=value))
    return value


def to_json(value):
    """A command's value as JSON wants it: payloads in base64."""
    if isinstance(value, dict):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def from_json(value, name=None):
    if isinstance(value, dict):
        return {key: from_json(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [from_json(inner) for inner in value]
    if name == "payload":
        return base64.b64decode(value, validate=True)
    return value


class Device:
    """One connection. Replies are matched by id; pushes wait in order until somebody asks for them."""

    def __init__(self, socket, encoding):
        self.socket = socket
        self.encoding = encoding
        self.ids = itertools.count(1)
        self.replies = {}
        self.pushes = []
        self.orphans = []
        self.disconnect = None
        self.news = asyncio.Condition()
        self.reader = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, base, encoding="json", offer=True, headers=None, origin=None, query=""):
        url = base.replace("http", "ws", 1) + "/v1/socket" + query
        socket = await websockets.connect(
            url,
            subprotocols=[f"throng.v1.{encoding}"] if offer else None,
            additional_headers=headers or {},
            origin=origin,
            compression=None,
            max_size=None,
        )
        return cls(socket, encoding)

    @classmethod
    async def connected(cls, base, token, encoding="json"):
        """Opened and connected; `device.welcome` is the reply."""
        device = await cls.open(base, encoding)
        device.welcome = await device.command("connect", token=token)
        return device

    async def _read(self):
        try:
            async for frame in self.socket:
                for item in self._items(frame):
                    await self._take(item)
        except websockets.ConnectionClosed:
            pass
        async with self.news:
            self.news.notify_all()
        for reply in self.replies.values():
            if not reply.done():
                reply.set_exception(self._closed())
                reply.exception()

    def _items(self, frame):
        if self.encoding == "json":
            if not isinstance(frame, str):
                raise AssertionError("a binary frame on a JSON connection")
            return [from_json(json.loads(line)) for line in frame.split("\n") if line.strip()]
        if not isinstance(frame, bytes):
            raise AssertionError("a text frame on a CBOR connection")
        items, stream = [], io.BytesIO(frame)
        decoder = cbor2.CBORDecoder(stream)
        while stream.tell() < len(frame):
            items.append(from_cbor(decoder.decode()))
        return items

    async def _take(self, item):
        number = item.pop("id", None)
        [(name, body)] = item.items()
        async with self.news:
            if number is not None:
                self.replies[number].set_result((name, body))
            elif name == "error":
                self.orphans.append(Refused(body))
            else:
                if name == "disconnect":
                    self.disconnect = body
                self.pushes.append((name, body))
            self.news.notify_all()

    def _closed(self):
        return Closed(self.socket.close_code, self.disconnect)

    def encode(self, item):
        return json.dumps(to_json(item)) if self.encoding == "json" else cbor2.dumps(to_cbor(item))

    async def post(self, verb, **fields):
        """Sends a command and returns its reply to come."""
        number = next(self.ids)
        reply = asyncio.get_running_loop().create_future()
        self.replies[number] = reply
        try:
            await self.socket.send(self.encode({"id": number, verb: fields}))
        except websockets.ConnectionClosed:
            raise self._closed() from None
        return verb, number, reply

    async def answer(self, posted):
        verb, number, reply = posted
        try:
            name, body = await asyncio.wait_for(reply, PATIENCE)
        except asyncio.TimeoutError:
            raise AssertionError(f"no answer to {verb}") from None
        del self.replies[number]
        if name == "error":
            raise Refused(body)
        if name != verb:
            raise AssertionError(f"{verb} was answered by {name}")
        return body

    async def command(self, verb, **fields):
        return await self.answer(await self.post(verb, **fields))

    def _find(self, name, wanted):
        for index, (other, body) in enumerate(self.pushes):
            if other == name and all(body.get(key) == value for key, value in wanted.items()):
                return index
        return None

    async def push(self, name, **wanted):
        """The first push of that name with these values, waiting for it if need be. Takes it out of the line."""

        def there():
            return self._find(name, wanted) is not None or self.reader.done()

        async with self.news:
            try:
                await asyncio.wait_for(self.news.wait_for(there), PATIENCE)
            except asyncio.TimeoutError:
                raise AssertionError(f"no push {name} {wanted}; there are {self.pushes}") from None
            index = self._find(name, wanted)
            if index is None:
                raise self._closed()
            return self.pushes.pop(index)[1]

    async def no_push(self, name, within=0.4, **wanted):
        """Nothing of the kind comes for a while."""
        await asyncio.sleep(within)
        index = self._find(name, wanted)
        if index is not None:
            raise AssertionError(f"a push that should not be: {self.pushes[index]}")

    async def orphan(self):
        """The next error without an id."""
        async with self.news:
            await asyncio.wait_for(self.news.wait_for(lambda: self.orphans or self.reader.done()), PATIENCE)
            if not self.orphans:
                raise self._closed()
            return self.orphans.pop(0)

    async def closed(self):
        """Waits until the server has closed, and returns the code."""
        await asyncio.wait_for(self.socket.wait_closed(), PATIENCE)
        await self.reader
        return self.socket.close_code

    async def close(self):
        await self.socket.close()
        await self.reader

    async def cut(self):
        """Drops the connection without a word."""
        self.socket.transport.abort()
        await self.reader


class Rest:
    """The conversations of one user, over HTTP."""

    def __init__(self, base, token):
        self.base = base
        self.token = token

    def _ask(self, method, path, body):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None, answer.headers.get_content_type()
        except urllib.error.HTTPError as error:
            text = error.read()
            kind = error.headers.get_content_type()
            return error.code, json.loads(text) if "json" in kind else text, kind

    async def ask(self, method, path, body=None):
        """Status, body and content type."""
        return await asyncio.to_thread(self._ask, method, path, body)

    async def create(self, kind, *members):
        status, body, _ = await self.ask("POST", "/v1/conversations", {"kind": kind, "members": list(members)})
        if status not in (200, 201):
            raise AssertionError(f"creating a conversation: {status} {body}")
        return body["id"]
