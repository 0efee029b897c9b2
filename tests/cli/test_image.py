"""`hutch image ls | rm | prune`: what goes, what stays, and what never goes. Most of it works on
images that are made up; the server of the last tests mounts the real one."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from harness import settings
from harness.client import strict_json
from harness.daemon import Daemon, run_hutch
from harness.waiting import wait_until

USAGE, STATE, NO_IMAGE, PRIVILEGE = 64, 73, 76, 77
OLD, NEW, THIRD = "a1" * 32, "b2" * 32, "a1b1" + "c3" * 30


class Store:
    """A state directory with images that nobody can run."""

    def __init__(self, path):
        self.path = path
        self.images = path / "images"
        (self.images / "refs").mkdir(parents=True)
        path.chmod(0o755)

    def add(self, digest, name="tiny", created="2026-01-01T00:00:00Z", directory=False):
        config = {
            "name": name,
            "python": "/usr/bin/python3",
            "default_profile": "bare",
            "profiles": {"bare": []},
            "env": {},
            "home_links": [],
            "build_space_bytes": 1,
            "build_tools": {},
        }
        known = {
            "name": name,
            "digest": digest,
            "recipe_digest": "0" * 64,
            "created": created,
            "size_bytes": 1_200_000,
            "format": "directory" if directory else "erofs",
            "config": config,
            "packages": [{"kind": "pypi", "name": "numpy", "version": "2.0"}],
        }
        (self.images / f"{digest}.json").write_text(json.dumps(known))
        body = self.body(digest, directory)
        if directory:
            (body / "usr" / "bin").mkdir(parents=True)
            (body / "usr" / "bin" / "python3").write_bytes(b"x" * 50_000)
            (body / "closed").mkdir(mode=0o555)
        else:
            body.write_bytes(b"x" * 100_000)
        return body

    def body(self, digest, directory=False):
        return self.images / (digest if directory else f"{digest}.erofs")

    def name(self, name, digest):
        (self.images / "refs" / name).write_text(digest + "\n")

    def left(self):
        return sorted(p.name for p in self.images.iterdir() if p.name not in ("refs", "build.lock"))

    def run(self, verb, *arguments, **more):
        return run_hutch("image", verb, *arguments, "--state-dir", self.path, **more)

    def json(self, verb, *arguments):
        done = self.run(verb, *arguments, "--json")
        assert done.returncode == 0 and done.stderr == "", done
        return strict_json(done.stdout)


@pytest.fixture
def store():
    place = pathlib.Path(tempfile.mkdtemp(prefix="hutch-store-"))
    yield Store(place)
    shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def held(path, kind=fcntl.LOCK_SH):
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, kind)
    yield
    os.close(fd)


def test_ls_tells_names_and_use(store):
    store.add(OLD)
    store.add(NEW, created="2026-02-01T00:00:00Z")
    store.name("tiny", NEW)
    with held(store.body(OLD)):
        lines = store.run("ls").stdout.splitlines()
        assert lines[1].split()[:2] == ["tiny", NEW[:12]] and lines[1].endswith("  current")
        assert lines[2].endswith("  replaced, in use")
        rows = store.json("ls")
    assert [(row["digest"], row["current"], row["in_use"]) for row in rows] == [
        (NEW, True, False),
        (OLD, False, True),
    ]


@pytest.mark.parametrize("directory", [False, True])
def test_rm_removes_what_no_name_means(store, directory):
    store.add(OLD, directory=directory)
    answer = store.json("rm", OLD)
    assert answer["digest"] == OLD and answer["names"] == [] and answer["freed_bytes"] > 50_000
    assert store.left() == []


def test_rm_by_the_first_digits(store):
    store.add(OLD)
    store.add(THIRD)
    done = store.run("rm", "a1")
    assert done.returncode == NO_IMAGE and "a1" in done.stderr  # too short
    done = store.run("rm", OLD[:8])
    assert done.returncode == 0 and done.stdout == OLD + "\n" and "free again" in done.stderr
    assert store.left() == [f"{THIRD}.erofs", f"{THIRD}.json"]


def test_rm_asks_which_when_two_begin_alike(store):
    store.add(OLD)
    store.add(OLD[:40] + "0" * 24)
    done = store.run("rm", OLD[:12])
    assert done.returncode == USAGE and "several images begin with" in done.stderr


@pytest.mark.parametrize("word", ["tiny", NEW, NEW[:6]])
def test_rm_refuses_what_a_name_means_unless_forced(store, word):
    store.add(NEW)
    store.name("tiny", NEW)
    done = store.run("rm", word)
    assert done.returncode == USAGE and f"hutch image rm --force {word}" in done.stderr
    assert store.left() == [f"{NEW}.erofs", f"{NEW}.json"]
    answer = store.json("rm", word, "--force")
    assert answer["names"] == ["tiny"]
    assert store.left() == [] and not list((store.images / "refs").iterdir())


@pytest.mark.parametrize("directory", [False, True])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_rm_never_takes_what_is_in_use(store, force, directory):
    body = store.add(OLD, directory=directory)
    with held(body):
        done = store.run("rm", OLD, *force)
    assert done.returncode == STATE
    assert f"in use by process {os.getpid()}" in done.stderr and str(body) in done.stderr
    assert body.exists() and (store.images / f"{OLD}.json").exists()


def test_rm_of_nothing(store):
    for word in ("nothing", "../../etc", OLD, ""):
        assert store.run("rm", word).returncode == NO_IMAGE
    done = run_hutch("image", "rm", "tiny", "--state-dir", "/nonexistent/hutch")
    assert done.returncode == NO_IMAGE and "no images in /nonexistent/hutch" in done.stderr


def test_rm_works_while_a_build_runs(store):
    store.add(OLD)
    (store.images / "build.lock").touch()
    with held(store.images / "build.lock", fcntl.LOCK_EX):
        assert store.run("rm", OLD).returncode == 0
    assert store.left() == []


def leave_rubbish(store):
    """What builds and removals that were killed can leave, and downloads."""
    (store.images / "tmp" / "tiny" / "rootfs" / "etc").mkdir(parents=True)
    (store.images / "tmp" / "tiny" / "rootfs" / "etc" / "hosts").write_text("x")
    (store.images / f".removed-{THIRD}").mkdir()
    (store.images / f"{THIRD}.erofs").write_bytes(b"x" * 10_000)  # nothing knows about it
    (store.images / f"{OLD}.json.new").write_text("half")
    (store.path / "cache" / "apt").mkdir(parents=True)
    (store.path / "cache" / "apt" / "a.deb").write_bytes(b"x" * 30_000)


def test_prune_removes_what_nobody_needs(store):
    store.add(OLD)
    store.add(NEW)
    store.name("tiny", NEW)
    leave_rubbish(store)
    expected = [
        f".removed-{THIRD}",
        f"{OLD}.json.new",
        f"{THIRD}.erofs",
        "tmp/tiny",
    ]
    before = store.left()
    would = store.json("prune", "--dry-run", "--cache")
    assert store.left() == before and (store.path / "cache").exists()
    answer = store.json("prune")
    assert [one["digest"] for one in answer["images"]] == [OLD]
    assert sorted(answer["leftovers"]) == [f"{store.images}/{name}" for name in expected]
    assert answer["kept_in_use"] == [] and not answer["build_runs"] and not answer["cache"]
    assert store.left() == [f"{NEW}.erofs", f"{NEW}.json", "tmp"]
    assert (store.path / "cache" / "apt" / "a.deb").exists()
    cache = store.json("prune", "--cache")
    assert cache["cache"] and cache["images"] == [] and cache["freed_bytes"] >= 30_000
    assert not (store.path / "cache").exists()
    assert would["freed_bytes"] == answer["freed_bytes"] + cache["freed_bytes"]
    assert would["leftovers"] == answer["leftovers"] and would["dry_run"]


def test_prune_says_what_it_freed(store):
    store.add(OLD, directory=True)
    done = store.run("prune")
    assert done.stdout.startswith(f"image {OLD}  ") and "are free again" in done.stderr
    done = store.run("prune")
    assert done.stdout == "" and done.stderr == "0 kB are free again\n"


def test_prune_keeps_what_is_in_use(store):
    body = store.add(OLD)
    with held(body):
        for more in ([], ["--dry-run"]):
            answer = store.json("prune", *more)
            assert answer["kept_in_use"] == [OLD] and answer["images"] == []
        assert f"kept {OLD}" in store.run("prune").stderr
    assert store.left() == [f"{OLD}.erofs", f"{OLD}.json"]


def test_prune_beside_a_build_leaves_what_may_be_its_own(store):
    store.add(OLD)
    store.add(NEW)
    store.name("tiny", NEW)
    leave_rubbish(store)
    (store.images / "build.lock").touch()
    with held(store.images / "build.lock", fcntl.LOCK_EX):
        answer = store.json("prune", "--cache")
    assert answer["build_runs"] and not answer["cache"] and answer["leftovers"] == []
    assert [one["digest"] for one in answer["images"]] == [OLD]
    assert (store.images / "tmp" / "tiny" / "rootfs").exists()
    assert (store.path / "cache" / "apt" / "a.deb").exists()


def test_prune_of_nothing():
    done = run_hutch("image", "prune", "--json", "--state-dir", "/nonexistent/hutch")
    assert done.returncode == 0 and strict_json(done.stdout)["freed_bytes"] == 0


def test_a_name_without_a_digest_stops_everything(store):
    """What it means is not known, so neither is what may go."""
    store.add(OLD)
    store.name("tiny", "rubbish")
    for verb in (["prune"], ["rm", OLD]):
        done = store.run(*verb)
        assert done.returncode == USAGE and "refs/tiny holds no digest" in done.stderr
    assert store.left() == [f"{OLD}.erofs", f"{OLD}.json"]


@pytest.fixture
def treasure(tmp_path):
    place = tmp_path / "treasure"
    place.mkdir()
    (place / "keep").write_text("kept")
    yield place
    assert (place / "keep").read_text() == "kept"


def test_links_are_removed_and_never_followed(store, treasure):
    body = store.add(OLD, directory=True)
    (body / "usr" / "out").symlink_to(treasure)
    (store.images / "tmp").mkdir()
    (store.images / "tmp" / "tiny").symlink_to(treasure)
    (store.images / f".removed-{THIRD}").symlink_to(treasure)
    (store.images / THIRD).symlink_to(treasure)
    (store.path / "cache").symlink_to(treasure)
    (store.images / f"{NEW}.erofs").symlink_to("/nonexistent")
    answer = store.json("prune", "--cache")
    assert not answer["cache"] and (store.path / "cache").is_symlink()
    assert store.left() == ["tmp"] and not list((store.images / "tmp").iterdir())


def test_a_linked_directory_of_builds_is_left_alone(store, treasure):
    (store.images / "tmp").symlink_to(treasure)
    assert store.json("prune")["leftovers"] == []


def test_a_linked_image_is_only_unlinked(store, treasure):
    store.add(OLD)
    store.body(OLD).unlink()
    (store.images / OLD).symlink_to(treasure)
    assert store.run("rm", OLD).returncode == 0
    assert store.left() == []


@pytest.mark.parametrize("verb", [["prune"], ["rm", OLD]])
def test_a_linked_store_is_somebody_elses(store, verb):
    store.add(OLD)
    place = pathlib.Path(tempfile.mkdtemp(prefix="hutch-store-"))
    (place / "images").symlink_to(store.images)
    done = run_hutch("image", *verb, "--state-dir", place)
    shutil.rmtree(place)
    assert done.returncode == PRIVILEGE and "is no directory but a link" in done.stderr
    assert store.left() == [f"{OLD}.erofs", f"{OLD}.json"]


@pytest.mark.parametrize(
    "spoil",
    [lambda path: path.chmod(0o777), lambda path: os.chown(path, 1234, 1234)],
)
def test_a_store_that_others_can_write_is_not_touched(store, spoil):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    store.add(OLD)
    spoil(store.images)
    done = store.run("prune")
    assert done.returncode == PRIVILEGE and "only the owner" in done.stderr
    assert store.left() == [f"{OLD}.erofs", f"{OLD}.json"]


def test_a_mount_point_in_the_way_is_named(store, treasure):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    inside = store.images / "tmp" / "tiny" / "mnt"
    inside.mkdir(parents=True)
    command = f"mount -t tmpfs none {inside} && touch {inside}/x && exec {settings.BINARY}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{command} image prune --state-dir {store.path}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 70 and f"{inside} is a mount point" in done.stderr


@pytest.fixture(scope="module")
def real_image():
    """A copy of the real image: servers of others may hold the one it was made from."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="hutch-image-"))
    source = settings.IMAGE_STATE / "images"
    digest = (source / "refs" / "python").read_text().strip()
    for body in (source / f"{digest}.json", source / f"{digest}.erofs", source / digest):
        if body.is_dir():
            shutil.copytree(body, place / body.name, symlinks=True)
        elif body.exists():
            shutil.copy(body, place)
    yield place, digest
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def real_store(store, real_image):
    """The store with that image in it, and its digest."""
    place, digest = real_image
    for body in place.iterdir():
        if body.is_dir():
            shutil.copytree(body, store.images / body.name, symlinks=True)
        else:
            os.link(body, store.images / body.name)
    store.name("python", digest)
    return store, digest


