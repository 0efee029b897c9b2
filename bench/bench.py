"""A first figure: how long a run takes through HTTP, beside what it is compared with.

Everything is measured in one go on one machine, because a figure says something only beside
another of the same minute. Each row stops at its count or its time, whichever comes first.

  build/venv/bin/python bench/bench.py [--seconds S] [--count N] [--set key=value]... [--json FILE]
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from harness import settings  # noqa: E402  (needs the path above)
from harness.daemon import Daemon, StartFailed, run_hutch  # noqa: E402

GAP_S = 0.15
CLIENTS = 4

WORK = {
    "print": "print(2**32)",
    "pandas": (
        "import pandas as pd\n"
        "frame = pd.DataFrame({'kind': list('abcab') * 200, 'value': range(1000)})\n"
        "print(frame.groupby('kind').value.agg(['mean', 'sum']).round(2))\n"
    ),
}


def quantile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def summary(seconds, wall_s):
    """Milliseconds and runs a second of one row."""
    ordered = sorted(seconds)
    return {
        "count": len(ordered),
        "p50_ms": round(quantile(ordered, 0.50) * 1000, 3),
        "p99_ms": round(quantile(ordered, 0.99) * 1000, 3),
        "max_ms": round(ordered[-1] * 1000, 3),
        "runs_per_s": round(len(ordered) / wall_s, 2),
    }


class Bound:
    """When a row ends."""

    def __init__(self, count, seconds):
        self.count = count
        self.seconds = seconds

    def turns(self):
        started = time.monotonic()
        for turn in range(self.count):
            if turn > 4 and time.monotonic() - started > self.seconds:
                return
            yield turn


def in_turn(bound, act, before=lambda: None):
    """One after the other; `before` is outside of what is measured, but not of runs a second."""
    taken, started = [], time.monotonic()
    for _ in bound.turns():
        before()
        start = time.perf_counter()
        act()
        taken.append(time.perf_counter() - start)
    return summary(taken, time.monotonic() - started)


def side_by_side(bound, make_act, clients=CLIENTS):
    """`clients` threads, each with an act of its own, until the bound of all together."""
    taken, guard, turns = [], threading.Lock(), iter(bound.turns())
    failures = []

    def client():
        act = make_act()
        while True:
            with guard:
                if failures or next(turns, None) is None:
                    return
            start = time.perf_counter()
            try:
                act()
            except Exception as error:
                failures.append(error)
                return
            with guard:
                taken.append(time.perf_counter() - start)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return summary(taken, time.monotonic() - started)


def hutch_act(daemon, code):
    """A run over a connection that is kept alive."""
    link = daemon.internal.connect()

    def act():
        answer = daemon.internal.execute(code, connection=link)
        assert answer.status == 200 and answer["exit_code"] == 0, answer.body[:500]

    return act


def command_act(command):
    def act():
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd="/")

    return act


def bubblewrap(root, python):
    """A fresh container without network around `python`, on the host's files or an image's."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    if root is None:
        for name in ("/usr", "/bin", "/lib", "/lib64", "/etc"):
            command += ["--ro-bind-try", name, name]
    else:
        command += ["--ro-bind", str(root), "/"]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    return [*command, "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", python, "-c"]


class ImageRoot:
    """The image's files as a directory: as they are, or mounted read-only for a while."""

    def __init__(self):
        self.root = None
        self._mounted = False

    def __enter__(self):
        done = run_hutch("image", "path", "python", "--state-dir", settings.IMAGE_STATE)
        path = pathlib.Path(done.stdout.strip())
        if done.returncode != 0 or not path.exists():
            return self
        if path.is_dir():
            self.root = path
            return self
        place = tempfile.mkdtemp(prefix="hutch-bench-image-")
        mount = ["mount", "-t", "erofs", "-o", "ro,loop,nosuid,nodev", str(path), place]
        if subprocess.run(mount, capture_output=True).returncode == 0:
            self.root, self._mounted = pathlib.Path(place), True
        else:
            os.rmdir(place)
        return self

    def __exit__(self, *_):
        if self._mounted:
            subprocess.run(["umount", str(self.root)], check=False)
            os.rmdir(self.root)

    def python(self):
        """Where the interpreter is, seen from inside; None when there is no image."""
        if self.root is None:
            return None
        found = sorted(self.root.glob("usr/bin/python3*"), key=lambda path: len(path.name))
        return "/" + str(found[0].relative_to(self.root)) if found else None


