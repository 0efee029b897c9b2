"""Waiting for a condition, with a bound that says what was awaited."""

import time

from harness import settings

_PAUSE_S = 0.02


def wait_until(condition, seconds, what):
    """Calls `condition` until it is true; fails after `seconds` (times the slack).

    `what` is a sentence, or a function that makes one out of the state at the end.
    """
    deadline = time.monotonic() + seconds * settings.SLACK
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what() if callable(what) else what
            raise AssertionError(f"not within {seconds * settings.SLACK:g} s: {text}")
        time.sleep(_PAUSE_S)


def holds_within(condition, seconds):
    """True as soon as `condition` is, False when it is not in time."""
    try:
        wait_until(condition, seconds, "")
    except AssertionError:
        return False
    return True
