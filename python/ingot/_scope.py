"""Context managers around the core's guards."""
import functools


class Scope:
    """A with statement, and a decorator of functions; open() makes the guard that enter() and exit() are called of."""

    def __init__(self, open):
        self._make = open
        self._open = []

    def __enter__(self):
        guard = self._make()
        guard.enter()
        self._open.append(guard)
        return self

    def __exit__(self, *exception):
        self._open.pop().exit()
        return False

    def __call__(self, fn):
        make = self._make

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with Scope(make):  # one per call: threads do not share it
                return fn(*args, **kwargs)

        return wrapped
