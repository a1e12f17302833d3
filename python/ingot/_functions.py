"""Functions of the package that are written with the core's: other signatures, several results, Python's own names."""
import builtins
import math
from collections import namedtuple

from . import _ingot
from ._ingot import Tensor

__all__ = ["adjoint", "aminmax", "as_tensor", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "bernoulli", "block_diag",
           "broadcast_shapes", "broadcast_tensors",
           "can_cast", "cartesian_prod", "chain_matmul", "clone", "combinations", "cross",
           "cumulative_trapezoid", "detach", "diagonal_scatter", "diff", "dist", "dsplit", "einsum", "finfo",
           "get_default_dtype", "hsplit", "iinfo", "index_put", "is_floating_point", "is_nonzero", "is_tensor", "isin",
           "isreal", "manual_seed", "meshgrid", "mode", "multinomial", "nonzero", "norm", "normal", "numel",
           "positive", "promote_types", "randperm", "range", "renorm", "result_type", "scalar_tensor", "scatter",
           "select_scatter", "set_default_dtype", "set_float32_matmul_precision", "set_printoptions", "slice_scatter",
           "slogdet", "swish", "tensordot", "trapezoid", "trapz", "unique", "unique_consecutive", "vander", "view_copy",
           "vsplit"]


def as_tensor(data, dtype=None, device=None):
    """data itself if it is a tensor of that dtype and device; else a copy."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if type(data).__module__ == "numpy" and hasattr(data, "__array_interface__") and getattr(data, "ndim", 0) > 0:
        return _ingot.from_numpy(data).to(device=device, dtype=dtype)
    return _ingot.tensor(data, dtype=dtype, device=device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of any array, buffer, DLPack object, number or nested list. A tensor itself, and DLPack's memory, are not copied
    unless they must be, or copy=True; a NumPy array is, unless copy=False."""
    if isinstance(obj, Tensor):
        out = obj.to(device=device, dtype=dtype)
        if copy is False and out is not obj and (out.dtype is not obj.dtype or out.device != obj.device):
            raise ValueError("copy=False, but the type or the device is another")
        if copy:
            out = _ingot.tensor(out)
    elif hasattr(obj, "__array_interface__") and not copy and getattr(obj, "ndim", 0):
        out = _ingot.from_numpy(obj, share=copy is False).to(device=device, dtype=dtype)
    elif hasattr(obj, "__dlpack__") and not hasattr(obj, "__array_interface__"):
        out = _ingot.from_dlpack(obj, copy=copy).to(device=device, dtype=dtype)
    else:
        if copy is False:
            raise ValueError("copy=False, but numbers and lists can only be copied")
        out = _ingot.tensor(obj, dtype=dtype, device=device)
    if requires_grad:
        out.requires_grad_(True)
    return out


# ---- Facts


def is_tensor(obj):
    return isinstance(obj, Tensor)


def numel(input):
    return input.numel()


def clone(input, *, memory_format=None):
    return input.clone()


def detach(input):
    return input.detach()


def is_floating_point(input):
    return input.is_floating_point()


def is_nonzero(input):
    return builtins.bool(input)


def isreal(input):
    return _ingot.ones_like(input, dtype=_ingot.bool_)


def positive(input):
    return input


def adjoint(input):
    return input.mT


def broadcast_shapes(*shapes):
    """NumPy's broadcast of these shapes, as a tuple."""
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    n = builtins.max((len(s) for s in shapes), default=0)
    out = [1] * n
    for s in shapes:
        for k, size in enumerate(s):
            at = n - len(s) + k
            if out[at] != size and out[at] != 1 and size != 1:
                raise _ingot.ShapeError(f"[broadcast_shapes] shapes {[list(s) for s in shapes]} do not broadcast")
            if out[at] == 1:
                out[at] = size
    return tuple(out)


finfo_type = namedtuple("finfo", ["bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"])
iinfo_type = namedtuple("iinfo", ["bits", "max", "min", "dtype"])
_FLOATS = {"float64": (64, 52, 1023), "float32": (32, 23, 127), "float16": (16, 10, 15), "bfloat16": (16, 7, 127)}


