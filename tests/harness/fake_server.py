"""A server that answers each run as a test says, byte for byte: also as no real one would."""

import contextlib
import json
import socket
import threading


def event(name, data, number=1):
    text = data if isinstance(data, str) else json.dumps(data)
    return f"id: {number}\nevent: {name}\ndata: {text}\n\n".encode()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EXIT = event("exit", {"exit_code": 0, "end": {"cause": "exited", "cpu_ms": 1}})


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream(*events):
    """A whole answer, each event in a chunk of its own."""
    return HEAD + b"".join(chunk(one) for one in events) + b"0\r\n\r\n"


def plain(status, value):
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class FakeServer:
    """`answer` is bytes, or a function of the connection and the request's body."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []  # (head, body)
        self.left = threading.Event()  # a client has closed its side
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(20)

    def _serve(self):
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.settimeout(30)
                self._one(link)

    def _one(self, link):
        data = b""
        while b"\r\n\r\n" not in data:
            data += link.recv(65536)
        head, body = data.split(b"\r\n\r\n", 1)
        size = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        while len(body) < size:
            body += link.recv(1 << 20)
        self.requests.append((head.decode(), body))
        if callable(self.answer):
            self.answer(link, body)
        else:
            link.sendall(self.answer)
        link.shutdown(socket.SHUT_WR)
        while link.recv(65536):
            pass
        self.left.set()
