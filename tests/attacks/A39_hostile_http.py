# Broken JSON and broken HTTP: an answer in the right shape, quickly, and never a 5xx.
COMMON = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TA}\r\n"
H = f"POST {R['execute']} {COMMON}Content-Type: application/json\r\n"
bodies = {
    "depth": b'{"code":' + b"[" * 200000,
    "depth_ok": b'{"code":"print(1)","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "dup": b'{"code":"print(1)","code":"print(2)"}',
    "trail": b'{"code":"print(1)"}x',
    "nan": b'{"code":"print(1)","timeout_s":NaN}',
    "inf": b'{"code":"print(1)","timeout_s":1e999}',
    "neg": b'{"code":"print(1)","timeout_s":-1}',
    "float": b'{"code":"print(1)","timeout_s":1.5}',
    "str": b'{"code":"print(1)","timeout_s":"5"}',
    "bool": b'{"code":"print(1)","timeout_s":true}',
    "big": b'{"code":"print(1)","timeout_s":18446744073709551617}',
    "zero": b'{"code":"print(1)","timeout_s":0}',
    "61": b'{"code":"print(1)","timeout_s":61}',
    "null": b'{"code":null}',
    "arr": b"[]",
    "empty": b"",
    "utf8": b'{"code":"\xff\xfe"}',
    "surr": b'{"code":"print(\'\\ud800\')"}',
    "nul": b'{"code":"print(1)\\u0000print(2)"}',
    "bom": b'\xef\xbb\xbf{"code":"print(1)"}',
    "lang": b'{"code":"1","language":"ruby\\n\\u001b[2J"}',
    "proto": b'{"__proto__":{},"code":"print(1)"}',
    "num": b'{"code":' + b"9" * 100000 + b"}",
    "comment": b'{"code":"print(1)"/**/}',
}
must = {
    "zero": 200,
    "61": 400,
    "neg": 400,
    "dup": 400,
    "depth": 400,
    "trail": 400,
    "nan": 400,
    "arr": 400,
    "empty": 400,
    "utf8": 400,
    "lang": 400,
    "null": 400,
    "big": 400,
    "str": 400,
    "bool": 400,
    "num": 400,
    "comment": 400,
}
for n, d in bodies.items():
    st, b, dt = call(R["execute"], raw=d, timeout=30)
    if st in (0, 500, 502, 503) or dt > 10:
        bad(n, st, str(b)[:80], dt)
    if n in must and st != must[n]:
        bad(n, "want", must[n], "got", st, str(b)[:80])
    if st >= 400 and (not isinstance(b, dict) or "error" not in b):
        bad(n, 'error is not {"error":...}', str(b)[:60])
for n, req, want in (
    ("no_len", H.encode() + b'\r\n{"code":"1"}', (400, 411)),
    ("neg_len", H.encode() + b"Content-Length: -1\r\n\r\n", (400,)),
    ("huge_len", H.encode() + b"Content-Length: 99999999999999999999\r\n\r\n", (400, 413)),
    ("big_decl", H.encode() + b"Content-Length: 1073741824\r\n\r\n", (413, 400)),
    ("hdr1m", H.encode() + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n", (400, 431)),
    (
        "hdr10k",
        H.encode() + b"".join((b"X%d: y\r\n" % k for k in range(10000))) + b"\r\n",
        (400, 431),
    ),
    (
        "get",
        f"GET {R['execute']} {COMMON}Connection: close\r\n\r\n".encode(),
        (405,),
    ),
    ("garbage", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", (400, None)),
    (
        "trav",
        f"GET /v1/%2e%2e/%2e%2e/etc/passwd {COMMON}Connection: close\r\n\r\n".encode(),
        (400, 401, 404),
    ),
):
    o = raw_http(req)
    st = int(o.split()[1]) if o[:5] == b"HTTP/" else None
    if st not in want:
        bad(n, "want", want, "got", st, o[:60])
verdict()