def finfo(type=None):
    """What a floating dtype holds: eps, max, tiny, ..."""
    d = type.dtype if isinstance(type, Tensor) else type or _ingot.float32
    if d.name not in _FLOATS:
        raise TypeError(f"finfo() needs a floating dtype, not {d}")
    bits, mantissa, top = _FLOATS[d.name]
    eps, largest, tiny = 2.0**-mantissa, (2 - 2.0**-mantissa) * 2.0**top, 2.0 ** (1 - top)
    return finfo_type(bits, eps, largest, -largest, tiny, tiny, 10.0 ** -int(mantissa * math.log10(2)), d)


def iinfo(type):
    d = type.dtype if isinstance(type, Tensor) else type
    if d.is_floating_point or d is _ingot.bool_:
        raise TypeError(f"iinfo() needs an integer dtype, not {d}")
    bits = d.itemsize * 8
    return iinfo_type(bits, 2**bits - 1, 0, d) if d is _ingot.uint8 else iinfo_type(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), d)


def promote_types(type1, type2):
    return _ingot.promote_dtypes(type1, type2)


def result_type(*operands):
    """The dtype an operation of these tensors, numbers and dtypes has."""
    groups = {"dims": None, "0-d": None, "number": None}

    def merge(key, d):
        groups[key] = d if groups[key] is None else _ingot.promote_dtypes(groups[key], d)

    for o in operands:
        if isinstance(o, _ingot.dtype):
            merge("dims", o)
        elif isinstance(o, Tensor):
            merge("dims" if o.dim() else "0-d", o.dtype)
        else:
            merge("number", _ingot.bool_ if isinstance(o, builtins.bool) else _ingot.int64 if isinstance(o, int) else _ingot.float32)

    def kind(d):
        return -1 if d is None else 0 if d is _ingot.bool_ else 2 if d.is_floating_point else 1

    result = None
    for key in ("dims", "0-d", "number"):
        d = groups[key]
        if d is not None and kind(d) > kind(result):
            result = d
    return result


def can_cast(from_, to):
    def kind(d):
        return 0 if d is _ingot.bool_ else 2 if d.is_floating_point else 1

    from_ = from_.dtype if isinstance(from_, Tensor) else from_
    if kind(from_) > kind(to):
        return False
    return not (kind(from_) == 1 and kind(to) == 1 and from_ is not _ingot.uint8 and to is _ingot.uint8)


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    return _ingot.tensor(s, dtype=dtype or _ingot.float32, device=device, requires_grad=requires_grad)


def range(start=0, end=None, step=1, *, dtype=None, device=None):
    """Like arange, with the end included (PyTorch's old name)."""
    if end is None:
        start, end = 0, start
    n = int(math.floor((end - start) / step)) + 1
    return (_ingot.arange(n, dtype=_ingot.float64) * step + start).to(dtype=dtype or _ingot.float32, device=device)


# ---- Several results, other signatures


def aminmax(input, *, dim=None, keepdim=False):
    from . import return_types

    return return_types.aminmax(*_ingot.aminmax_pair(input, dim=dim, keepdim=keepdim))


def slogdet(input):
    from . import return_types

    return return_types.slogdet(*_ingot.slogdet_pair(input))


def mode(input, dim=-1, keepdim=False):
    """The most frequent value along dim (the smallest of several) and its last index."""
    from . import return_types

    if input.dim() == 0:
        return return_types.mode(input.clone(), _ingot.zeros((), dtype=_ingot.int64))
    x = input.movedim(dim, -1)
    counts = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    top = counts == counts.amax(-1, True)
    big = _ingot.where(top, x, _largest(x.dtype))
    value = big.amin(-1, True)
    n = x.size(-1)
    at = _ingot.where(x == value, _ingot.arange(n, device=x.device), -1).amax(-1, True)
    value = x.gather(-1, at)
    value, at = (v if keepdim else v.squeeze(-1) for v in (value, at))
    if keepdim:
        value, at = value.movedim(-1, dim), at.movedim(-1, dim)
    return return_types.mode(value, at)


