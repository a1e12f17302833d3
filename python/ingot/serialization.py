"""save and load: safetensors files, which hold tensors under names and no code."""
import json
import struct

from . import _ingot
from ._ingot import Tensor

_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "I16": "int16",
          "I8": "int8", "U8": "uint8", "BOOL": "bool"}
_CODES = {name: code for code, name in _NAMES.items()}


def _flatten(obj, prefix, tensors, rest):
    """Nested dicts of tensors become dotted names; what is no tensor goes into the header as JSON."""
    for key, value in obj.items():
        name = f"{prefix}{key}"
        if isinstance(value, Tensor):
            tensors[name] = value
        elif isinstance(value, dict) and value:
            rest["/" + name] = {str(k): type(k).__name__ for k in value}
            _flatten(value, name + "/", tensors, rest)
        else:
            rest[name] = value


def save(obj, f):
    """Writes a dict of tensors (a state_dict; dicts inside it, numbers, strings and lists are kept too) as a safetensors file."""
    if isinstance(obj, Tensor):
        obj = {"": obj}
    if not isinstance(obj, dict):
        raise _ingot.ValueError(f"[save] wants a dict of tensors or a tensor, not {type(obj).__name__}\n  fix: save(model.state_dict(), path)")
    tensors, rest = {}, {}
    _flatten(obj, "", tensors, rest)
    header, at, payloads = {}, 0, []
    _ingot.eval([t.detach() for t in tensors.values()])
    for name, t in tensors.items():
        data = _ingot.to_bytes(t.detach())
        header[name] = {"dtype": _CODES[t.dtype.name], "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        payloads.append(data)
    try:
        header["__metadata__"] = {"format": "ingot", "rest": json.dumps(rest)}
    except TypeError as e:
        raise _ingot.ValueError(f"[save] a value in the dict is neither a tensor nor JSON: {e}") from None
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    out = open(f, "wb") if not hasattr(f, "write") else f
    try:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for data in payloads:
            out.write(data)
    finally:
        if out is not f:
            out.close()


def _key(name, kind):
    return int(name) if kind == "int" else name


def _unflatten(flat, rest):
    kinds = {k[1:]: v for k, v in rest.items() if k.startswith("/")}
    out = {}
    for name, value in list(flat.items()) + [(k, v) for k, v in rest.items() if not k.startswith("/")]:
        here, path, parent = out, "", None
        parts = name.split("/")
        for i, part in enumerate(parts):
            key = _key(part, kinds.get(path, {}).get(part, "str")) if path else part
            if i == len(parts) - 1:
                here[key] = value
            else:
                here = here.setdefault(key, {})
                path = path + "/" + part if path else part
    return out


def _is_safetensors(path):
    with open(path, "rb") as file:
        raw = file.read(9)
    return len(raw) == 9 and raw[8:9] == b"{" and 0 < struct.unpack("<Q", raw[:8])[0] < 1 << 30


def load(f, map_location=None, **ignored):
    """Reads a safetensors file into a dict of tensors, on map_location or the CPU; also the tensors of files that torch.save,
    numpy.save and numpy.savez wrote (nested names joined by dots). weights_only and mmap are taken and have no effect."""
    if not hasattr(f, "read") and not _is_safetensors(f):
        tensors = _ingot.load_tensors(str(f))
        return {name: t if map_location is None else t.to(map_location) for name, t in tensors.items()}
    source = open(f, "rb") if not hasattr(f, "read") else f
    try:
        raw = source.read(8)
        size = struct.unpack("<Q", raw)[0] if len(raw) == 8 else -1
        if not 0 < size < 1 << 30:
            raise _ingot.IoError(f"[load] {f} is no safetensors file\n  fix: files of torch.save are read by torch.load and saved with ingot.save")
        try:
            header = json.loads(source.read(size))
        except ValueError:
            raise _ingot.IoError(f"[load] the header of {f} is broken") from None
        data = source.read()
    finally:
        if source is not f:
            source.close()
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in _NAMES or end > len(data) or begin > end:
            raise _ingot.IoError(f"[load] {name} in {f} has an unknown type or lies outside the file")
        t = _ingot.from_bytes(data[begin:end], _ingot.dtype_named(_NAMES[entry["dtype"]]), tuple(entry["shape"]))
        tensors[name] = t if map_location is None else t.to(map_location)
    if set(tensors) == {""}:
        return tensors[""]
    rest = json.loads(meta["rest"]) if "rest" in meta else {}
    return _unflatten(tensors, rest)
