"""A run that is followed: the events of POST /v1/execute as they come."""

import base64
import dataclasses
import json
import socket

from harness.client import strict_json

TYPES = ("start", "stdout", "stderr", "file", "exit", "error")


@dataclasses.dataclass
class Event:
    id: int
    type: str
    data: dict

    @property
    def bytes(self):
        """What a piece of output, or a file, holds."""
        if "text" in self.data:
            assert list(self.data) == ["text"]
            return self.data["text"].encode()
        return base64.b64decode(self.data["content_b64" if self.type == "file" else "b64"])


class Stream:
    """One request on a connection of its own; nothing is read before it is asked for.

    `receive_bytes` makes the kernel's buffer on this side small, for a reader that is slow.
    """

    def __init__(self, client, code, receive_bytes=None, version="1.1", patience_s=90, **fields):
        body = json.dumps({"code": code, **fields}).encode()
        head = (
            f"POST /v1/execute HTTP/{version}\r\nHost: {client.host}:{client.port}\r\n"
            f"Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.link = socket.socket()
        if receive_bytes:
            self.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.link.settimeout(patience_s)
        self.link.connect((client.host, client.port))
        self.link.sendall(head.encode() + body)
        self.buffer = bytearray()
        self.text = bytearray()  # of the body, without its chunks
        self.head = None
        self.whole = False  # the body said that it has ended
        self.comments = 0
        self.last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()

    def _fill(self):
        part = self.link.recv(1 << 18)
        self.buffer += part
        return bool(part)

    def _until(self, mark):
        start = 0
        while (at := self.buffer.find(mark, start)) < 0:
            start = max(0, len(self.buffer) - len(mark))
            if not self._fill():
                return None
        taken = bytes(self.buffer[:at])
        del self.buffer[: at + len(mark)]
        return taken

    def read_head(self):
        if self.head is None:
            text = self._until(b"\r\n\r\n")
            assert text is not None, "the connection ended without an answer"
            first, *lines = text.decode("latin-1").split("\r\n")
            self.status = int(first.split(" ")[1])
            self.head = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        return self.head

    def plain(self):
        """The object of an answer that is no stream."""
        size = int(self.read_head()["content-length"])
        while len(self.buffer) < size and self._fill():
            pass
        return strict_json(bytes(self.buffer[:size]))

    def _more_text(self):
        if self.whole:
            return False
        if "chunked" not in self.read_head().get("transfer-encoding", ""):
            if self.buffer:
                self.text += self.buffer
                self.buffer.clear()
                return True
            self.whole = not self._fill()
            return not self.whole
        line = self._until(b"\r\n")
        if line is None:
            return False
        size = int(line, 16)
        while len(self.buffer) < size + 2:
            if not self._fill():
                return False
        assert self.buffer[size : size + 2] == b"\r\n"
        self.text += self.buffer[:size]
        del self.buffer[: size + 2]
        self.whole = size == 0
        return not self.whole

    def next(self):
        """The next event; None when there is none any more."""
        while True:
            while (at := self.text.find(b"\n\n")) < 0:
                if not self._more_text():
                    return None
            block = bytes(self.text[:at]).decode()
            del self.text[: at + 2]
            if block.startswith(":"):
                self.comments += 1
                continue
            names, values = zip(*(line.split(": ", 1) for line in block.split("\n")), strict=True)
            assert names == ("id", "event", "data"), names
            self.last_id += 1
            assert int(values[0]) == self.last_id and values[1] in TYPES, values[:2]
            return Event(self.last_id, values[1], strict_json(values[2]))

    def __iter__(self):
        while (event := self.next()) is not None:
            yield event


@dataclasses.dataclass
class Followed:
    """A whole stream, sorted."""

    types: list
    stdout: bytes
    stderr: bytes
    files: dict
    start: dict
    last: Event

    @property
    def exit(self):
        assert self.last.type == "exit", self.last
        return self.last.data


def follow(stream):
    """Reads to the end and checks what holds for every stream."""
    stream.read_head()
    assert stream.status == 200, stream.plain()
    assert stream.head["content-type"] == "text/event-stream"
    assert stream.head["cache-control"] == "no-store"
    events = list(stream)
    assert stream.whole, "the stream broke off"
    assert not stream.text, stream.text
    types = [event.type for event in events]
    assert types[0] == "start" and types[-1] in ("exit", "error"), types
    assert not {"start", "exit", "error"} & set(types[1:-1]), types
    files = [event for event in events if event.type == "file"]
    for event in files:
        assert event.data["size"] == len(event.bytes)
    output = {
        name: b"".join(event.bytes for event in events if event.type == name)
        for name in ("stdout", "stderr")
    }
    return Followed(
        types,
        **output,
        files={event.data["path"]: event.bytes for event in files},
        start=events[0].data,
        last=events[-1],
    )