def _largest(d):
    return math.inf if d.is_floating_point else iinfo(d).max if d is not _ingot.bool_ else True


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different values, sorted; with their indices and counts on request."""
    if dim is not None:
        return _unique_slices(input, dim, return_inverse, return_counts)
    values, inverse, counts = _ingot.unique_parts(input)
    out = [values] + [inverse] * return_inverse + [counts] * return_counts
    return out[0] if len(out) == 1 else tuple(out)


def _unique_slices(input, dim, return_inverse, return_counts):
    rows = input.movedim(dim, 0)
    flat = [tuple(r) for r in rows.reshape(rows.size(0), math.prod(rows.shape[1:])).tolist()]
    first, counts = {}, {}
    for at, r in enumerate(flat):
        first.setdefault(r, at)
        counts[r] = counts.get(r, 0) + 1
    order = builtins.sorted(first)
    number = {r: i for i, r in enumerate(order)}

    def whole(values):
        return _ingot.tensor(values, dtype=_ingot.int64, device=input.device)

    out = [rows.index_select(0, whole([first[r] for r in order])).movedim(0, dim)]
    if return_inverse:
        out.append(whole([number[r] for r in flat]))
    if return_counts:
        out.append(whole([counts[r] for r in order]))
    return out[0] if len(out) == 1 else tuple(out)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Merges runs of equal values; with dim, of equal slices along it."""
    rows = input.reshape(-1) if dim is None else input.movedim(dim, 0)
    n = rows.size(0)
    flat = rows.reshape(n, math.prod(rows.shape[1:]))
    begins = _ingot.cat([_ingot.ones(1, dtype=_ingot.bool_, device=input.device), (flat[1:] != flat[:-1]).any(1)]) if n else flat.any(1)
    at = nonzero(begins).reshape(-1)
    values = rows.index_select(0, at)
    out = [values if dim is None else values.movedim(0, dim)]
    if return_inverse:
        inverse = begins.to(_ingot.int64).cumsum(0) - 1
        out.append(inverse.reshape(input.shape) if dim is None else inverse)
    if return_counts:
        out.append(_ingot.cat([at[1:], _ingot.tensor([n], device=input.device)]) - at if n else at)
    return out[0] if len(out) == 1 else tuple(out)


def nonzero(input, *, as_tuple=False):
    """Where the input is not zero: [count, dims], or one vector per dim."""
    return _ingot.where(input != 0) if as_tuple else _ingot.nonzero_rows(input)


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    """input with src's elements (or value) written at index along dim."""
    if (src is None) == (value is None):
        raise TypeError("scatter() takes either src or value")
    src = value if src is None else src
    if reduce not in (None, "add", "multiply"):
        raise _ingot.ValueError(f"[scatter] reduce is 'add', 'multiply' or None, not {reduce!r}\n  fix: scatter_reduce() has more")
    if reduce is None:
        return _ingot.scatter_set(input, dim, index, src)
    if not isinstance(src, Tensor):
        src = _ingot.full(index.shape, src, dtype=input.dtype, device=input.device)
    return _ingot.scatter_reduce(input, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])


def index_put(input, indices, values, accumulate=False):
    """input with input[indices] = values, or += with accumulate."""
    from . import _indexing

    out = input.clone()
    if not accumulate:
        _indexing.set(out, tuple(indices), values)
        return out
    flat = _ingot.arange(input.numel(), device=input.device).reshape(input.shape)
    at = _indexing.get(flat, tuple(indices))
    return _ingot.put(input, at.reshape(-1), values.expand(at.shape).reshape(-1), True)


def select_scatter(input, src, dim, index):
    out = input.clone()
    out.select(dim, index).copy_(src)
    return out


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    out = input.clone()
    out[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)] = src
    return out


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    at = _ingot.arange(input.numel(), device=input.device).reshape(input.shape).diagonal(offset, dim1, dim2)
    return _ingot.put(input, at.reshape(-1), src.reshape(-1))


def _operands(tensors):
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)


def broadcast_tensors(*tensors):
    return _ingot.broadcast_list(_operands(tensors))


def _at_least(dims):
    core = getattr(_ingot, f"atleast_{dims}d")

    def function(*tensors):
        many = len(tensors) > 1 or isinstance(tensors[0], (tuple, list))
        return tuple(core(x) for x in _operands(tensors)) if many else core(tensors[0])

    function.__name__ = function.__qualname__ = core.__name__
    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def block_diag(*tensors):
    return _ingot.block_diag_list([t if isinstance(t, Tensor) else _ingot.tensor(t) for t in tensors])


