"""The matplotlib backend: each figure comes out exactly once, and quietly."""

import struct

import pytest
from stage import Stage

START = "import matplotlib.pyplot as plt\n"


@pytest.fixture(scope="module")
def charts(interpreter):
    asked = Stage(interpreter).plain(b"import matplotlib\n")
    if asked.status != 0:
        pytest.skip("this interpreter has no matplotlib")

    def run(source, **stage):
        environment = {"MPLBACKEND": "module://hutch_mpl", "PYTHONPATH": "/opt/hutch-mpl"}
        environment |= {"MPLCONFIGDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
        ended = Stage(interpreter, environment=environment, **stage).plain(source.encode())
        for name, content in ended.files.items():
            if name.startswith("figure-") and content.startswith(b"\x89PNG"):
                assert min(struct.unpack(">II", content[16:24])) > 100, name
        return ended

    return run


def quiet(ended, *names):
    assert (ended.stderr, ended.status) == (b"", 0)
    assert sorted(ended.files) == sorted(names)


CASES = {
    "error_bars": (
        ("plt.bar(['a', 'b'], [3, 5], yerr=[0.3, 0.5], capsize=4)\n" "plt.show()"),
        ["figure-1.png"],
    ),
    "one_shown_one_saved": (
        "f, a = plt.subplots()\na.plot([1, 2])\nf.savefig('saved.png')\nplt.close(f)\n"
        "plt.plot([3, 1])\nplt.show()",
        ["figure-1.png", "saved.png"],
    ),
    "both_open_one_saved": (
        "f = plt.figure()\ng = plt.figure()\nf.savefig('saved.png')\nplt.show()",
        ["figure-1.png", "saved.png"],
    ),
    "only_shown": ("plt.figure()\nplt.figure()\nplt.show()", ["figure-1.png", "figure-2.png"]),
    "nothing": ("plt.show()", []),
    "not_shown": ("plt.plot([1])", []),
    "saved_then_shown": ("plt.plot([1, 2])\nplt.savefig('a.pdf')\nplt.show()", ["a.pdf"]),
    "saved_to_buffer": ("import io\nplt.plot([1])\nplt.savefig(io.BytesIO())\nplt.show()", []),
    "saved_as_svg": ("plt.plot([1])\nplt.savefig('a.svg')\nplt.show()", ["a.svg"]),
    "shown_then_saved": ("f, a = plt.subplots()\nplt.show()\nf.savefig('b.png')", ["b.png"]),
    "shown_then_saved_there": (
        "f, a = plt.subplots()\nplt.show()\nf.savefig('figure-1.png')\nf.savefig('c.png')",
        ["c.png", "figure-1.png"],
    ),
    "shown_then_touched": (
        (
            "f, a = plt.subplots()\n"
            "plt.show()\n"
            "open('figure-1.png', 'ab').write(b'mine')\n"
            "f.savefig('d.png')"
        ),
        ["d.png", "figure-1.png"],
    ),
    "shown_twice": (
        ("plt.plot([1])\n" "plt.show()\n" "plt.show()\n" "plt.plot([2])\n" "plt.show()"),
        ["figure-1.png", "figure-2.png"],
    ),
    "closed_after_show": (
        ("plt.plot([1])\n" "plt.show()\n" "assert plt.get_fignums() == []"),
        ["figure-1.png"],
    ),
    "no_block": (
        (
            "plt.plot([1])\n"
            "plt.show(block=False)\n"
            "assert plt.get_fignums() == [1]\n"
            "plt.plot([2])\n"
            "plt.show()"
        ),
        ["figure-1.png"],
    ),
    "figure_show": (
        ("f, a = plt.subplots()\n" "f.show()\n" "a.plot([1])\n" "f.show()\n" "plt.show()"),
        ["figure-1.png"],
    ),
    "pause": (
        ("for i in range(3):\n" "    plt.plot([i])\n" "    plt.pause(0.01)\n" "plt.close()"),
        ["figure-1.png"],
    ),
    "interactive": (
        (
            "plt.ion()\n"
            "plt.plot([1])\n"
            "plt.draw()\n"
            "plt.show()\n"
            "plt.pause(0.01)\n"
            "plt.ioff()\n"
            "plt.show()"
        ),
        ["figure-1.png"],
    ),
    "figure_without_pyplot": (
        ("from matplotlib.figure import Figure\n" "Figure().savefig('f.png')\n" "plt.show()"),
        ["f.png"],
    ),
    "animation": (
        "from matplotlib.animation import FuncAnimation as F\nf, a = plt.subplots()\n"
        "x = F(f, lambda i: a.plot([i]), frames=2)\nx.save('a.gif', writer='pillow')\nplt.close()",
        ["a.gif"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_figure_once(charts, name):
    source, names = CASES[name]
    quiet(charts(START + source + "\n"), *names)


def test_a_file_that_exists_is_kept(charts):
    ended = charts(START + "plt.plot([1])\nplt.show()\n", files={"figure-1.png": b"mine"})
    quiet(ended, "figure-1.png", "figure-2.png")
    assert ended.files["figure-1.png"] == b"mine"


def test_shown_again_shows_the_latest(charts):
    """The second picture is red where the first was white."""
    source = (
        "f = plt.figure(figsize=(2, 2))\nf.show()\nf.patch.set_facecolor('red')\nplt.show()\n"
        "from PIL import Image\nprint(Image.open('figure-1.png').convert('RGB').getpixel((5, 5)))\n"
    )
    ended = charts(START + source)
    quiet(ended, "figure-1.png")
    assert ended.stdout == b"(255, 0, 0)\n"


def test_a_directory_that_is_read_only(charts):
    source = (
        "import os\n"
        "os.chdir('/usr')\n"
        "plt.plot([1])\n"
        "plt.show()\n"
        "print('on', plt.get_fignums())\n"
    )
    ended = charts(START + source)
    assert (ended.stdout, ended.status, ended.files) == (b"on []\n", 0, {})
    assert ended.stderr == b"matplotlib: the figure could not be saved: Read-only file system\n"


def test_a_file_that_cannot_grow(charts):
    """What a full disk does to a write, without filling one; nothing half-written stays."""
    source = (
        "import os, resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nplt.plot([1])\nplt.show()\n"
    )
    ended = charts(START + source)
    assert (ended.status, ended.files) == (0, {})
    assert ended.stderr == b"matplotlib: the figure could not be saved: File too large\n"


def test_a_drawing_error_is_the_programs(charts):
    ended = charts(START + "plt.title('$\\\\frac{1$')\nplt.show()\n")
    assert ended.status == 1 and b"Expected" in ended.stderr


def test_a_run_without_a_plot_imports_no_matplotlib(charts):
    ended = charts(
        ("import sys\n" "print([m for m in sys.modules if 'matplotlib' in m or 'hutch' in m])\n")
    )
    quiet(ended)
    assert ended.stdout == b"[]\n"
