"""A real start and a real run, call by call, against what `hutch plan --json` has said before.

The whole server runs under strace from its first instruction; without root, under a strace of
root's, because newuidmap has its privilege only there. Between its clone and its report, a
process of the sandbox side makes the calls of its part of the plan, in that order, and no other.
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import tempfile
import unittest.mock

import planned_calls
import pytest
import strace_log
from harness import daemon, settings
from harness.client import upload
from harness.daemon import Daemon, run_hutch
from planned_calls import Reader, quoted

SETS = {"pool.target": 1, "pool.ceiling": 1, "limits.memory_bytes": "300MiB", "limits.cpus": 1.5}
CODE = "open('made.txt', 'w').write('made'); print('done')"
MOUNTING = {
    "mount", "umount2", "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount",
    "open_tree", "mount_setattr", "chroot",
}  # fmt: skip
ATTRIBUTES = {"ro": "RDONLY", "nosuid": "NOSUID", "nodev": "NODEV", "noexec": "NOEXEC",
              "noatime": "NOATIME"}  # fmt: skip


def start_traced(path):
    strace = ["strace", "-f", "-qq", "-s", "4096", "-e", "abbrev=!execve", "-o", str(path)]
    plain = daemon.command_line
    traced = unittest.mock.patch.object(
        daemon, "command_line", lambda *arguments: strace + plain(*arguments)
    )
    with traced:
        return Daemon(SETS).start()


def from_the_server_on(calls):
    """Without what is done before the program is Hutch, and by whom it never is."""
    starts = [at for at, call in enumerate(calls) if '"serve"' in call.arguments]
    starts = [at for at in starts if calls[at].name == "execve" and calls[at].result == 0]
    return calls[starts[-1] + 1 :] if starts else calls


class Trace:
    """The plan, the log of one run, and who is who in it."""

    def __init__(self):
        path = pathlib.Path(tempfile.mkstemp(prefix="hutch-strace-")[1])
        here = start_traced(path)
        arguments = ["--state-dir", here.state, "--json"]
        for key, value in here.sets.items():
            arguments += ["--set", f"{key}={value}"]
        self.plan = json.loads(run_hutch("plan", *arguments).stdout)
        try:
            self.answer = here.internal.execute(CODE, files=[upload("sent.txt", b"sent")])
        finally:
            self.server = (here.state / "server.pid").read_text().strip()
            self.warden = str(here.warden_pid)
            # The process that was started is strace, which would let go of all others.
            os.kill(int(self.server), signal.SIGTERM)
            self.status = here.wait()
            here.discard()
        self.calls = {
            who: from_the_server_on(calls)
            for who, calls in strace_log.read(path).items()
            if not any(call.arguments.startswith(quoted("/usr/bin/mount")) for call in calls)
        }
        path.unlink()

    def those_who(self, does):
        return [who for who, calls in self.calls.items() if any(does(call) for call in calls)]

    def one_who(self, does):
        found = self.those_who(does)
        assert found, "nobody"
        return found[0]

    def reader(self, who, name):
        return Reader(self.calls[who], f"{name} ({who})")

    @property
    def anchor(self):
        return self.one_who(
            lambda call: call.name == "execveat" and '["hutch-guest", "anchor"]' in call.arguments
        )

    @property
    def launcher(self):
        return self.one_who(
            lambda call: call.name == "execveat" and '["hutch-guest", "launcher"]' in call.arguments
        )

    @property
    def init(self):
        return self.one_who(
            lambda call: call.name == "unshare" and call.arguments == "CLONE_NEWCGROUP"
        )

    @property
    def program(self):
        start = quoted(self.plan["execute"][0]["source"])
        return self.one_who(
            lambda call: call.name == "execve" and call.arguments.startswith(start)
        )

    @property
    def couriers(self):
        """Who joins a sandbox, comes as far as its filter, and is no program.

        The program of the pool's next sandbox may be stopped half way, with the server.
        """
        joined = self.those_who(
            lambda call: call.name == "setns"
            and "CLONE_NEWNS" in call.arguments
            and "CLONE_NEWPID" not in call.arguments
        )
        filtered = self.those_who(lambda call: call.name == "seccomp")
        programs = self.those_who(lambda call: call.name in ("keyctl", "execve"))
        return [who for who in joined if who in filtered and who not in programs]


@pytest.fixture(scope="module")
def trace():
    return Trace()


def test_the_run_was_a_good_one(trace):
    assert trace.answer.ok()["stdout"] == "done\n" and trace.answer.paths() == ["made.txt"]
    assert trace.status == 0
    assert trace.plan["rootless"] is settings.ROOTLESS and trace.plan["fit"] is True


def signals_back(reader, *names):
    for name in names:
        reader.take("rt_sigaction", re.compile(rf"{name}, .*"))


def test_the_zone(trace):
    reader = trace.reader(trace.anchor, "anchor")
    planned_calls.follow(reader, trace.plan["zone"], trace.plan)
    start = r'\d+, "", \["hutch-guest", "anchor"\], (\[\]|0x\w+ /\* 0 vars \*/), AT_EMPTY_PATH'
    reader.take("execveat", re.compile(start))


def test_init(trace):
    reader = trace.reader(trace.init, "init")
    signals_back(reader, "SIGPIPE", "SIGCHLD")
    reader.take("rt_sigprocmask", "SIG_BLOCK, [CHLD], NULL, 8")
    planned_calls.follow(reader, trace.plan["init"], trace.plan)
    reader.take("sendmsg", re.compile(r"3, .*SCM_RIGHTS, cmsg_data=\[4\].*"), None)
    reader.take("close", "4")
    rest = {call.name for call in reader.calls[reader.at :]}
    assert rest <= {"wait4", "ppoll", "read", "exit_group", "rt_sigreturn"}, rest


def test_the_program(trace):
    reader = trace.reader(trace.program, "program")
    signals_back(reader, "SIGPIPE")
    planned_calls.follow(reader, trace.plan["program"], trace.plan)
    reader.take("sendmsg", re.compile(r"4, .*"), None)
    planned_calls.follow(reader, trace.plan["execute"], trace.plan)


def test_couriers(trace):
    assert len(trace.couriers) == 2
    for who in trace.couriers:
        reader = trace.reader(who, "courier")
        signals_back(reader, "SIGPIPE")
        planned_calls.follow(reader, trace.plan["courier"], trace.plan)
        reader.take("sendmsg", re.compile(r"4, .*"), None)
        reader.take("close", "4")


@pytest.mark.parametrize("part", ["zone", "init", "program"])
def test_a_plan_that_lacks_a_step_is_told_from_the_real_one(trace, part):
    who = {"zone": trace.anchor, "init": trace.init, "program": trace.program}[part]
    for missing in range(len(trace.plan[part])):
        steps = trace.plan[part][:missing] + trace.plan[part][missing + 1 :]
        reader = trace.reader(who, part)
        reader.at = {"zone": 0, "init": 3, "program": 1}[part]
        with pytest.raises(AssertionError):
            planned_calls.follow(reader, steps, trace.plan)
            assert reader.peek().name in ("sendmsg", "execveat"), "something more was done"


def as_template_step(call):
    """A call of the warden in the words of the plan; None where it is a part of another."""
    texts = re.findall(r'"([^"]*)"|NULL', call.arguments)
    if call.name == "unshare":
        return ("namespace", "", "", "mnt")
    if call.name == "mount" and "MS_PRIVATE" in call.arguments:
        return ("private", "", "/", "")
    if call.name == "mount" and "MS_BIND" in call.arguments:
        return ("bind", texts[0], texts[1], "")
    if call.name == "mount":
        assert texts[0] == texts[2] == "tmpfs" and ", MS_NOSUID, " in call.arguments, call
        return ("tmpfs", "", texts[1], texts[3])
    if call.name in ("mknod", "mknodat"):
        assert re.search(r"S_IFCHR\|0666, makedev\((0x)?1, ", call.arguments), call
        return ("device", "", texts[0], "")
    if call.name == "mount_setattr":
        return ("restrict", "", texts[0], attribute_words(call.arguments))
    if call.name == "move_mount":
        return ("image", "", texts[1], "")
    assert call.name in ("fsopen", "fsconfig", "fsmount"), call
    return None


def attribute_words(arguments):
    names = set(re.findall(r"MOUNT_ATTR_(\w+)", arguments.split("attr_clr")[0]))
    words = [word for word, name in ATTRIBUTES.items() if name in names]
    assert len(words) == len(names), arguments
    return ",".join(words)


def without_second_tries(calls):
    """A flag that is locked for an ordinary user is tried first, and then left out."""
    kept = []
    for call in calls:
        if kept and kept[-1].result == -1:
            assert settings.ROOTLESS and call.name == kept[-1].name == "mount_setattr", call
            tried, given = (set(attribute_words(c.arguments).split(",")) for c in (kept[-1], call))
            assert tried - given == {"noatime"} and given < tried and call.result == 0, call
            kept[-1] = dataclasses.replace(kept[-1], result=0)
            continue
        kept.append(call)
    assert all(call.result >= 0 for call in kept), kept
    return kept


def test_the_template(trace):
    calls = trace.calls[trace.warden]
    began = [call.name == "unshare" for call in calls].index(True)
    ended = [call.name == "clone3" for call in calls].index(True)
    wanted = MOUNTING | {"unshare", "mknod", "mknodat"}
    did = [call for call in calls if call.name in wanted]
    assert did == [call for call in calls[began:ended] if call.name in wanted], "later, too"
    steps = [step for step in map(as_template_step, without_second_tries(did)) if step]
    planned = []
    for step in trace.plan["template"]:
        source, options = step.get("source", ""), step.get("options", "")
        if step["do"] == "image":
            source = options = ""  # named by a descriptor; the flags stand in fsmount
        planned.append((step["do"], source, step.get("target", ""), options))
    assert steps == planned
    if any(step["do"] == "image" for step in trace.plan["template"]):
        mounted = [call for call in did if call.name == "fsmount"]
        flags = [step for step in trace.plan["template"] if step["do"] == "image"][0]["options"]
        assert [attribute_words(call.arguments) for call in mounted] == [flags]


def written_files(calls):
    """(path, text) of each write that follows the opening of its file."""
    opened = {}
    for call in calls:
        if call.name == "openat" and call.result is not None and call.result >= 0:
            opened[str(call.result)] = re.findall(r'"([^"]*)"', call.arguments)[0]
        elif call.name == "write":
            fd, text = re.match(r'(\d+), "((?:[^"\\]|\\.)*)"', call.arguments).groups()
            if fd in opened:
                yield opened[fd], text.replace("\\n", "\n")


def test_the_control_group(trace):
    wrote = {}
    for path, text in written_files(trace.calls[trace.warden]):
        if "/sandbox-1/" in path and not path.endswith(("cgroup.procs", "cgroup.event_control")):
            wrote.setdefault(pathlib.Path(path).name, text)
    planned = {
        one["file"]: one["value"]
        for one in trace.plan["cgroup_files"]
        if one["file"] in wrote or not one["optional"]
    }
    assert list(wrote.items()) == list(planned.items())


def id_map(lines):
    return [tuple(map(int, line.split())) for line in lines.splitlines()]


def check_the_map_of_the_server(trace):
    """Written by newuidmap, as it was told."""
    server = trace.plan["id_maps"]["server"]
    wanted = [str(line[key]) for line in server for key in ("inside", "outside", "count")]
    told = [
        re.findall(r'"(\d+)"', call.arguments)[1:]
        for calls in trace.calls.values()
        for call in calls
        if call.name == "execve" and '"/usr/bin/newuidmap"' in call.arguments
    ]
    assert told == [wanted]


def test_the_ids(trace):
    maps = trace.plan["id_maps"]
    zone = [text for path, text in written_files(trace.calls[trace.warden]) if "d_map" in path]
    assert len(zone) == 2 and zone[0] == zone[1]
    ((inside, outside, count),) = id_map(zone[0])
    planned = maps["zone"][0]
    assert (inside, count) == (planned["inside"], planned["count"])
    # Other servers on this host may have taken ranges before.
    assert outside >= planned["outside"] and (outside - planned["outside"]) % count == 0
    if settings.ROOTLESS:
        check_the_map_of_the_server(trace)
    wrote = list(written_files(trace.calls[trace.launcher]))[:3]
    assert [path.rsplit("/", 1)[1] for path, _ in wrote] == ["setgroups", "gid_map", "uid_map"]
    assert wrote[0][1] == "deny" and wrote[1][1] == wrote[2][1]
    sandbox = [(line["inside"], line["outside"], line["count"]) for line in maps["sandbox"]]
    assert id_map(wrote[1][1]) == sandbox


def kinds(text):
    return {name.lower().replace("ns", "mnt") for name in re.findall(r"CLONE_NEW(\w+)", text)}


def test_the_namespaces(trace):
    planned = {who: set(names) for who, names in trace.plan["namespaces"].items()}
    made = {"warden": set(), "init": set(), "zone": set()}
    for call in trace.calls[trace.warden]:
        if call.name == "unshare":
            made["warden"] |= kinds(call.arguments)
        elif call.name == "clone3":
            made["zone"] |= kinds(call.arguments)
    for who in (trace.launcher, trace.init):
        for call in trace.calls[who]:
            if call.name in ("unshare", "clone3"):
                made["init"] |= kinds(call.arguments)
    assert made == {who: planned[who] for who in made}
    assert planned["program"] == planned["courier"] == set()
    for who in (trace.program, *trace.couriers):
        for call in trace.calls[who]:
            assert call.name != "unshare" and not kinds(call.arguments * (call.name == "clone3"))


def test_nobody_else_mounts_or_changes_namespaces(trace):
    plays = {trace.warden, trace.anchor, trace.launcher, trace.init, trace.program,
             *trace.couriers}  # fmt: skip
    for who, calls in trace.calls.items():
        names = {call.name for call in calls}
        if who not in (trace.warden, trace.anchor) and names & MOUNTING:
            # One init for each sandbox, the pool's next one among them.
            assert ("unshare", "CLONE_NEWCGROUP") in {(c.name, c.arguments) for c in calls}, who
        if who == trace.server:
            assert not names & {"setns", "pivot_root"}, who
            left = [call.arguments for call in calls if call.name == "unshare"]
            assert left == (["CLONE_NEWUSER"] if settings.ROOTLESS else []), who
    assert trace.server not in plays
