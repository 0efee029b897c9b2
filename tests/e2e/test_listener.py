"""The internal and the public listener as HTTP servers: routes, methods, headers, hostile bytes."""

import concurrent.futures
import os
import re
import socket

import pytest
from harness import settings
from harness.client import status_of, upload

GOOD = b'{"code":"print(1)"}'


def post(extra=b"", body=GOOD, length=None, host=b"localhost"):
    size = len(body) if length is None else length
    return (
        b"POST /v1/execute HTTP/1.1\r\nHost: "
        + host
        + b"\r\n"
        + extra
        + b"Content-Length: "
        + str(size).encode()
        + b"\r\nConnection: close\r\n\r\n"
        + body
    )


def test_every_answer_has_a_request_id(daemon):
    seen = set()
    for method, path, body in (
        ("POST", "/v1/execute", {"code": "print(1)"}),
        ("POST", "/v1/execute", {"code": ""}),
        ("POST", "/v1/execute", b"{"),
        ("GET", "/v1/execute", None),
        ("GET", "/v1/pool", None),
        ("GET", "/nowhere", None),
        ("GET", "/healthz", None),
    ):
        identifier = daemon.internal.request(method, path, body).headers["X-Request-Id"]
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", identifier), (path, identifier)
        seen.add(identifier)
    assert len(seen) == 7


@pytest.mark.parametrize("given", ["abc", "A.b_c-9", "x" * 64])
def test_a_usable_request_id_is_kept(daemon, given):
    answer = daemon.internal.request(
        "POST", "/v1/execute", {"code": ""}, headers={"X-Request-Id": given}
    )
    assert answer.headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["x" * 65, "a b", "a/b", "a;b", "é".encode().decode("latin1")])
def test_any_other_request_id_is_replaced(daemon, given):
    answer = daemon.internal.request(
        "POST", "/v1/execute", {"code": ""}, headers={"X-Request-Id": given}
    )
    assert answer.headers["X-Request-Id"] != given
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answer.headers["X-Request-Id"])


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_only_post_executes(daemon, method):
    answer = daemon.internal.request(method, "/v1/execute")
    assert answer.status == 405 and answer.error == "method not allowed"
    assert "POST" in answer.headers.get("Allow", "POST")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_only_get_reads_the_pool(daemon, method):
    assert daemon.internal.request(method, "/v1/pool").status == 405


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/execute/", "/v1/executes", "/v1/../v1/pool"])
def test_other_paths_are_not_found(daemon, path):
    answer = daemon.internal.get(path)
    assert answer.status == 404 and answer.error


@pytest.mark.parametrize(
    "path", ["/v1/execute", "/v1/pool", "/v1/call", "/metrics", "/healthz", "/readyz", "/"]
)
def test_the_public_listener_has_nothing_yet(daemon, path):
    for method in ("GET", "POST"):
        answer = daemon.public.request(method, path, b"{}" if method == "POST" else None)
        assert answer.status == 404 and answer.error, (method, answer)
        assert answer.headers["X-Request-Id"]


@pytest.mark.parametrize("host", [b"evil.example", b"localhost.evil.example", b"10.0.0.1", b""])
def test_a_foreign_host_is_refused(daemon, host):
    for listener in (daemon.internal, daemon.public):
        answer = listener.raw(post(host=host))
        assert status_of(answer) in ((403,) if host else (400, 403)), answer[:200]
        if host:
            assert b"host not allowed" in answer


@pytest.mark.parametrize(
    "host", [b"localhost", b"127.0.0.1", b"[::1]", b"localhost:99", b"LOCALHOST"]
)
def test_names_of_this_machine_are_allowed(daemon, host):
    assert status_of(daemon.internal.raw(post(host=host))) == 200


@pytest.mark.parametrize(
    "origin, status",
    [
        (b"http://evil.example", 403),
        (b"null", 403),
        (b"http://localhost:3000", 200),
        (b"http://127.0.0.1", 200),
    ],
)
def test_a_web_page_elsewhere_cannot_post(daemon, origin, status):
    answer = daemon.internal.raw(post(b"Origin: " + origin + b"\r\n"))
    assert status_of(answer) == status, answer[:200]
    if status == 403:
        assert b"origin not allowed" in answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"Transfer-Encoding: chunked\r\n"),
        post(b"Content-Length: 19\r\n"),
        post(b"Content-Length: 5\r\n"),
        post(length="+19"),
        post(length="19, 19"),
        post(length="0x13"),
        post(b"Transfer-Encoding: gzip, chunked\r\n"),
        post(b"X: a\r\n b\r\n"),
        post(b"X : a\r\n"),
        post(b"X\x00: a\r\n"),
        post(b"X: a\x00b\r\n"),
        post(b"Host: localhost\r\n"),
        b"POST /v1/execute HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST /v1/execute HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n",
        b"POST  /v1/execute HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        post(b"X: " + b"a" * 40_000 + b"\r\n"),
        post(b"".join(b"X%d: y\r\n" % turn for turn in range(120))),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=lambda data: repr(data[:60] if len(data) < 300 else data[:30]),
)
def test_what_is_not_strict_http(daemon, request_bytes):
    answer = daemon.internal.raw(request_bytes)
    assert status_of(answer) in (400, 413, 414, 431, 501), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1, "the connection went on after a broken request"


def test_smuggled_requests_are_not_answered(daemon):
    inner = b"GET /v1/pool HTTP/1.1\r\nHost: localhost\r\n\r\n"
    data = (
        b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner
    )
    answer = daemon.internal.raw(data)
    assert b"created_total" not in answer


