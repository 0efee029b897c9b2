"""Attacks warden/warden_end.cc (kWorkEmpty): the size of a tmpfs directory counts its entries. One
file that must be seen, after every way to make, exchange, replace and link that could upset it."""

guard()
empty = os.stat("/work").st_size
os.makedirs("/tmp/other/d")
for turn in range(50):
    os.mkdir("/work/d")
    open("/work/a", "w").close()
    sc(316, -100, b"/work/a", -100, b"/tmp/other/d", 2)  # RENAME_EXCHANGE
    sc(316, -100, b"/work/d", -100, b"/work/w", 4)  # RENAME_WHITEOUT
    fd = sc(257, -100, b"/work", 0o20200000 | os.O_RDWR, 0o600)[0]  # O_TMPFILE
    if fd >= 0:
        for name in ("l", "m"):
            sc(265, -100, b"/proc/self/fd/%d" % fd, -100, b"/work/" + name.encode(), 0x400)
        os.close(fd)
    for where in ("/work", "/tmp/other"):
        for name in os.listdir(where):
            path = where + "/" + name
            try:
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
            except OSError as error:
                bad("cannot remove", path, error)
    os.makedirs("/tmp/other/d", exist_ok=True)
    if os.stat("/work").st_size != empty:
        bad("an empty directory of size", os.stat("/work").st_size)
open("/work/kept.txt", "w").write("kept")
verdict()
