"""How each attack that runs inside a sandbox is judged, where `VERDICT SAFE` alone does not do."""

import base64
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest
from harness import host, settings
from harness.client import one_mark_a_run
from harness.waiting import wait_until

MIB = 1 << 20


def seconds(bound):
    return bound * settings.SLACK


def safe(daemon, source):
    answer = daemon.execute(source)
    shown = answer.ok()
    assert shown["exit_code"] == 0, shown
    assert "VERDICT SAFE" in shown["stdout"] and "BREACH" not in shown["stdout"], shown
    return answer


def _no_canary(answer):
    text = json.dumps(answer.json)
    assert settings.CANARY not in text
    for entry in answer.json.get("files", []):
        data = base64.b64decode(entry["content_b64"], validate=True)
        assert settings.CANARY.encode() not in data and b"root:" not in data, entry["path"]


def _on_bare_host(source):
    return subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=60)


_LENT_DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}


def _only_lent_devices(daemon, source):
    """An ordinary user can make no device: five of the host's are bound, each a mount."""
    shown = daemon.execute(source).ok()
    breaches = [line.split() for line in shown["stdout"].splitlines() if "BREACH:" in line]
    assert shown["exit_code"] == 0 and breaches, shown
    for words in breaches:
        assert words[1] == "filesystem" and words[-1] in _LENT_DEVICES, shown


def mount_table(daemon, source):
    (_only_lent_devices if settings.ROOTLESS else safe)(daemon, source)
    before = host.mount_lines()
    for _ in range(50):
        daemon.execute("print(1)").ok()
    wait_until(
        lambda: host.mount_lines() <= before,
        10,
        lambda: f"new mounts on the host: {host.mount_lines() - before}",
    )


def forged_result(daemon, source):
    answer = daemon.execute(source)
    shown = answer.ok()
    assert shown["exit_code"] == 7 and shown["stdout"] == "REAL-OUTPUT\n", shown
    assert b"FORGED" not in answer.body
    assert daemon.execute("print('next')")["stdout"] == "next\n"


def protocol_in_output(daemon, source):
    shown = daemon.execute(source).ok()
    bare = _on_bare_host(source)
    assert shown["exit_code"] == 3
    assert shown["stdout"] == bare.stdout.decode() and shown["stdout"].endswith("\nZ\n")
    assert shown["stderr"] == "timed out after 5s"
    assert shown["sandbox_id"] != "sandbox-forged"


def nothing_of_the_daemon(daemon, source):
    for turn in range(20):
        daemon.execute(f"secret = 'CNRY-{turn:032x}'; print(len(secret))").ok()
    shown = safe(daemon, source).json
    assert "scanned MiB 0" not in shown["stdout"], "the scan read nothing"


def fork_bomb(daemon, source):
    others = []

    def elsewhere():
        for _ in range(2):
            others.append(daemon.execute("print(1)"))

    beside = threading.Thread(target=elsewhere)
    beside.start()
    shown = daemon.execute(source).ok()
    beside.join()
    assert "BREACH" not in shown["stdout"], shown
    assert "VERDICT SAFE" in shown["stdout"] or shown["exit_code"] != 0, shown
    for answer in others:
        assert answer["stdout"] == "1\n" and answer.seconds < seconds(2), answer


def memory_bomb(daemon, source):
    if settings.ROOTLESS:
        pytest.skip("no control group holds the memory of an ordinary user here")
    answer = daemon.execute(source)
    shown = answer.ok()
    assert shown["stdout"].count(".") < 40 and "BREACH" not in shown["stdout"]
    assert answer.seconds < seconds(20)
    assert shown["exit_code"] in (137, 1), shown
    assert "memory" in shown["stderr"].lower(), shown


def disk_fill(daemon, source):
    shown = daemon.execute(source).ok()
    assert "BREACH" not in shown["stdout"]
    assert "VERDICT SAFE" in shown["stdout"] or shown["exit_code"] == 137, shown


def inode_fill(daemon, source):
    answer = daemon.execute(source, timeout_s=25)
    shown = answer.ok()
    assert "BREACH" not in shown["stdout"]
    assert "VERDICT SAFE" in shown["stdout"] or shown["exit_code"] == 137, shown
    assert answer.seconds < seconds(30)
    assert len(shown.get("files", [])) + len(shown.get("files_omitted", [])) <= 2000


