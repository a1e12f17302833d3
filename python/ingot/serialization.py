"""save and load: safetensors files, which hold tensors under names and no code. How the values were nested, and what is not a tensor,
is in the file's metadata as JSON; what JSON does not have is an object {"$": kind, "v": value} there."""
import argparse
import json
import os

from . import _ingot
from ._ingot import Tensor

_TREE = "ingot.tree"
_DEEPEST = 100


def _path(f):
    return os.fsencode(f)


def _shown(path):
    return "".join(f"[{k!r}]" for k in path) or "the object itself"


class _Writer:
    """Splits a value into named tensors and a tree of everything else."""

    def __init__(self):
        self.tensors, self._names, self._open = [], set(), set()

    def _fail(self, what, path, fix):
        raise _ingot.ValueError(f"[save] {_shown(path)} is {what}\n  fix: {fix}")

    def _name(self, path):
        # The joined keys, for other readers of the file; the tree holds the keys themselves.
        name = base = ".".join(str(k) for k in path).encode("utf-8", "backslashreplace") or b"tensor"
        n = 2
        while name in self._names or name == b"__metadata__":
            name, n = base + b"~%d" % n, n + 1
        self._names.add(name)
        return name

    def _tensor(self, kind, t, path, **more):
        name = self._name(path)
        self.tensors.append((name, t.detach()))
        return {"$": kind, "v": name.decode(), **more}

    def _pairs(self, value, path):
        return [[self.tree(k, path), self.tree(v, path + (k,))] for k, v in value.items()]

    def tree(self, value, path):
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Tensor):
            kind = "tensor" if type(value) is Tensor else "parameter" if type(value).__name__ == "Parameter" else "tensor"
            return self._tensor(kind, value, path, **({"grad": True} if value.requires_grad and value.is_leaf else {}))
        if id(value) in self._open or len(path) > _DEEPEST:
            self._fail("part of itself" if id(value) in self._open else "nested too deeply", path, "save the parts you need separately")
        self._open.add(id(value))
        try:
            return self._nested(value, path)
        finally:
            self._open.discard(id(value))

    def _nested(self, value, path):
        if isinstance(value, dict):
            plain = all(type(k) is str for k in value) and "$" not in value
            return {k: self.tree(v, path + (k,)) for k, v in value.items()} if plain else {"$": "dict", "v": self._pairs(value, path)}
        if isinstance(value, argparse.Namespace):
            return {"$": "namespace", "v": self._pairs(vars(value), path)}
        if isinstance(value, (list, tuple, set, frozenset)):
            kind = next(k for k in (list, tuple, set, frozenset) if isinstance(value, k))
            items = [self.tree(v, path + (i,)) for i, v in enumerate(value)]
            return items if kind is list else {"$": kind.__name__, "v": items}
        if isinstance(value, (bytes, bytearray)):
            return {"$": "bytes", "v": bytes(value).hex()}
        if isinstance(value, complex):
            return {"$": "complex", "v": [value.real, value.imag]}
        if isinstance(value, _ingot.dtype):
            return {"$": "dtype", "v": value.name}
        if isinstance(value, _ingot.device):
            return {"$": "device", "v": value.name}
        for kind in (bool, int, float, str):  # of that class itself: NumPy's float64, enums of numbers
            if isinstance(value, kind):
                return kind(value)
        return self._foreign(value, path)

    def _foreign(self, value, path):
        if type(value).__module__ == "numpy":
            if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 and not hasattr(value, "__setitem__"):
                return self.tree(value.item(), path)
            if hasattr(value, "dtype") and value.dtype.kind in "fiub":
                try:
                    return self._tensor("ndarray", _ingot.tensor(value), path)
                except TypeError:
                    pass
        if hasattr(value, "state_dict"):
            self._fail(f"a {type(value).__name__}, an object with its own code: only a pickle could hold it, and a pickle runs code when "
                       "it is read", path, "save its state: save(model.state_dict(), path), and load_state_dict() of a new object later")
        self._fail(f"of type {type(value).__name__}: a file holds tensors, numbers, strings, None, lists, tuples, sets, dicts, "
                   "argparse.Namespace and NumPy arrays", path, "save its parts")