def meshgrid(*tensors, indexing="ij"):
    return _ingot.meshgrid_list(_operands(tensors), indexing or "ij")


def cartesian_prod(*tensors):
    if len(tensors) == 1:
        return tensors[0]
    return _ingot.stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    import itertools

    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(pick(builtins.range(input.size(0)), r))
    if not rows:
        return _ingot.zeros(0, r, dtype=input.dtype)
    at = _ingot.tensor(rows)
    return input.index_select(0, at.reshape(-1)).reshape(at.shape)


def einsum(equation, *operands):
    return _ingot.einsum_list(equation, _operands(operands))


def tensordot(a, b, dims=2):
    if isinstance(dims, int):
        return _ingot.tensordot_n(a, b, dims)
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    for i, j in zip(first, second):  # a dim of size 1 broadcasts against the other
        if a.size(i) == 1 != b.size(j):
            b = b.sum(j, True)
        elif b.size(j) == 1 != a.size(i):
            a = a.sum(i, True)
    return _ingot.tensordot_dims(a, b, first, second)


def chain_matmul(*matrices):
    return _ingot.multi_dot(_operands(matrices))


def cross(input, other, dim=None):
    if dim is None:  # PyTorch's: the first dim of size 3
        dim = next((d for d, s in enumerate(input.shape) if s == 3), -1)
    return _ingot.linalg_cross(input, other, dim=dim)


def norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    """A vector's p-norm over dim; "fro" is the 2-norm."""
    x = input if dtype is None else input.to(dtype)
    if isinstance(p, str) and p != "fro":
        raise _ingot.UnsupportedError(f"[norm] p={p!r} is not supported: p is a number or 'fro'")
    return _ingot.vector_norm(x, 2.0 if p in ("fro", None) else float(p), dim, keepdim)


def dist(input, other, p=2):
    return _ingot.vector_norm((input - other).reshape(-1), float(p))


def renorm(input, p, dim, maxnorm):
    dims = [d for d in builtins.range(input.dim()) if d != dim % input.dim()]
    norms = _ingot.vector_norm(input, float(p), dims, True)
    return _ingot.where(norms > maxnorm, input * (maxnorm / (norms + 1e-7)), input)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    if n == 0:
        return input
    parts = [t for t in (prepend, input, append) if t is not None]
    x = _ingot.cat(parts, dim) if len(parts) > 1 else input
    for _ in builtins.range(n):
        size = x.size(dim)
        if size == 0:
            return x
        a, b = x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1)
        x = a ^ b if x.dtype is _ingot.bool_ else a - b
    return x


def _pairs(y, x, dx, dim):
    n = y.size(dim)
    mean = (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)) / 2
    if x is None:
        return mean * (1 if dx is None else dx)
    steps = diff(x, dim=-1 if x.dim() == 1 else dim)
    if x.dim() == 1:
        steps = steps.reshape([-1 if d == dim % y.dim() else 1 for d in builtins.range(y.dim())])
    return mean * steps


def trapezoid(y, x=None, *, dx=None, dim=-1):
    return _pairs(y, x, dx, dim).sum(dim)


trapz = trapezoid


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    return _pairs(y, x, dx, dim).cumsum(dim)


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    a = elements if isinstance(elements, Tensor) else _ingot.tensor(elements)
    b = test_elements if isinstance(test_elements, Tensor) else _ingot.tensor(test_elements)
    found = (a.unsqueeze(-1) == b.reshape(-1)).any(-1)
    return ~found if invert else found


def vander(x, N=None, increasing=False):
    n = x.size(0) if N is None else N
    powers = _ingot.arange(n, device=x.device)
    return x.unsqueeze(-1) ** (powers if increasing else powers.flip(0))


def _split_along(name, input, indices_or_sections, dim):
    """Into equal pieces, or at the indices."""
    if isinstance(indices_or_sections, int) and input.dim() > dim:
        size = input.size(dim)
        if indices_or_sections < 1 or size % indices_or_sections:
            raise _ingot.ValueError(f"[{name}] {indices_or_sections} sections do not divide dim {dim} of {list(input.shape)}, which has "
                                    f"{size} elements")
    return input.tensor_split(indices_or_sections, dim)


