"""Context managers around the core's guards."""
import functools
import inspect


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
        if inspect.isgeneratorfunction(fn):
            return _wrapped_generator(fn, make)

        @functools.wraps(fn)
        def wrapped(*args, **kwargs):
            with Scope(make):  # one per call: threads do not share it
                return fn(*args, **kwargs)

        return wrapped


def _wrapped_generator(fn, make):
    """The generator runs inside the scope; what its caller does between two values does not."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        generator = fn(*args, **kwargs)
        step, given = generator.send, None
        while True:
            try:
                with Scope(make):
                    value = step(given)
            except StopIteration as end:
                return end.value
            try:
                given = yield value
                step = generator.send
            except GeneratorExit:
                with Scope(make):
                    generator.close()
                raise
            except BaseException as e:
                step, given = generator.throw, e

    return wrapped