def save(obj, f):
    """Writes a tensor, or dicts and lists of tensors, numbers and strings (a state_dict; {"epoch": 3, "model": ..., "args": ...}), as a
    safetensors file. The new file replaces an old one atomically: a program that is killed, or a disk that is full, leaves
    the old one intact. f is a path or has write()."""
    writer = _Writer()
    tree = writer.tree(obj, ())
    _ingot.eval([t for _, t in writer.tensors])
    metadata = {"format": "ingot", _TREE: json.dumps(tree, separators=(",", ":"))}
    if hasattr(f, "write"):
        _ingot.write_safetensors(f.write, writer.tensors, metadata)
    else:
        _ingot.save_safetensors(_path(f), writer.tensors, metadata)


def _dtype(name):
    try:
        return _ingot.dtype_named(name)
    except Exception:  # one of PyTorch's that is not here
        return "torch." + name


def _device(name):
    try:
        return _ingot.device(name)
    except _ingot.DeviceError:  # not in this machine
        return name


def _reader(tensors, place):
    """Builds a value from a tree's node."""

    def take(node):
        t = tensors[node["v"]]
        if place is not None and node["$"] != "ndarray":
            t = t.to(place)
        return t.detach().requires_grad_(True) if node.get("grad") else t

    def pairs(node):
        return {read(k): read(v) for k, v in node["v"]}

    def parameter(node):
        from .nn import Parameter

        return Parameter(take({**node, "grad": False}), bool(node.get("grad")))

    kinds = {
        "tensor": take,
        "parameter": parameter,
        "ndarray": lambda node: take(node).numpy(),
        "dict": pairs,
        "namespace": lambda node: argparse.Namespace(**pairs(node)),
        "tuple": lambda node: tuple(map(read, node["v"])),
        "set": lambda node: set(map(read, node["v"])),
        "frozenset": lambda node: frozenset(map(read, node["v"])),
        "bytes": lambda node: bytes.fromhex(node["v"]),
        "complex": lambda node: complex(*node["v"]),
        "dtype": lambda node: _dtype(node["v"]),
        "device": lambda node: _device(node["v"]),
    }

    def read(node):
        if isinstance(node, dict):
            return kinds[node["$"]](node) if "$" in node else {k: read(v) for k, v in node.items()}
        return [read(v) for v in node] if isinstance(node, list) else node

    return read


def _place(map_location):
    if map_location is None or isinstance(map_location, (str, int, _ingot.device)):
        return map_location
    if isinstance(map_location, dict):  # CPU tensors go where the dict says
        return map_location.get("cpu")
    raise TypeError(f"load: map_location is a device, its name, or a dict of names, not {type(map_location).__name__}")


def load(f, map_location=None, *, weights_only=True, mmap=None):
    """What save() wrote, its tensors on map_location or the CPU; also the values of a file that torch.save wrote, nested as they were,
    and the tensors of other safetensors files, of numpy.save and of numpy.savez, by name. f is a path or has read().
    Nothing in a file is ever executed, and files are always mapped: weights_only and mmap change nothing."""
    place = _place(map_location)
    if hasattr(f, "read"):
        shown = str(getattr(f, "name", type(f).__name__))
        named, metadata, tree = _ingot.load_contents_bytes(f.read(), shown)
    else:
        shown = os.fsdecode(f)
        named, metadata, tree = _ingot.load_contents(_path(f))
    own = metadata.get(_TREE) if not tree else None
    if not tree and own is None:
        return {name: t if place is None else t.to(place) for name, t in named}
    try:
        tensors = dict(named) if own is not None else [t for _, t in named]
        return _reader(tensors, place)(json.loads(tree or own))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as e:
        if isinstance(e, _ingot.Error):
            raise
        raise _ingot.IoError(f"[load] \"{shown}\": its tree of values is damaged ({type(e).__name__}: {e})") from None
