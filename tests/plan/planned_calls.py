"""What each action of a plan looks like as system calls: one function for each `do`.

A reader of calls is moved forward by exactly the calls that the action makes. A call that no action
accounts for is found by the next one, which does not get what it expects.
"""

import re

CAPABILITIES = 41  # those that the kernel's headers name: CAP_CHECKPOINT_RESTORE is the last
RLIMITS = {
    0: "RLIMIT_CPU",
    3: "RLIMIT_STACK",
    4: "RLIMIT_CORE",
    6: "RLIMIT_NPROC",
    7: "RLIMIT_NOFILE",
    8: "RLIMIT_MEMLOCK",
    11: "RLIMIT_SIGPENDING",
    12: "RLIMIT_MSGQUEUE",
    13: "RLIMIT_NICE",
    14: "RLIMIT_RTPRIO",
}
FILTERS = ("init", "program", "courier")
PROC_FLAGS = "MS_NOSUID|MS_NODEV|MS_NOEXEC"
SANDBOX_KINDS = "NS CGROUP UTS IPC USER NET"


class Reader:
    """The calls of one process, taken one after the other."""

    def __init__(self, calls, who):
        self.calls, self.who, self.at = calls, who, 0

    def peek(self):
        return self.calls[self.at] if self.at < len(self.calls) else None

    def take(self, name, arguments, result=0):
        """The next call, which has this name, these arguments (text or pattern) and result.

        A result of None stands for any that is no error; a name, such as ENOENT, for an error.
        """
        call = self.peek()
        where = f"{self.who}, call {self.at}: expected {name}({arguments}), got {call}"
        assert call is not None, where
        assert call.name == name, where
        if isinstance(arguments, re.Pattern):
            assert arguments.fullmatch(call.arguments), where
        else:
            assert call.arguments == arguments, where
        if isinstance(result, str):
            assert call.note.startswith(result), where
        elif result is None:
            assert call.result is not None and call.result >= 0, where
        else:
            assert call.result == result, where
        self.at += 1
        return call


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number(value):
    """As strace writes a limit."""
    return f"{value // 1024}*1024" if value > 1024 and value % 1024 == 0 else str(value)


def octal(mode):
    return f"0{mode:o}" if mode else "0"


def flags(names, prefix):
    """A pattern for a set of flags in any order."""
    words = [prefix + name for name in names.split()]
    return "".join(rf"(?=[^,)]*\b{word}\b)" for word in words) + r"[A-Z_|]+"


def numbers(action):
    return action.get("numbers", [0, 0, 0])


def session(reader, action, plan):
    reader.take("setsid", "", None)


def await_go(reader, action, plan):
    reader.take("read", re.compile(r'\d+, "\\1", 1'), 1)


def unshare(reader, action, plan):
    assert numbers(action)[0] == 0x02000000
    reader.take("unshare", "CLONE_NEWCGROUP")


def set_identity(reader, action, plan):
    gid, uid, _ = numbers(action)
    if reader.take("getgroups", "0, NULL", None).result > 0:
        reader.take("setgroups", "0, NULL")
    reader.take("setresgid", f"{gid}, {gid}, {gid}")
    reader.take("setresuid", f"{uid}, {uid}, {uid}")


def mount(reader, source, target, kind, options, data, result=0):
    words = [quoted(word) if word is not None else "NULL" for word in (source, target, kind)]
    tail = "NULL" if data is None else quoted(data)
    reader.take("mount", f"{', '.join(words)}, {options}, {tail}", result)


def bind(reader, action, plan):
    how = "MS_BIND|MS_REC" if numbers(action)[0] == 1 else "MS_BIND"
    mount(reader, action["source"], action["target"], None, how, None)


def bind_optional(reader, action, plan):
    missing = reader.peek() is not None and reader.peek().result == -1
    result = "ENOENT" if missing else 0
    mount(reader, action["source"], action["target"], None, "MS_BIND", None, result)


def bind_readonly(reader, action, plan):
    target = action["target"]
    missing = reader.peek() is not None and reader.peek().result == -1
    mount(reader, target, target, None, "MS_BIND|MS_REC", None, "ENOENT" if missing else 0)
    if not missing:
        how = "MS_RDONLY|MS_NOSUID|MS_NODEV|MS_NOEXEC|MS_REMOUNT|MS_BIND"
        mount(reader, None, target, None, how, None)


def mount_tmpfs(reader, action, plan):
    assert numbers(action)[0] == 2 | 4
    how = "MS_NOSUID|MS_NODEV"
    mount(reader, "tmpfs", action["target"], "tmpfs", how, action.get("source", ""))


def mount_proc(reader, action, plan):
    mount(reader, "proc", action["target"], "proc", PROC_FLAGS, action.get("source", ""))


def make_private(reader, action, plan):
    mount(reader, None, "/", None, "MS_REC|MS_PRIVATE", None)


def make_directory(reader, action, plan):
    mode, uid, gid = numbers(action)
    target = quoted(action["target"])
    reader.take("mkdir", f"{target}, {octal(mode)}")
    reader.take("chmod", f"{target}, {octal(mode)}")
    reader.take("chown", f"{target}, {uid}, {gid}")


def make_symlink(reader, action, plan):
    reader.take("symlink", f"{quoted(action['source'])}, {quoted(action['target'])}")


def enter_root(reader, action, plan):
    reader.take("chdir", quoted(action["target"]))
    reader.take("pivot_root", '".", "."')


def detach_old_root(reader, action, plan):
    reader.take("umount2", '".", MNT_DETACH')
    reader.take("chdir", '"/"')


