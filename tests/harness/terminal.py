"""A command on a terminal of its own: what it draws, and the keys that are pressed."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from harness import settings


class Terminal:
    """The command's controlling terminal; standard input, output and error are that terminal."""

    def __init__(self, command, environment, directory, rows=24, columns=80):
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(directory)
                os.execvpe(command[0], list(map(os.fsencode, command)), environment)
            finally:
                os._exit(126)
        self.resize(rows, columns)
        self.status = None

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys)

    def read(self, seconds=0.05):
        """Takes what has come; False when the other side is closed for good."""
        readable, _, _ = select.select([self.master], [], [], seconds)
        if not readable:
            return True
        try:
            part = os.read(self.master, 65536)
        except OSError:  # nobody has the terminal open any more
            return False
        self.seen += part
        return bool(part)

    def read_until(self, pattern, seconds=20):
        """Everything seen so far, once `pattern` (bytes, a regular expression) is in it."""
        deadline = time.monotonic() + seconds * settings.SLACK
        while not re.search(pattern, self.seen):
            assert time.monotonic() < deadline, f"{pattern} did not come: {self.seen!r}"
            assert self.read(), f"ended without {pattern}: {self.seen!r}"
        return self.seen

    def wait(self, seconds=30):
        """The exit status as a shell shows it, after everything has been read."""
        deadline = time.monotonic() + seconds * settings.SLACK
        while self.status is None:
            assert time.monotonic() < deadline, f"it does not end: {self.seen!r}"
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code
        while self.master is not None and select.select([self.master], [], [], 0)[0]:
            if not self.read(0):
                break
        return self.status

    def hang_up(self):
        """As when the window is closed."""
        os.close(self.master)
        self.master = None

    def wait_after_hang_up(self, seconds=30):
        deadline = time.monotonic() + seconds * settings.SLACK
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
            assert time.monotonic() < deadline, "it does not end"
            time.sleep(0.02)

    def end(self):
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        if self.master is not None:
            os.close(self.master)


def screen(data):
    """The lines that are left on a screen of endless size, for what our commands use: text, CR, LF
    and "erase to the end of the line". Anything else that moves or colours is an error."""
    lines, column = [""], 0
    for piece in re.split(rb"(\r|\n|\x1b\[K)", data):
        if piece == b"\r":
            column = 0
        elif piece == b"\n":
            lines.append("")
            column = 0
        elif piece == b"\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            text = piece.decode()
            assert "\x1b" not in text, f"what is this: {text!r}"
            lines[-1] = lines[-1][:column] + text + lines[-1][column + len(text) :]
            column += len(text)
    return lines
