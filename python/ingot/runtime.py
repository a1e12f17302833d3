"""When things run, and what a run does: eval, capture, explain, plan; progress bars."""
import sys
import time

from . import _ingot
from ._ingot import Tensor


def _flat(x, out):
    """The tensors of nested tuples, lists and dicts, in order; returns the same nest with their indices in their place."""
    if isinstance(x, Tensor):
        out.append(x)
        return ("tensor", len(out) - 1)
    if isinstance(x, (tuple, list)):
        return (type(x), [_flat(v, out) for v in x])
    if isinstance(x, dict):
        return (dict, [(k, _flat(v, out)) for k, v in x.items()])
    return ("value", x)


def _nest(form, tensors):
    kind, value = form
    if kind == "tensor":
        return tensors[value]
    if kind == "value":
        return value
    if kind is dict:
        return {k: _nest(v, tensors) for k, v in value}
    parts = [_nest(v, tensors) for v in value]
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def _key(form):
    kind, value = form
    if kind in ("tensor", "value"):
        return (kind, value if kind == "tensor" else repr(value))
    if kind is dict:
        return (kind, tuple((k, _key(v)) for k, v in value))
    return (kind, tuple(_key(v) for v in value))


def eval(*tensors):
    """Computes these tensors (or nests of them), with whatever else is pending, as one plan."""
    found = []
    _flat(tensors, found)
    _ingot.eval(found)


class capture:
    """step = capture(fn): the fastest way to repeat a step. The first call records, compiles and runs; later calls with tensors of
    the same shapes launch without recording or running fn's Python. State that changes must be updated in place (optimisers
    do); reading a value inside raises StateError. Arguments that are not tensors are part of what is captured."""

    def __init__(self, fn):
        self._fn = fn
        self._captured = {}

    def __call__(self, *args, **kwargs):
        inputs = []
        form = _flat((args, kwargs), inputs)
        key = _key(form)
        entry = self._captured.get(key)
        if entry is None:
            result_form, fn = [], self._fn

            def call(*tensors):  # does not hold self, which holds it
                a, k = _nest(form, tensors)
                out = []
                result_form[:] = [_flat(fn(*a, **k), out)]
                return tuple(out)

            entry = self._captured[key] = (_ingot.Captured(call), result_form)
        outputs = entry[0](inputs)
        return _nest(entry[1][0], outputs)


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False):
    """Accepted for compatibility with PyTorch: everything is compiled already. Returns the model or function as it is."""
    if model is None:
        return lambda m: m
    return model


def explain(what, *args, rates="", why=False, **kwargs):
    """The plan that would compute a tensor (or nest of tensors) now, or that a call what(*args, **kwargs) would: kernels, bytes,
    flops, times, memory. Nothing is run. rates="h200" predicts times on another device.
    why=True prints why library calls did not get the kernels that the device prefers, and composites none."""
    if callable(what) and not isinstance(what, Tensor):
        what = what(*args, **kwargs)
    found = []
    _flat(what, found)
    if not found:
        raise _ingot.ValueError("[explain] there is no tensor to explain\n  fix: return one from the function, or give one")
    return _ingot.explain(found, rates, why)


def plan(what, *args, **kwargs):
    """The text of explain()."""
    return explain(what, *args, **kwargs).text


class progress:
    """for batch in progress(loader): ... draws a bar in a terminal or a notebook, and a line at the end where there is neither.
    bar.set(loss=...) shows values beside it (numbers, or 0-d tensors, which are read only when drawn)."""

    def __init__(self, items, desc="", total=None, interval=0.2, file=None):
        self._items = items
        self._desc = desc
        self._total = total if total is not None else len(items) if hasattr(items, "__len__") else None
        self._interval = interval
        self._file = file or sys.stderr
        self._figures = {}
        self._handle = None
        self._live = False

    def set(self, **figures):
        self._figures.update(figures)

    def _text(self, n, seconds):
        rate = n / seconds if seconds > 0 else 0.0
        parts = [self._desc] if self._desc else []
        if self._total:
            filled = int(24 * n / self._total)
            parts.append("[" + "#" * filled + "." * (24 - filled) + f"] {n}/{self._total}")
        else:
            parts.append(str(n))
        parts.append(f"{rate:.1f}/s" if rate >= 1 or not n else f"{seconds / n:.1f} s each")
        if self._total and 0 < n < self._total and rate > 0:
            parts.append(f"{(self._total - n) / rate:.0f} s left")
        parts += [f"{k} {float(v):.4g}" if isinstance(v, (float, Tensor)) else f"{k} {v}" for k, v in self._figures.items()]
        return "  ".join(parts)

    def _draw(self, n, seconds, last):
        text = self._text(n, seconds)
        if self._notebook():
            from IPython.display import display

            if self._handle is None:
                self._handle = display({"text/plain": text}, raw=True, display_id=True)
            else:
                self._handle.update({"text/plain": text}, raw=True)
        elif self._file.isatty():
            self._file.write("\r\x1b[K" + text + ("\n" if last else ""))
            self._file.flush()
        elif last:
            self._file.write(text + "\n")

    @staticmethod
    def _notebook():
        ip = sys.modules.get("IPython")
        shell = ip.get_ipython() if ip is not None and hasattr(ip, "get_ipython") else None
        return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"

    def __len__(self):
        return self._total or 0

    def __iter__(self):
        begin = shown = time.perf_counter()
        n = 0
        try:
            for item in self._items:
                yield item
                n += 1
                now = time.perf_counter()
                if now - shown >= self._interval:
                    shown = now
                    self._draw(n, now - begin, False)
        finally:
            self._draw(n, time.perf_counter() - begin, True)
