# Leaves links, devices, sockets, holes, odd names, deep trees and too many files behind.
import socket


def T(f, *a):
    try:
        f(*a)
    except Exception as e:
        print(getattr(f, "__name__", f), a[:1], type(e).__name__, e)


open("good.txt", "w").write("good")
for t, n in (
    ("/etc/shadow", "s1"),
    ("/etc/sbx-canary", "s2"),
    ("/proc/1/environ", "s3"),
    ("/proc/self/mem", "s4"),
    ("/dev/zero", "s5"),
    ("..", "s6"),
    ("s7", "s7"),
    ("/dev/stdin", "s8"),
):
    T(os.symlink, t, n)
T(os.link, "/etc/passwd", "h1")
T(os.mkfifo, "fifo")
T(os.mknod, "dev", 0o20666, os.makedev(1, 5))
T(os.mknod, "blk", 0o60666, os.makedev(8, 0))
s = socket.socket(socket.AF_UNIX)
T(s.bind, "sock")
f = open("sparse", "wb")
T(f.truncate, 1 << 40)
f.close()
open("noperm", "w").write("x")
os.chmod("noperm", 0)
os.makedirs("locked")
open("locked/in", "w").write("x")
os.chmod("locked", 0)
for n in (
    b"nl\nname",
    b"\xff\xfe",
    b"x" * 255,
    b"..x",
    b"a\\..\\b",
    b" ",
    b"-rf",
    b"\x1b[2J",
    "\u202egnp.exe".encode(),
):
    T(lambda n: open(n, "wb").write(b"n"), n)
d = "."
for i in range(300):
    d += "/d"
    T(os.mkdir, d)
T(lambda: open(d + "/deep", "w").write("deep"))
for i in range(3000):
    open(f"m{i}", "w").close()
open("big", "wb").write(b"B" * (5 << 20))
for i in range(6):
    open(f"three{i}", "wb").write(b"3" * (3 << 20))
print("VERDICT MADE")
