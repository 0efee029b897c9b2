"""The Debian package, in a fresh Debian 12: installed, started, upgraded, removed, purged."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest
from room import TREE, Room, dependencies, make_base

BUILD = TREE / "build" / "release"
SNIPPET = '{"code":"import getpass, os\\nprint(2**32, os.getuid())"}'

RUNS = [
    (
        {"code": "open('out', 'w').write(open('in').read())",
         "files": [{"path": "in", "content_b64": "YQ=="}]},
        {"files": [{"path": "out", "size": 1, "type": "text/plain", "content_b64": "YQ=="}]},
    ),
    ({"code": "while True: pass", "timeout_s": 1}, {"exit_code": -1}),
    # A run out of memory is no failure of the service.
    ({"code": "x = []\nwhile True: x.append(bytearray(10**7))"}, {"exit_code": 137}),
    (
        {"code": "import multiprocessing, socket\n"
                 "print(multiprocessing.Pool(2).map(abs, [-1]), socket.if_nameindex()[0][1])"},
        {"stdout": "[1] lo\n"},
    ),
    # Just-in-time compilers write into what they execute.
    ({"code": "import mmap; mmap.mmap(-1, 4096, prot=7); print('ok')"}, {"stdout": "ok\n"}),
    (
        {"code": "import os; os.mkdir('d'); os.chmod('d', 0o2755)\n"
                 "print(oct(os.stat('d').st_mode))"},
        {"stdout": "0o42755\n"},
    ),
]


def build_deb(out):
    done = subprocess.run(
        [str(TREE / "packaging/debian/build"), str(BUILD), str(out)],
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return pathlib.Path(done.stdout.strip())


def raised(deb, version, out):
    """The same package under a higher version."""
    tree = out / "tree"
    subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}", control.read_text()))
    path = out / f"hutch_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", str(tree), str(path)],
                   check=True, capture_output=True)
    shutil.rmtree(tree)
    return path


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("packages")
    deb = build_deb(directory)
    deb.rename(directory / "hutch.deb")
    raised(directory / "hutch.deb", "99.0", directory).rename(directory / "newer.deb")
    return directory


@pytest.fixture(scope="module")
def base(packages):
    return make_base(dependencies(packages / "hutch.deb"))


@pytest.fixture
def bare(base, packages):
    """A room without systemd."""
    with Room(base, packages, "none") as room:
        yield room


@pytest.fixture
def booted(base, packages):
    """A room whose init is systemd."""
    with Room(base, packages, "systemd") as room:
        yield room


def install(room, name="hutch.deb"):
    # The room has no network: what the package depends on was downloaded into the base.
    return room.run(f"apt-get install -y --no-install-recommends /mnt/packages/{name} 2>&1").stdout


def bring_image(room):
    room.run("cp -a /mnt/images /var/lib/hutch/")


def changes(room, before):
    """What differs, without the books that dpkg and apt keep and the links of the C library."""
    known = re.compile(
        r"/(var/(log|cache|lib/(dpkg|apt|systemd|pam)|backups|tmp)|tmp|root|etc/ld\.so\.cache"
        r"|etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|mnt)[/ ]"
    )
    return sorted(line for line in before ^ room.files() if not known.match(line))


def accounts(room):
    return room.run("cut -d: -f1,6,7 /etc/passwd; cut -d: -f1 /etc/group").stdout


def test_the_same_build_gives_the_same_bytes(packages, tmp_path):
    assert build_deb(tmp_path).read_bytes() == (packages / "hutch.deb").read_bytes()


@pytest.mark.skipif(not shutil.which("lintian"), reason="there is no lintian")
def test_lintian_has_no_complaint(packages):
    done = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "error,warning", str(packages / "hutch.deb")],
        capture_output=True, text=True, timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_under_systemd(booted):
    room = booted
    before, accounts_before = room.files(), accounts(room)

    said = install(room)
    assert "build it with: hutch image build python" in said
    assert room.run("hutch version").stdout.startswith("hutch ")
    findings = json.loads(room.run("hutch doctor --json").stdout)
    assert findings["fit"] is True
    assert room.run("getent passwd hutch").stdout.split(":")[5:] == [
        "/nonexistent", "/usr/sbin/nologin\n"
    ]
    # Enabled, and not started: there is no image.
    assert room.run("systemctl is-enabled hutch").stdout == "enabled\n"
    assert room.run("systemctl is-active hutch", check=False).stdout == "inactive\n"
    assert room.run("systemctl start hutch", check=False).returncode != 0
    assert "ExecMainStatus=76" in room.run("systemctl show hutch -p ExecMainStatus").stdout

    bring_image(room)
    room.run("systemctl start hutch", timeout=100)
    assert '"stdout":"4294967296 1000\\n"' in room.http("/v1/execute", SNIPPET)
    first = room.run("systemctl show hutch -p MainPID --value").stdout.strip()
    assert room.run(f"grep ^Uid: /proc/{first}/status").stdout.split()[1:] == [
        room.run("id -u hutch").stdout.strip()
    ] * 4
    room.run("systemctl reload hutch")
    assert room.run("hutch run -c 'print(6 * 7)'").stdout == "42\n"

    # What the unit takes from the service is nothing that a run needs.
    room.run("systemd-analyze verify --man=no hutch.service")
    for body, expected in RUNS:
        answer = json.loads(room.http("/v1/execute", json.dumps(body)))
        assert expected.items() <= answer.items(), (body, answer)
    assert room.run("systemctl show hutch -p MainPID --value").stdout.strip() == first

    # An upgrade replaces the server, and keeps state and settings.
    room.run("echo '# mine' >>/etc/hutch/config.toml")
    images = room.run("hutch image ls --json").stdout
    install(room, "newer.deb")
    second = room.run("systemctl show hutch -p MainPID --value").stdout.strip()
    assert second not in ("0", first)
    assert '"exit_code":0' in room.http("/v1/execute", SNIPPET)
    assert room.run("hutch image ls --json").stdout == images
    assert room.run("tail -n 1 /etc/hutch/config.toml").stdout == "# mine\n"
    assert room.run("cat /var/lib/hutch/version").stdout == "1\n"

    # Stopping ends well, and leaves no control group.
    room.run("systemctl stop hutch", timeout=100)
    shown = room.run("systemctl show hutch -p Result -p ExecMainStatus -p NRestarts").stdout
    assert set(shown.split()) == {"Result=success", "ExecMainStatus=0", "NRestarts=0"}
    assert room.run("find /sys/fs/cgroup -name 'hutch*'").stdout == ""

    # Removing stops what runs, and keeps state, settings and user.
    room.run("systemctl start hutch", timeout=100)
    room.run("apt-get remove -y hutch")
    assert room.run("grep -lx hutch /proc/[0-9]*/comm || true").stdout == ""
    room.run("test ! -e /usr/bin/hutch && test -s /etc/hutch/config.toml && id hutch")
    room.run("test -d /var/lib/hutch/images/refs")

    # Back again, it finds everything and starts by itself.
    install(room)
    assert '"exit_code":0' in room.http("/v1/execute", SNIPPET)

    room.run("apt-get purge -y --autoremove hutch")
    assert accounts(room) == accounts_before
    assert changes(room, before) == []


def test_without_systemd(bare):
    room = bare
    before, accounts_before = room.files(), accounts(room)
    install(room)
    bring_image(room)
    unit = room.run("cat /lib/systemd/system/hutch.service").stdout
    command = re.search(r"(?m)^ExecStart=(.*)$", unit)[1].split()
    assert command[0] == "/usr/bin/hutch"
    server = room.start(*command)
    try:
        assert server.stdout.readline().startswith(b"hutch ready "), room.log_text()
        assert '"stdout":"4294967296 1000\\n"' in room.http("/v1/execute", SNIPPET)
        install(room, "newer.deb")
        assert '"exit_code":0' in room.http("/v1/execute", SNIPPET)
        room.run('kill -TERM "$(cat /var/lib/hutch/server.pid)"')
        assert server.wait(70) == 0
    finally:
        server.kill()
        server.stdout.close()
    # With no server, the binary and the image are enough.
    assert room.run("hutch run -c 'print(6 * 7)'").stdout == "42\n"
    room.run("apt-get purge -y --autoremove hutch")
    assert accounts(room) == accounts_before
    assert changes(room, before) == []


def test_the_installed_recipe_is_the_one_that_made_the_image(bare):
    install(bare)
    bring_image(bare)
    built = bare.run("hutch image build python")
    assert "is already built" in built.stderr, built