def test_a_server_holds_its_image_until_it_has_ended(real_store):
    store, digest = real_store
    store.add(OLD)
    here = Daemon(state=store.path).start()
    try:
        assert [row["digest"] for row in store.json("ls") if row["in_use"]] == [digest]
        done = store.run("rm", "python", "--force")
        assert done.returncode == STATE and "in use by process" in done.stderr
        # Also when no name means it any more.
        (store.images / "refs" / "python").unlink()
        answer = store.json("prune")
        assert answer["kept_in_use"] == [digest]
        assert [one["digest"] for one in answer["images"]] == [OLD]
        assert here.execute("print(1)")["stdout"] == "1\n"
        assert here.stop() == 0
    finally:
        here.kill()
        here.discard()
    wait_until(lambda: not store.json("ls")[0]["in_use"], 10, "the image is still held")
    assert [one["digest"] for one in store.json("prune")["images"]] == [digest]


def test_a_run_without_a_server_holds_the_image(real_store):
    store, digest = real_store
    command = [settings.BINARY, "run", "--local", "-q", "--state-dir", store.path, "-c"]
    run = subprocess.Popen(
        [*command, "import time; print('begun', flush=True); time.sleep(4)"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "begun\n"
    done = store.run("rm", "python", "--force")
    assert done.returncode == STATE and "in use by process" in done.stderr
    assert run.wait(30 * settings.SLACK) == 0
    run.stdout.close()
    wait_until(lambda: not store.json("ls")[0]["in_use"], 10, "the image is still held")
    assert store.json("rm", "python", "--force")["digest"] == digest


def test_a_server_that_was_killed_lets_go(real_store):
    store, digest = real_store
    here = Daemon(state=store.path).start()
    here.kill()
    wait_until(lambda: not store.json("ls")[0]["in_use"], 20, "the image is still held")
    here.discard()
    assert store.json("rm", "python", "--force")["digest"] == digest