def set_hostname(reader, action, plan):
    name = action["source"]
    reader.take("sethostname", f"{quoted(name)}, {len(name)}")


def write_control(reader, action, plan):
    text = action["source"]
    fd = reader.take(
        "openat", f"AT_FDCWD, {quoted(action['target'])}, O_WRONLY|O_CLOEXEC", None
    ).result
    reader.take("write", f"{fd}, {quoted(text)}, {len(text)}", len(text))
    reader.take("close", str(fd))


def change_directory(reader, action, plan):
    reader.take("chdir", quoted(action["target"]))


def open_directory(reader, action, plan):
    how = f"AT_FDCWD, {quoted(action['target'])}, O_RDONLY|O_CLOEXEC|O_DIRECTORY"
    reader.take("openat", how, None)


def place_descriptors(reader, action, plan):
    placed = 0
    while reader.peek() is not None and reader.peek().name == "fcntl":
        reader.take("fcntl", re.compile(r"\d+, F_DUPFD_CLOEXEC, 64"), None)
        placed += 1
    assert placed > 0
    if reader.peek().name == "openat":
        null = reader.take("openat", 'AT_FDCWD, "/dev/null", O_RDWR|O_CLOEXEC', None).result
        while reader.peek().name == "dup2":
            reader.take("dup2", re.compile(rf"{null}, [012]"), None)
    for _ in range(placed):
        reader.take("dup3", re.compile(r"\d+, \d, (0|O_CLOEXEC)"), None)
    reader.take("close_range", f"{numbers(action)[0]}, 4294967295, 0")


def set_rlimit(reader, action, plan):
    resource, soft, hard = numbers(action)
    limits = f"{{rlim_cur={number(soft)}, rlim_max={number(hard)}}}"
    reader.take("prlimit64", f"0, {RLIMITS[resource]}, {limits}, NULL")


def set_affinity(reader, action, plan):
    cpus = " ".join(map(str, plan["cpus"]))
    reader.take("sched_setaffinity", f"0, 128, [{cpus}]")


def join_session_keyring(reader, action, plan):
    reader.take("keyctl", "KEYCTL_JOIN_SESSION_KEYRING, NULL", None)


def set_umask(reader, action, plan):
    reader.take("umask", octal(numbers(action)[0]), None)


def drop_bounding_set(reader, action, plan):
    for _ in range(CAPABILITIES):
        reader.take("prctl", re.compile(r"PR_CAPBSET_DROP, CAP_\w+"))
    # Newer kernels have more than the headers name; the first that is unknown ends it.
    while reader.peek().result == 0 and reader.peek().arguments.startswith("PR_CAPBSET_DROP"):
        reader.take("prctl", re.compile(r"PR_CAPBSET_DROP, .*"))
    reader.take("prctl", re.compile(r"PR_CAPBSET_DROP, .*"), "EINVAL")


def drop_capabilities(reader, action, plan):
    nothing = "{effective=0, permitted=0, inheritable=0}"
    reader.take("capset", f"{{version=_LINUX_CAPABILITY_VERSION_3, pid=0}}, {nothing}")
    reader.take("prctl", "PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0")


def no_new_privs(reader, action, plan):
    reader.take("prctl", "PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0")


def set_dumpable(reader, action, plan):
    assert numbers(action)[0] == 0
    reader.take("prctl", "PR_SET_DUMPABLE, SUID_DUMP_DISABLE")


def join_namespaces(reader, action, plan):
    reader.take("setns", re.compile(rf"\d+, {flags(SANDBOX_KINDS, 'CLONE_NEW')}"))


def kill_others(reader, action, plan):
    """Done by the courier that reads files, and by nobody else."""
    while reader.peek().name in ("kill", "nanosleep", "clock_nanosleep"):
        if reader.peek().name == "kill":
            assert reader.peek().arguments == "-1, SIGKILL"
        reader.at += 1


def self_check(reader, action, plan):
    uid = numbers(action)[0]
    nothing = "{effective=0, permitted=0, inheritable=0}"
    reader.take("getresuid", f"[{uid}], [{uid}], [{uid}]")
    reader.take("getgroups", "0, NULL", 0)
    reader.take("capget", f"{{version=_LINUX_CAPABILITY_VERSION_3, pid=0}}, {nothing}")
    for _ in range(CAPABILITIES):
        reader.take("prctl", re.compile(r"PR_CAPBSET_READ, CAP_\w+"), 0)
    reader.take("prctl", "PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0", 1)
    how = 'AT_FDCWD, "/proc/self/fd", O_RDONLY|O_CLOEXEC|O_DIRECTORY'
    fd = reader.take("openat", how, None).result
    while reader.take("getdents64", re.compile(rf"{fd}, .*"), None).result > 0:
        pass
    reader.take("close", str(fd))


def install_filter(reader, action, plan):
    kind = FILTERS[numbers(action)[0]]
    size = plan["filter_instructions"][kind]
    how = re.compile(rf"SECCOMP_SET_MODE_FILTER, 0, {{len={size}, filter=.*}}")
    reader.take("seccomp", how)


def execute(reader, action, plan):
    argv = ", ".join(map(quoted, plan["argv"]))
    envp = ", ".join(map(quoted, plan["environment"]))
    reader.take("execve", f"{quoted(action['source'])}, [{argv}], [{envp}]")


def follow(reader, actions, plan):
    """Moves the reader over everything that the actions do, and over nothing else."""
    for action in actions:
        globals()[action["do"]](reader, action, plan)