def output_flood(daemon, source):
    resident = host.resident_bytes(daemon.pid)
    answer = daemon.execute(source, timeout_s=30)
    shown = answer.ok()
    assert shown["exit_code"] == 4 and answer.seconds < seconds(15)
    for stream in ("stdout", "stderr"):
        assert len(shown[stream]) <= MIB + 200
    assert host.resident_bytes(daemon.pid) - resident < 32 * MIB


def bytes_not_text(daemon, source):
    answer = daemon.execute(source)
    shown = answer.ok()
    assert shown["stdout"].split("<<<")[1].split(">>>")[0] == "€" * 30000
    assert shown["stderr"] == "𝄞" * 20000
    assert "\ufffd" in shown["stdout"] and "\x00" in shown["stdout"] and "\x1b" in shown["stdout"]
    assert b"\\u0000" in answer.body and b"\\u001b" in answer.body.lower()
    assert b"\x00" not in answer.body and b"\x1b" not in answer.body
    bare = _on_bare_host(source).stdout.decode(errors="replace")
    assert one_mark_a_run(shown["stdout"]) == one_mark_a_run(bare)


def closed_streams(daemon, source):
    shown = daemon.execute(source).ok()
    assert shown["exit_code"] == 5 and shown["duration_ms"] >= 3000, shown


def background_child(daemon, source):
    answer = daemon.execute(source)
    shown = answer.ok()
    assert answer.seconds < seconds(3)
    assert shown["exit_code"] == 0 and shown["stdout"] == "main done\n", shown
    wait_until(lambda: not host.marked_processes("SBXMARK-22"), 2, "the child lives on")


def double_fork(daemon, source):
    answer = daemon.execute(source, timeout_s=3)
    shown = answer.ok()
    assert 3.0 <= answer.seconds < seconds(5.0)
    assert shown["exit_code"] == -1 and shown["stderr"] == "timed out after 3s", shown
    wait_until(lambda: not host.marked_processes("SBXMARK-23"), 1, "a grandchild lives on")


def signals(daemon, source):
    answer = daemon.execute(source, timeout_s=3)
    shown = answer.ok()
    assert answer.seconds < seconds(5)
    assert shown["exit_code"] != 0 and "BREACH" not in shown["stdout"], shown
    wait_until(
        lambda: not [
            text
            for text in host.processes(daemon.facts()).values()
            if " T uid " in text
        ],
        5,
        "a stopped process is left",
    )


def respawner(daemon, source):
    answer = daemon.execute(source, timeout_s=3)
    ended = time.monotonic()
    assert answer["exit_code"] == -1 and answer.seconds < seconds(5), answer
    daemon.wait_warm()
    assert time.monotonic() - ended < seconds(10)


