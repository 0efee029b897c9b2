"""What stops a start: each cause has an exit status of its own and words that say what to do."""

import json
import os
import shutil
import socket
import subprocess

import pytest
from harness import host, settings
from harness.daemon import Daemon, StartFailed, new_state_dir, run_hutch

USAGE, PORT, STATE, NO_IMAGE, PRIVILEGE = 64, 75, 73, 76, 77


def failed_start(**options):
    here = Daemon(**options)
    try:
        with pytest.raises(StartFailed) as caught:
            here.start()
    finally:
        here.kill()
        here.discard()
    assert "hutch ready" not in caught.value.output
    return caught.value.status, caught.value.log


@pytest.fixture
def state():
    path = new_state_dir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("which", ["internal", "public"])
def test_a_taken_port(state, which):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = {"internal": 0, "public": 0, which: port}
        arguments = [x for name, p in ports.items() for x in (f"--{name}", f"127.0.0.1:{p}")]
        status, log = failed_start(state=state, arguments=arguments)
    assert status == PORT and str(port) in log


def test_a_state_directory_in_use(daemon):
    status, log = failed_start(state=daemon.state)
    assert status == STATE and str(daemon.state) in log
    assert daemon.execute("print(1)")["stdout"] == "1\n"


def test_a_state_directory_that_is_a_file(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    status, log = failed_start(state=place)
    assert status == STATE and str(place) in log


@pytest.mark.parametrize(
    "mount",
    [
        "mount --bind {0} {0} && mount -o remount,ro,bind {0}",
        "mount -t tmpfs -o size=16k,mode=755 full {0} && ln -s {1}/images {0}/images"
        " && ! dd if=/dev/zero of={0}/fill bs=4k 2>/dev/null",
    ],
    ids=["read-only", "full"],
)
def test_a_state_directory_that_takes_nothing(state, mount):
    serve = (
        f"{settings.BINARY} serve --internal 127.0.0.1:0 --public 127.0.0.1:0 --state-dir {state}"
    )
    script = f"{mount.format(state, settings.IMAGE_STATE)} && exec timeout 20 {serve}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    assert done.returncode == STATE, done.stderr
    assert str(state) in done.stderr


def test_a_log_that_nobody_reads(own_daemon):
    here = own_daemon(log_to_closed_pipe=True)
    for _ in range(3):
        assert here.execute("print(1)")["stdout"] == "1\n"


@pytest.mark.as_root  # an ordinary user is served from the images of the host's root
def test_no_image(tmp_path):
    place = new_state_dir(images=False)
    try:
        status, log = failed_start(state=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert status == NO_IMAGE and "hutch image build python" in log


@pytest.mark.parametrize(
    "setting, words",
    [
        ("limits.memory_byte=5", "limits.memory_byte"),
        ("nonsense", "nonsense"),
        ("limits.processes=zero", "limits.processes"),
        ("limits.processes=-1", "limits.processes"),
        ("pool.target=0", "pool.target"),
        ("limits.memory_bytes=1", "limits.memory_bytes"),
    ],
)
def test_a_wrong_setting(state, setting, words):
    key, _, value = setting.partition("=")
    here = Daemon(state=state, sets={key: value} if value else {})
    if not value:
        here.arguments = ["--internal", "127.0.0.1:0", "--set", setting]
    with pytest.raises(StartFailed) as caught:
        here.start()
    here.discard()
    assert caught.value.status == USAGE and words in caught.value.log


def test_an_unknown_key_in_the_file_is_named_with_its_place(state):
    file = state / "hutch.toml"
    file.write_text("[pool]\ntarget = 3\n  taget = 4\n")
    arguments = ["--internal", "127.0.0.1:0", "--public", "127.0.0.1:0", "--config", str(file)]
    status, log = failed_start(state=state, arguments=arguments)
    assert status == USAGE and "taget" in log and f"{file}:3:" in log.replace("\\/", "/")


def test_settings_come_from_the_file_as_well(state, own_daemon):
    file = state / "hutch.toml"
    file.write_text("[pool]\ntarget = 1\nceiling = 1\n[limits]\nprocesses = 50\n")
    arguments = ["--internal", "127.0.0.1:0", "--public", "127.0.0.1:0", "--config", str(file)]
    here = own_daemon(arguments=arguments)
    assert here.pool()["target"] == 1


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:8700", "nowhere", "127.0.0.1:99999"])
def test_only_loopback(state, address):
    arguments = ["--internal", address, "--public", "127.0.0.1:0"]
    status, _ = failed_start(state=state, arguments=arguments)
    assert status == USAGE


@pytest.mark.as_root
def test_an_ordinary_user_without_subordinate_ids(tmp_path):
    place = new_state_dir()
    os.chown(place, 65534, 65534)
    try:
        done = run_hutch(
            "serve",
            "--internal",
            "127.0.0.1:0",
            "--public",
            "127.0.0.1:0",
            "--state-dir",
            place,
            user=65534,
            group=65534,
            extra_groups=[],
            env={**os.environ, "HOME": str(place)},  # root's may not be entered
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert done.returncode == PRIVILEGE and "/etc/subuid" in done.stderr, done.stderr
    assert "root" in done.stderr or "privilege" in done.stderr


@pytest.mark.parametrize("arguments", [["serve", "--nonsense"], ["nonsense"], []])
def test_wrong_usage(arguments):
    done = run_hutch(*arguments)
    assert done.returncode == USAGE and done.stderr + done.stdout


def test_image_commands():
    done = run_hutch("image", "path", "python", "--state-dir", settings.IMAGE_STATE)
    assert done.returncode == 0 and os.path.exists(done.stdout.strip()), done.stderr
    listed = run_hutch("image", "ls", "--state-dir", settings.IMAGE_STATE)
    assert listed.returncode == 0 and "python" in listed.stdout


def test_the_path_of_an_image_that_is_not_there(state):
    (state / "images").unlink()
    done = run_hutch("image", "path", "python", "--state-dir", state)
    assert done.returncode == NO_IMAGE and "hutch image build python" in done.stderr
    assert done.stdout == ""


def test_doctor_names_what_can_be_counted(daemon):
    facts = daemon.doctor()
    assert facts["uid_range"]["first"] >= 100_000 and facts["uid_range"]["count"] >= 1000
    assert facts["cgroup_prefix"]
    assert facts["cgroup_prefixes"] or settings.ROOTLESS
    assert all(os.path.isabs(p) for p in facts["cgroup_prefixes"])
    assert len(facts["network_namespaces"]) >= 3
    assert set(facts["processes"]) == set(host.processes(daemon.facts()))


def test_doctor_without_a_daemon(state):
    done = run_hutch("doctor", "--json", "--state-dir", state)
    json.loads(done.stdout)
