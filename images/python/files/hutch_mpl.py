"""The matplotlib backend of the image (MPLBACKEND=module://hutch_mpl): Agg, and show() saves.

There is no screen in a sandbox, and a figure that is only shown would be lost. Here `plt.show()`
writes each figure that the program has not saved itself as `figure-<n>.png` into the current
directory, then closes the figures, as a window that is closed does. Each figure comes out once: a
figure that savefig has written before is left alone, and one that savefig writes afterwards takes
back the file that show() made of it, if the program has not touched that file.

`fig.show()`, `plt.show(block=False)`, `plt.pause()` and show() after `plt.ion()` leave figures
open; shown again, such a figure is written anew into its own file. `n` counts from 1; a file that
is there already is never written over, its number is passed by.

A directory that cannot be written costs one line on standard error, never an exception.
"""

import io
import itertools
import os
import sys
import weakref

import matplotlib
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

_numbers = itertools.count(1)
_saved = weakref.WeakSet()  # figures that the program has written itself
_shown = weakref.WeakKeyDictionary()  # figure -> _Shown


class _Shown:
    """A file that show() has written, and how to tell that it is still that file."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self._mark = self._look()

    def untouched(self):
        return self._mark is not None and self._look() == self._mark

    def is_target(self, target):
        try:
            return os.path.samefile(self.path, target)
        except (OSError, TypeError, ValueError):
            return False

    def _look(self):
        try:
            status = os.lstat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _create_next():
    """A new file, under the first number from the count on that is free."""
    while True:
        path = f"figure-{next(_numbers)}.png"
        try:
            return path, open(path, "xb")
        except FileExistsError:
            continue


def _write(figure):
    picture = io.BytesIO()
    FigureCanvasAgg.print_figure(figure.canvas, picture, format="png")
    path, earlier = None, _shown.get(figure)
    try:
        if earlier and earlier.untouched():
            path, file = earlier.path, open(earlier.path, "wb")
        else:
            path, file = _create_next()
        with file:
            file.write(picture.getbuffer())
    except OSError as error:
        _discard(path)
        print(f"matplotlib: the figure could not be saved: {error.strerror}", file=sys.stderr)
        return
    _shown[figure] = _Shown(path)


def _discard(path):
    """Half a picture is worth less than none."""
    try:
        if path:
            os.unlink(path)
    except OSError:
        pass


class FigureManager(FigureManagerBase):
    def show(self):
        if self.canvas.figure not in _saved:
            _write(self.canvas.figure)

    def destroy(self):
        """Keeps this module's canvas on a closed figure, so that a later savefig is noticed."""

    @classmethod
    def pyplot_show(cls, *, block=None):
        managers = Gcf.get_all_fig_managers()
        for manager in managers:
            manager.show()
        if block or (block is None and not matplotlib.is_interactive()):
            for manager in managers:
                Gcf.destroy(manager)


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager

    def print_figure(self, filename, *arguments, **options):
        figure = self.figure
        earlier = _shown.get(figure)
        replaced = earlier is not None and earlier.untouched()
        result = super().print_figure(filename, *arguments, **options)
        _saved.add(figure)
        if replaced and not earlier.is_target(filename):
            _discard(earlier.path)
        _shown.pop(figure, None)
        return result