def hsplit(input, indices_or_sections):
    return _split_along("hsplit", input, indices_or_sections, 0 if input.dim() == 1 else 1)


def vsplit(input, indices_or_sections):
    return _split_along("vsplit", input, indices_or_sections, 0)


def dsplit(input, indices_or_sections):
    return _split_along("dsplit", input, indices_or_sections, 2)


# ---- Random numbers


def bernoulli(input, p=None, *, generator=None):
    """1 with the probability each element holds (or p), else 0."""
    if p is None:
        return _ingot.bernoulli(input, generator)
    if not 0 <= p <= 1:
        raise _ingot.ValueError(f"[bernoulli] p is a probability, between 0 and 1, not {p}")
    return (_ingot.rand(input.shape, device=input.device, generator=generator) < p).to(input.dtype)


def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    """Normal values with these means and standard deviations, which are numbers (of a size) or tensors."""
    if not isinstance(std, Tensor) and not std >= 0:
        raise _ingot.ValueError(f"[normal] std is {std}, but cannot be negative")
    if size is not None:
        return _ingot.randn(size, generator=generator, dtype=dtype, device=device) * std + mean
    if not isinstance(std, Tensor):
        return _ingot.randn(mean.shape, generator=generator, dtype=dtype or mean.dtype, device=device or mean.device) * std + mean
    if not isinstance(mean, Tensor):
        mean = _ingot.full((), mean, dtype=std.dtype, device=std.device)
    out = _ingot.normal(mean, std, generator)
    return out if dtype is None and device is None else out.to(device=device or out.device, dtype=dtype or out.dtype)


def randperm(n, *, generator=None, dtype=None, device=None):
    """0..n-1 in random order."""
    keys = _ingot.rand(n, dtype=_ingot.float64, device=device, generator=generator)
    return keys.argsort().to(dtype=dtype or _ingot.int64)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """num_samples indices per row, drawn with the rows' values as unnormalised probabilities."""
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    n = rows.size(-1)
    if not _ingot.is_capturing():  # a captured function reads no values
        sums = rows.to(_ingot.float64).sum(-1)
        if not builtins.bool(((rows >= 0).all() & sums.isfinite().all() & (sums > 0).all())):
            raise _ingot.ValueError("[multinomial] the probabilities contain a value that is negative, infinite or NaN, or a row whose sum "
                                    "is 0\n  fix: give weights of 0 or more, at least one of them above 0")
    if replacement:
        edges = rows.to(_ingot.float64).cumsum(-1)
        u = _ingot.rand(rows.size(0), num_samples, dtype=_ingot.float64, device=input.device, generator=generator) * edges[:, -1:]
        out = _ingot.searchsorted(edges, u, right=True).clamp(max=n - 1)
    else:
        noise = _ingot.rand(rows.shape, dtype=_ingot.float64, device=input.device, generator=generator)
        keys = _ingot.where(rows > 0, -noise.log() / rows, math.inf)
        out = keys.topk(num_samples, -1, largest=False).indices
    return out if input.dim() == 2 else out.squeeze(0)


def manual_seed(seed):
    """Seeds the default generator and returns it."""
    return _ingot.manual_seed(seed & 0xFFFFFFFFFFFFFFFF)


# ---- Accepted for compatibility with PyTorch


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Has no effect: Ingot prints four digits and the edges of large tensors."""


def get_default_dtype():
    return _ingot.float32


def set_default_dtype(d):
    if d is not _ingot.float32:
        raise _ingot.UnsupportedError("Ingot's default dtype is float32; give dtype= where you want another")


def set_float32_matmul_precision(precision):
    """Has no effect: products of float32 are float32 products."""
    if precision not in ("highest", "high", "medium"):
        raise _ingot.ValueError(f"[set_float32_matmul_precision] precision is 'highest', 'high' or 'medium', not {precision!r}")


def swish(input):
    return _ingot.silu(input)


def view_copy(input, size):
    return input.reshape(size).clone()