def file_zoo(daemon, source):
    answer = daemon.execute(source)
    shown = answer.ok()
    assert answer.seconds < seconds(10) and len(answer.body) < 25_000_000
    assert "VERDICT MADE" in shown["stdout"], shown["stdout"][-1000:] + shown["stderr"][-1000:]
    assert answer.file("good.txt") == b"good"
    _no_canary(answer)
    total = 0
    for entry in shown["files"]:
        size = len(base64.b64decode(entry["content_b64"], validate=True))
        assert size == entry["size"] <= 4 * MIB
        total += size
        assert ".." not in entry["path"].split("/") and not entry["path"].startswith("/")
    assert total <= 16 * MIB
    never = {"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "fifo", "sock", "sparse", "big"}
    assert not never & set(answer.paths())
    assert len(shown["files"]) <= 1000 and len(shown["files_omitted"]) <= 1000
    omitted = answer.omitted()
    assert omitted["big"]["reason"] == "too_large" and omitted["big"]["size"] == 5 * MIB
    assert omitted["fifo"]["reason"] == "not_regular"


def answered_at_once(daemon, source):
    """Whatever lives on in the sandbox can neither hold the answer up nor take the files away."""
    answer = daemon.execute(source, timeout_s=2)
    shown = answer.ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "main done\n", shown
    assert answer.file("kept.txt") == b"kept"
    assert answer.seconds < seconds(4), answer


def answered_soon_after_its_end(daemon, source):
    answer = daemon.execute(source, timeout_s=20)
    shown = answer.ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "main done\n", shown
    assert answer.file("kept.txt") == b"kept"
    assert answer.seconds - shown["duration_ms"] / 1000 < seconds(2), answer


def read_from_full_memory(daemon, source):
    answer = daemon.execute(source, timeout_s=30)
    shown = answer.ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "main done\n", shown
    assert answer.file("kept.txt") == b"kept" and len(answer.file("result.bin")) == 4 * MIB


def counted_by_its_last_thread(daemon, source):
    shown = daemon.execute(source, timeout_s=5).ok()
    assert shown["exit_code"] == 5 and shown["stdout"] == "still here\n", shown
    assert shown["duration_ms"] >= 500, shown


def ended_at_its_deadline(daemon, source):
    answer = daemon.execute(source, timeout_s=1)
    shown = answer.ok()
    assert shown["exit_code"] == -1 and shown["stdout"] == "before\n", shown
    assert shown["stderr"] == "timed out after 1s" and answer.seconds < seconds(3), answer


def one_file_seen(daemon, source):
    assert safe(daemon, source).paths() == ["kept.txt"]


def no_cause_but_its_own(daemon, source):
    shown = daemon.execute(source, timeout_s=30, report=True).ok()
    assert shown["exit_code"] == 0 and shown["stdout"] == "main done\n", shown
    assert shown["end"]["cause"] == "exited" and shown["stderr"] == "", shown


def first_to_go(daemon, source):
    shown = daemon.execute(source).ok()
    # Without this privilege the host's root may only raise it, and zero is where it began.
    warden = (daemon.state / "warden.pid").read_text().strip()
    effective = int(host.status_fields(warden)["CapEff"], 16)
    # Root of a user namespace has every capability, and none that the host's score asks for.
    privileged = effective >> 24 & 1 and not settings.ROOTLESS
    allowed = ("",) if privileged else ("", "lowered to 0\n")
    assert shown["exit_code"] == 0 and shown["stdout"] in allowed, shown


def host_identity(daemon, source):
    shown = json.loads(daemon.execute(source)["stdout"])
    assert shown["hostname"] == "sandbox" != socket.gethostname()
    for name, path in (("machine_id", "/etc/machine-id"), ("etc_hostname", "/etc/hostname")):
        own = pathlib.Path(path).read_text().strip() if os.path.exists(path) else None
        assert not own or shown[name] is None or own not in shown[name], name
    ours = pathlib.Path("/etc/passwd").read_text()
    assert shown["passwd"] != ours and "sandbox" in shown["passwd"]
    assert str(daemon.state) not in json.dumps(shown)
    assert str(settings.IMAGE_STATE) not in json.dumps(shown)
    for name in ("tcp", "arp"):
        assert len((shown[name] or "").splitlines()) <= 1, name
    interfaces = [line.split(":")[0].strip() for line in shown["net"].splitlines()[2:]]
    assert interfaces == ["lo"]
    for name in ("cmdline", "partitions"):
        assert not (shown[name] or "").strip(), f"/proc/{name} tells {shown[name]!r}"
    assert all(line.split(":", 2)[2] == "/" for line in shown["cgroup"].splitlines())
    assert "SBX_TEST_CANARY" not in shown["env"]


CHECKS = {
    "A07": mount_table,
    "A11": forged_result,
    "A12": protocol_in_output,
    "A13": nothing_of_the_daemon,
    "A14": fork_bomb,
    "A15": memory_bomb,
    "A16": disk_fill,
    "A17": inode_fill,
    "A19": output_flood,
    "A20": bytes_not_text,
    "A21": closed_streams,
    "A22": background_child,
    "A23": double_fork,
    "A24a": signals,
    "A24b": signals,
    "A24c": signals,
    "A24d": signals,
    "A24e": signals,
    "A25": respawner,
    "A26": file_zoo,
    "A35": host_identity,
    "B01": answered_at_once,
    "B02": answered_at_once,
    "B03": answered_at_once,
    "B06": counted_by_its_last_thread,
    "B07": ended_at_its_deadline,
    "B08": answered_at_once,
    "B09": one_file_seen,
    "B10": no_cause_but_its_own,
    "B11": first_to_go,
    "B13": answered_soon_after_its_end,
    "B14": read_from_full_memory,
}
