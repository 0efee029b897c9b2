# Uploads to paths that climb, are absolute, empty or too long, and broken lists of files.
esc = [
    "../x",
    "/etc/x",
    "a/../../x",
    "./../x",
    "a//..//../x",
    "..",
    ".",
    "",
    "/",
    "x\x00y",
    "../" * 40 + "tmp/x",
    "a/./../../x",
    "....//x/../../..",
    "/proc/self/environ",
    "~/../x",
    "a/" * 3000 + "x",
    "n" * 300,
]
for p in esc:
    st, b, dt = ex(
        'import os\nprint([sorted(os.listdir(d)) for d in (".", "..", "/tmp")])',
        files=[{"path": p, "content_b64": base64.b64encode(b"pwn").decode()}],
    )
    if st == 200:
        bad("accepted", repr(p)[:60], str(b)[:120])
    elif st not in (400, 413, 422, 502):
        bad("status", st, repr(p)[:60])
    elif p.startswith("../x") and "file path escapes working directory" not in json.dumps(b):
        bad("message", b)
for p in ("a/b/c.txt", "a/./b.txt", "ünï/ç.txt", "sp ace.txt", "..hidden", "a..b"):
    st, b, dt = ex(
        f"print(open({p!r}).read())",
        files=[{"path": p, "content_b64": base64.b64encode(b"fine").decode()}],
    )
    if st != 200 or "fine" not in b.get("stdout", ""):
        bad("good path refused", p, st, b)
for bodyf in (
    [{"path": "a", "content_b64": "!!!"}],
    [{"path": "a"}],
    [{"content_b64": ""}],
    ["a"],
    {"path": "a"},
    [{"path": 1, "content_b64": 2}],
    [{"path": "a", "content_b64": "QQ"}],
    [{"path": "a", "content_b64": "QQ=="}, {"path": "a/b", "content_b64": "QQ=="}],
    [{"path": "d/x", "content_b64": "QQ=="}, {"path": "d", "content_b64": "QQ=="}],
):
    st, b, dt = ex("print(1)", files=bodyf)
    if st in (0, 500, 503):
        bad("files", str(bodyf)[:60], st, b)
verdict()