def peers(image):
    """{name: command without the code}; those that this machine has."""
    found = {"python3 -c, no isolation": ["/usr/bin/python3", "-c"]}
    found["bubblewrap, the host's python3"] = bubblewrap(None, "/usr/bin/python3")
    if python := image.python():
        found["the image's python3 -c, chroot alone"] = ["chroot", str(image.root), python, "-c"]
        found["bubblewrap, the image's python3"] = bubblewrap(image.root, python)
    return found


def works(command, code):
    try:
        return subprocess.run([*command, code], capture_output=True, cwd="/").returncode == 0
    except OSError:
        return False


def machine():
    model, memory = "unknown", 0
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as lines:
        memory = int(next(lines).split()[1]) // 1024
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_mib": memory,
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def setup_steps(daemon):
    """{step: mean microseconds} of making a sandbox, from the daemon's own histogram."""
    sums, counts = {}, {}
    for line in daemon.internal.get("/metrics").body.decode().splitlines():
        for suffix, target in (("_sum", sums), ("_count", counts)):
            head = f'hutch_setup_step_seconds{suffix}{{step="'
            if line.startswith(head):
                target[line[len(head) :].split('"')[0]] = float(line.rsplit(" ", 1)[1])
    return {step: round(sums[step] / counts[step] * 1e6, 1) for step in sums if counts.get(step)}


def measure_hutch(daemon, bound, rows):
    for name, code in WORK.items():
        act = hutch_act(daemon, code)
        act()
        daemon.wait_warm(30)
        rows[f"hutch, pool full: {name}"] = in_turn(bound, act, lambda: daemon.wait_warm(30))
        rows[f"hutch, {int(GAP_S * 1000)} ms gaps: {name}"] = in_turn(
            bound, act, lambda: time.sleep(GAP_S)
        )
        rows[f"hutch, back to back: {name}"] = in_turn(bound, act)
        rows[f"hutch, {CLIENTS} clients: {name}"] = side_by_side(
            bound, lambda code=code: hutch_act(daemon, code)
        )
        daemon.wait_warm(30)


def measure_peers(image, bound, rows):
    for name, code in WORK.items():
        for peer, command in peers(image).items():
            if not works(command, code):
                continue
            act = command_act([*command, code])
            rows[f"{peer}: {name}"] = in_turn(bound, act)
            rows[f"{peer}, {CLIENTS} clients: {name}"] = side_by_side(bound, lambda act=act: act)


def show(report):
    here = report["machine"]
    print(
        f"{here['processor']}, {here['cores']} cores, {here['memory_mib']} MiB, "
        f"Linux {here['kernel']}, load {here['load_before']}; the load generator shares the cores"
    )
    print(f"\n{'':56}{'p50 ms':>10}{'p99 ms':>10}{'runs/s':>10}{'count':>8}")
    for name, row in report["rows"].items():
        print(
            f"{name:56}{row['p50_ms']:>10.2f}{row['p99_ms']:>10.2f}"
            f"{row['runs_per_s']:>10.1f}{row['count']:>8}"
        )
    if report["setup_steps_us"]:
        print("\nmaking one sandbox, mean of each step in microseconds")
        for step, micros in report["setup_steps_us"].items():
            print(f"  {step:30}{micros:>12.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=6, help="the most for one row")
    parser.add_argument("--count", type=int, default=200, help="the most runs in one row")
    parser.add_argument("--set", action="append", default=[], help="a setting of the daemon")
    parser.add_argument("--json", default=str(ROOT / "build" / "bench.json"))
    given = parser.parse_args()
    sets = dict(setting.split("=", 1) for setting in given.set)
    bound = Bound(given.count, given.seconds)
    report = {"machine": machine(), "settings": sets, "rows": {}}
    try:
        daemon = Daemon(sets=sets).start()
    except StartFailed as failure:
        print(f"the daemon did not start: {failure}", file=sys.stderr)
        return 1
    try:
        report["pool"] = daemon.pool()
        measure_hutch(daemon, bound, report["rows"])
        report["setup_steps_us"] = setup_steps(daemon)
    finally:
        daemon.stop()
        daemon.discard()
    with ImageRoot() as image:
        measure_peers(image, bound, report["rows"])
    show(report)
    path = pathlib.Path(given.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\nwritten to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
