# Stands in front of every attack that is made over HTTP, beside the daemon.
import base64, json, os, socket, subprocess, sys, threading, time
import urllib.error, urllib.parse, urllib.request

URL = os.environ.get("SBX_URL", "http://127.0.0.1:8080")
IURL = os.environ.get("SBX_INTERNAL_URL", "http://127.0.0.1:8700")
INTERNAL = ("/v1/execute", "/v1/pool", "/v1/call")
TA = os.environ.get("SBX_TOKEN_A", "")


def base(path):
    return IURL if path.split("?")[0] in INTERNAL else URL


R = dict(execute="/v1/execute", pool="/v1/pool")


def call(path, body=None, tok=None, raw=None, timeout=90, method="POST", headers=None):
    data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    q = urllib.request.Request(base(path) + path, data=data, method=method)
    q.add_header("Content-Type", "application/json")
    t = TA if tok is None else tok
    if t:
        q.add_header("Authorization", "Bearer " + t)
    for k, v in (headers or {}).items():
        q.add_header(k, v)
    t0 = time.time()
    try:
        with urllib.request.urlopen(q, timeout=timeout) as r:
            st, b = (r.status, r.read())
    except urllib.error.HTTPError as e:
        st, b = (e.code, e.read())
    except Exception as e:
        return (0, repr(e), time.time() - t0)
    try:
        b = json.loads(b)
    except Exception:
        pass
    return (st, b, time.time() - t0)


def ex(code, **kw):
    return call(R["execute"], dict(code=code, **kw))


def raw_http(data, wait=5):
    u = urllib.parse.urlsplit(
        base(data.split()[1].decode("latin1") if len(data.split()) > 1 else "")
    )
    s = socket.create_connection((u.hostname, u.port or 80), timeout=wait)
    out = b""
    try:
        s.sendall(data)
        while True:
            c = s.recv(65536)
            if not c:
                break
            out += c
    except Exception:
        pass
    s.close()
    return out


BAD = []


def bad(*w):
    BAD.append(" ".join(map(str, w))[:600])


def verdict():
    for b in BAD[:60]:
        print("  BREACH:", b)
    print("VERDICT", "BREACH" if BAD else "SAFE", flush=True)
