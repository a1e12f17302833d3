"""Indices with tensors, lists and bools in them (x[mask], x[:, rows], x[a, b] = v), taken apart into the core's functions.

The basic parts (integers, slices, None, ...) are applied first, as views. What remains are index tensors for some dims: those dims
are moved to the front and merged, and their indices combined into one each."""
import math

from . import _ingot
from ._ingot import Tensor


def _as_index(item):
    """An index tensor, or the item itself when it is basic."""
    if isinstance(item, Tensor):
        if item.is_floating_point():
            raise _ingot.IndexError(f"[index] a tensor of {item.dtype.name} cannot be an index\n  fix: convert it with .long()")
        return item
    if isinstance(item, bool):
        return _ingot.tensor(item)
    if isinstance(item, range):
        return _ingot.tensor(list(item), dtype=_ingot.int64)
    if isinstance(item, (list, tuple)):
        t = _ingot.tensor(item) if len(item) else _ingot.zeros(0, dtype=_ingot.int64)
        return _as_index(t)
    if type(item).__module__ == "numpy":
        return _as_index(_ingot.tensor(item))
    return item


def _split(x, index):
    """(view of x, [(dim, index tensor)]): the basic parts applied, masks converted to indices."""
    items = index if isinstance(index, tuple) else (index,)
    if isinstance(index, list) and any(isinstance(i, (slice, type(None), type(Ellipsis), Tensor, list)) for i in index) and not all(
            isinstance(i, list) for i in index):
        items = tuple(index)
    items = [_as_index(i) for i in items]

    def width(i):
        if i is None or i is Ellipsis:
            return 0
        return i.dim() if isinstance(i, Tensor) and i.dtype is _ingot.bool_ else 1

    used = sum(width(i) for i in items)
    if used > x.dim():
        raise _ingot.IndexError(f"[index] {used} indices for a tensor of {x.dim()} dims")
    if not any(i is Ellipsis for i in items):
        items.append(Ellipsis)
    basic, advanced, dim = [], [], 0  # dim: in the view
    for i in items:
        if i is Ellipsis:
            n = x.dim() - used
            basic += [slice(None)] * n
            dim += n
        elif i is None:
            basic.append(None)
            dim += 1
        elif isinstance(i, Tensor) and i.dtype is _ingot.bool_:
            if i.dim() == 0:  # a new dim, taken or not
                basic.append(None)
                advanced.append((dim, _ingot.zeros(1 if i.item() else 0, dtype=_ingot.int64)))
                dim += 1
                continue
            at = len([b for b in basic if b is not None])
            if any(size not in (0, own) for size, own in zip(i.shape, x.shape[at:at + i.dim()])):  # by the array API 0 takes nothing of any size
                raise _ingot.IndexError(f"[index] a mask of shape {list(i.shape)} on dims of sizes {list(x.shape[at:at + i.dim()])}")
            for column in _ingot.where(i.to(x.device)):
                basic.append(slice(None))
                advanced.append((dim, column))
                dim += 1
        elif isinstance(i, Tensor):
            basic.append(slice(None))
            advanced.append((dim, i))
            dim += 1
        else:
            basic.append(i)
            dim += 0 if not isinstance(i, slice) else 1
    return x[tuple(basic)], advanced


def _flat(view, advanced):
    """(rows, indices, shape of the indices, where they go): view with the indexed dims merged into the leading one, and one index per row."""
    dims = [d for d, _ in advanced]
    indices = [i.to(view.device) for _, i in advanced]
    if len(indices) > 1:
        indices = list(_broadcast(indices))
    shape = indices[0].shape
    rest = [d for d in range(view.dim()) if d not in dims]
    rows = view.permute(dims + rest)
    sizes = [view.shape[d] for d in dims]
    number = None
    for size, i in zip(sizes, indices):
        i = i.to(_ingot.int64)
        if len(indices) > 1:  # each is checked separately, before they are combined
            i = _ingot.pick_rows(_ingot.arange(size, device=view.device), i.reshape(-1)).reshape(shape)
        number = i if number is None else number * size + i
    rows = rows.reshape([math.prod(sizes)] + [view.shape[d] for d in rest])
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    return rows, number.reshape(-1), list(shape), dims[0] if together else 0


def _broadcast(tensors):
    shape = _ingot.broadcast_shapes(*(t.shape for t in tensors)) if hasattr(_ingot, "broadcast_shapes") else _shape(tensors)
    return [t.expand(shape) for t in tensors]


def _shape(tensors):
    n = max(t.dim() for t in tensors)
    out = [1] * n
    for t in tensors:
        for k, s in enumerate(t.shape):
            at = n - t.dim() + k
            if out[at] != s and s != 1 and out[at] != 1:
                raise _ingot.IndexError(f"[index] index tensors of shapes {[list(t.shape) for t in tensors]} do not broadcast")
            out[at] = s if out[at] == 1 else out[at]
    return out


def get(x, index):
    view, advanced = _split(x, index)
    if not advanced:
        return view
    rows, numbers, shape, place = _flat(view, advanced)
    rest = list(rows.shape[1:])
    out = _ingot.pick_rows(rows, numbers).reshape(shape + rest)
    if place:  # the indices' dims are where the first indexed dim was
        n = len(shape)
        out = out.permute(list(range(n, n + place)) + list(range(n)) + list(range(n + place, out.dim())))
    return out


def _mask_only(x, index):
    if isinstance(index, Tensor) and index.dtype is _ingot.bool_:
        return index
    if isinstance(index, tuple) and len(index) == 1:
        return _mask_only(x, index[0])
    return None


def set(x, index, value):
    if not isinstance(value, Tensor):
        value = _ingot.tensor(value, dtype=x.dtype, device=x.device)
    mask = _mask_only(x, index)
    if mask is not None and mask.dim() and value.numel() == 1 and tuple(mask.shape) == tuple(x.shape[:mask.dim()]):
        mask = mask.reshape(list(mask.shape) + [1] * (x.dim() - mask.dim()))
        x.copy_(_ingot.where(mask.to(x.device), value.reshape(()).to(x.dtype), x))
        return
    view, advanced = _split(x, index)
    value = value.to(device=x.device, dtype=x.dtype)
    if not advanced:
        view.copy_(value)
        return
    rows, numbers, shape, place = _flat(view, advanced)
    rest = list(rows.shape[1:])
    n = len(shape)
    target = rest[:place] + shape + rest[place:]
    value = value.expand(target) if list(value.shape) != target else value
    if place:
        value = value.permute(list(range(place, place + n)) + list(range(place)) + list(range(place + n, len(target))))
    new = _ingot.put_rows(rows, numbers, value.reshape([numbers.numel()] + rest))
    dims = [d for d, _ in advanced]
    others = [d for d in range(view.dim()) if d not in dims]
    order = dims + others
    new = new.reshape([view.shape[d] for d in order]).permute([order.index(d) for d in range(view.dim())])
    view.copy_(new)
