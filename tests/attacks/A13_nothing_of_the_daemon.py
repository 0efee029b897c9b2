# Looks for the daemon's canary in the environment and in all of its own memory.
import re

pat = re.compile(b"CNRY-[0-9a-f]{32}")
okenv = re.compile(
    "^(PATH|HOME|PWD|OLDPWD|SHLVL|_|LANG|LC_.*|TZ|TERM|USER|LOGNAME|TMPDIR|HOSTNAME|"
    "PYTHON.*|MPL.*|OMP_NUM_THREADS|OPENBLAS_NUM_THREADS|MKL_NUM_THREADS|SANDBOX_ID)$"
)
for k, v in os.environ.items():
    if not okenv.match(k):
        bad("env name", k)
    if pat.search((k + "=" + v).encode("utf8", "surrogateescape")):
        bad("canary in env", k)
raw = open("/proc/self/environ", "rb").read()
if pat.search(raw):
    bad("canary in /proc/self/environ")
hits = tot = 0
mem = open("/proc/self/mem", "rb", 0)
for l in open("/proc/self/maps"):
    a, perm, *rest = l.split()
    lo, hi = (int(x, 16) for x in a.split("-"))
    if perm[0] != "r" or "[v" in l:
        continue
    if perm[1] == "w" and perm[3] == "s":
        bad("writable shared mapping", l.strip())
    off = lo
    while off < hi:
        try:
            mem.seek(off)
            d = mem.read(min(1 << 20, hi - off))
        except (OSError, ValueError, OverflowError):
            break
        if not d:
            break
        m = pat.search(d)
        if m:
            hits += 1
        tot += len(d)
        off += len(d)
print("scanned MiB", tot >> 20)
if hits:
    bad("canary found in memory", hits, "times")
verdict()
