"""HTTP as a client of the product speaks it: one connection a request, or one kept alive."""

import base64
import dataclasses
import http.client
import json
import re
import socket
import time
import urllib.parse

from harness import settings


def _no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError(f"a key stands twice in an answer: {keys}")
    return dict(pairs)


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def strict_json(text):
    """Parses what a strict parser accepts: UTF-8, no key twice, no NaN."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def one_mark_a_run(text):
    """How many U+FFFD stand for one broken sequence is not promised; that one stands there is."""
    return re.sub("\ufffd+", "\ufffd", text)


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes
    seconds: float
    waived: tuple = ()  # limits that this answer says are not held

    @property
    def json(self):
        return strict_json(self.body)

    @property
    def error(self):
        """The message of an error answer, which has this one key and no other."""
        value = self.json
        assert list(value) == ["error"] and isinstance(value["error"], str), value
        return value["error"]

    def ok(self):
        """The object of a 200, else a failure that shows the answer."""
        assert self.status == 200, f"{self.status}: {self.body[:600]!r}"
        return self.json

    def __getitem__(self, key):
        return self.ok()[key]

    def file(self, path):
        """The bytes of one returned file."""
        for entry in self.ok().get("files", []):
            if entry["path"] == path:
                return base64.b64decode(entry["content_b64"], validate=True)
        raise AssertionError(f"{path} did not come back: {self.paths()}")

    def paths(self):
        return [entry["path"] for entry in self.ok().get("files", [])]

    def omitted(self):
        return {entry["path"]: entry for entry in self.ok().get("files_omitted", [])}


def upload(path, content):
    """One entry of a request's `files`."""
    if isinstance(content, str):
        content = content.encode()
    return {"path": path, "content_b64": base64.b64encode(content).decode()}


def without_waiver(answer, report):
    """The answer as a server gives it that holds every limit, and `waived` beside it: what a test
    says of an answer is the same for root and for an ordinary user."""
    if answer.status != 200:
        return answer
    value = answer.json
    end = value["end"]
    answer.waived = tuple(end.pop("waived", ()))
    dropped = "stdout_bytes" in value
    if answer.waived and not report and not dropped and end["cause"] in ("exited", "timeout"):
        del value["end"]
    answer.body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return answer


class Client:
    """Speaks to one listener."""

    def __init__(self, url, timeout_s=120):
        parts = urllib.parse.urlsplit(url)
        self.url = url
        self.host, self.port = parts.hostname, parts.port
        self.timeout_s = timeout_s

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)

    def request(self, method, path, body=None, headers=None, connection=None):
        """`body` is bytes, or a value that is sent as JSON."""
        given = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        link = connection or self.connect()
        started = time.monotonic()
        try:
            link.request(method, path, body=body, headers=given)
            reply = link.getresponse()
            data = reply.read()
            return Answer(reply.status, reply.headers, data, time.monotonic() - started)
        finally:
            if connection is None:
                link.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def execute(self, code, connection=None, **fields):
        body = {"code": code, **fields}
        answer = self.request("POST", "/v1/execute", body, connection=connection)
        return without_waiver(answer, fields.get("report")) if settings.ROOTLESS else answer

    def pool(self):
        return self.get("/v1/pool").ok()

    def begin_execute(self, code, **fields):
        """Sends a run and does not wait: the socket on which its answer comes."""
        body = json.dumps({"code": code, **fields}).encode()
        head = (
            f"POST /v1/execute HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        link = socket.create_connection((self.host, self.port), timeout=self.timeout_s)
        link.sendall(head.encode() + body)
        return link

    def raw(self, data, timeout_s=10):
        """Sends bytes as they are; everything that comes back until the end or the time is up."""
        parts = []
        with socket.create_connection((self.host, self.port), timeout=timeout_s) as link:
            try:
                link.sendall(data)
                while part := link.recv(65536):
                    parts.append(part)
            except OSError:
                pass
        return b"".join(parts)


def status_of(raw_answer):
    """The status of a raw answer; None when there was none."""
    if not raw_answer.startswith(b"HTTP/1."):
        return None
    return int(raw_answer.split(b" ", 2)[1])