def test_a_chunked_body_is_fine(daemon):
    data = (
        b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n"
        + GOOD[:5]
        + b"\r\n"
        + f"{len(GOOD) - 5:x}\r\n".encode()
        + GOOD[5:]
        + b"\r\n0\r\n\r\n"
    )
    answer = daemon.internal.raw(data, timeout_s=20)
    assert status_of(answer) in (200, 411), answer[:200]


def test_a_connection_is_kept_alive(daemon):
    link = daemon.internal.connect()
    try:
        for turn in range(5):
            assert daemon.execute(f"print({turn})", connection=link)["stdout"] == f"{turn}\n"
            assert daemon.internal.get("/v1/pool", connection=link).status == 200
    finally:
        link.close()


def test_two_requests_sent_at_once_are_answered_in_order(daemon):
    first = post(body=b'{"code":"print(11)"}').replace(b"Connection: close\r\n", b"")
    second = post(body=b'{"code":"print(22)"}')
    answer = daemon.internal.raw(first + second, timeout_s=20)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"11\\n") < answer.index(b"22\\n")


def test_a_body_that_comes_byte_by_byte(daemon):
    head, body = post().split(b"\r\n\r\n")
    with socket.create_connection((daemon.internal.host, daemon.internal.port), 20) as link:
        link.sendall(head + b"\r\n\r\n")
        for byte in body:
            link.sendall(bytes([byte]))
        answer = b""
        while part := link.recv(4096):
            answer += part
    assert status_of(answer) == 200


def test_expect_continue(daemon):
    head, body = post(b"Expect: 100-continue\r\n").split(b"\r\n\r\n")
    with socket.create_connection((daemon.internal.host, daemon.internal.port), 20) as link:
        link.sendall(head + b"\r\n\r\n")
        first = link.recv(4096)
        assert first.startswith(b"HTTP/1.1 100"), first
        link.sendall(body)
        answer = b""
        while part := link.recv(4096):
            answer += part
    assert b" 200 " in answer.split(b"\r\n")[0]


def test_a_body_over_the_limit(daemon):
    size = 33_554_432 + 1
    answer = daemon.internal.raw(post(body=b"", length=size))
    assert status_of(answer) == 413
    assert b'"request body is larger than 33554432 bytes"' in answer


def test_a_body_over_the_limit_that_is_sent_in_full(daemon):
    body = b'{"code":"' + b"#" * 34_000_000 + b'"}'
    answer = daemon.internal.raw(post(body=body), timeout_s=20)
    assert status_of(answer) == 413, answer[:200]


def test_the_body_limit_is_a_setting(own_daemon):
    here = own_daemon(sets={"execute.body_bytes_max": 2000})
    at_limit = b'{"code":"print(1)","x":"' + b"a" * (2000 - 26) + b'"}'
    assert len(at_limit) == 2000
    assert here.internal.request("POST", "/v1/execute", at_limit).status == 200
    over = here.internal.request("POST", "/v1/execute", at_limit + b" ")
    assert over.status == 413 and over.error == "request body is larger than 2000 bytes"


def test_health(daemon):
    assert daemon.internal.get("/healthz").status == 200
    assert daemon.internal.get("/readyz").status == 200


def test_metrics(daemon):
    before = daemon.metric("hutch_runs_total")
    daemon.execute("print(1)").ok()
    answer = daemon.internal.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")
    text = answer.body.decode()
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-zA-Z_:][\w:]*(\{.*\})? \S+", line), line
    assert "pool" in text
    assert daemon.metric("hutch_runs_total") == before + 1


def test_the_description_of_the_api(daemon):
    answer = daemon.internal.get("/openapi.yaml")
    assert answer.status == 200 and b"openapi: 3.0.3" in answer.body
    assert answer.body == (settings.ROOT / "spec" / "openapi.yaml").read_bytes()


def test_large_bodies_at_once(daemon):
    """What fits into the memory for bodies is answered, the rest is refused at once with a 503."""
    content = upload("f", os.urandom(20_000_000))
    code = "import os; print(os.path.getsize('f'))"
    with concurrent.futures.ThreadPoolExecutor(12) as crew:
        answers = list(crew.map(lambda _: daemon.execute(code, files=[content]), range(12)))
    good = [answer for answer in answers if answer.status == 200]
    assert len(good) >= 8, [(answer.status, answer.body[:80]) for answer in answers]
    assert all(answer["stdout"] == "20000000\n" for answer in good)
    for answer in answers:
        assert answer.status in (200, 503) and (answer.status == 200 or answer.error)


@pytest.mark.parametrize(
    "line, statuses",
    [
        (b"GET /v1/pool HTTP/2.0", (400, 505)),
        (b"GET http://evil.example/v1/pool HTTP/1.1", (400, 403)),
        (b"GET /v1/%70ool HTTP/1.1", (200, 400, 404)),
        (b"GET //v1/pool HTTP/1.1", (400, 404)),
        (b"GET /v1/pool?a=b HTTP/1.1", (200,)),
        (b"GET /v1/pool#a HTTP/1.1", (400, 404)),
        (b"CONNECT localhost:80 HTTP/1.1", (400, 404, 405)),
        (b"TRACE /v1/pool HTTP/1.1", (405, 501)),
        (b"get /v1/pool HTTP/1.1", (400, 405, 501)),
    ],
)
def test_odd_request_lines(daemon, line, statuses):
    answer = daemon.internal.raw(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert status_of(answer) in statuses, answer[:200]


def test_two_hundred_requests_sent_at_once(daemon):
    one = b"GET /v1/pool HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert daemon.internal.raw(one * 199 + last).count(b"HTTP/1.1 200 OK") == 200


def test_head_has_no_body(daemon):
    answer = daemon.internal.raw(
        b"HEAD /v1/pool HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert status_of(answer) in (200, 405) and answer.endswith(b"\r\n\r\n")
