"""Charts come back once each, with the glyphs that were asked for, and nothing stale."""

import struct

import pytest

PNG = b"\x89PNG\r\n\x1a\n"


def png_size(data):
    assert data.startswith(PNG)
    return struct.unpack(">II", data[16:24])


def images(answer):
    return [entry for entry in answer.ok().get("files", []) if entry["type"].startswith("image/")]


def test_error_bars(daemon):
    code = """
import matplotlib.pyplot as plt
plt.bar(['a', 'b', 'c'], [3, 5, 4], yerr=[0.3, 0.5, 0.2], capsize=5)
plt.savefig('chart.png')
"""
    answer = daemon.execute(code)
    assert answer["stderr"] == "" and answer["exit_code"] == 0
    (entry,) = images(answer)
    assert entry["path"] == "chart.png" and entry["type"] == "image/png"
    width, height = png_size(answer.file("chart.png"))
    assert width >= 300 and height >= 200 and entry["size"] == len(answer.file("chart.png"))


def test_one_shown_and_one_saved(daemon):
    code = """
import matplotlib.pyplot as plt
plt.figure(); plt.plot([1, 2, 3]); plt.show()
plt.figure(); plt.plot([3, 2, 1]); plt.savefig('saved.png')
"""
    answer = daemon.execute(code)
    assert answer["stderr"] == ""
    assert sorted(entry["path"] for entry in images(answer)) == ["figure-1.png", "saved.png"]
    for name in ("figure-1.png", "saved.png"):
        png_size(answer.file(name))


def test_shown_and_never_saved(daemon):
    answer = daemon.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert answer["stderr"] == ""
    assert [entry["path"] for entry in images(answer)] == ["figure-1.png"]
    png_size(answer.file("figure-1.png"))


def test_saved_and_then_shown_is_one_figure(daemon):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('mine.png')\nplt.show()"
    answer = daemon.execute(code)
    assert [entry["path"] for entry in images(answer)] == ["mine.png"]


def test_two_shown(daemon):
    code = """
import matplotlib.pyplot as plt
for turn in range(2):
    plt.figure(); plt.plot([turn, 2]); plt.show()
"""
    answer = daemon.execute(code)
    paths = [entry["path"] for entry in images(answer)]
    assert paths == ["figure-1.png", "figure-2.png"]


@pytest.mark.parametrize(
    "title", ["销售额按季度", "المبيعات حسب الربع", "तिमाही बिक्री", "Umsätze je Quartal €"]
)
def test_titles_in_many_scripts(daemon, title):
    code = f"""
import matplotlib.pyplot as plt
plt.plot([1, 2, 3]); plt.title({title!r}); plt.savefig('t.png')
import matplotlib.pyplot as p
p.figure(); p.plot([1, 2, 3]); p.savefig('plain.png')
"""
    answer = daemon.execute(code)
    assert answer["stderr"] == "" and "Glyph" not in answer["stdout"]
    assert answer.file("t.png") != answer.file("plain.png")


def test_no_plot_no_image(daemon):
    daemon.execute("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()").ok()
    for _ in range(4):
        answer = daemon.execute("import matplotlib.pyplot as plt; print('none')")
        assert answer["stdout"] == "none\n" and "files" not in answer.json
