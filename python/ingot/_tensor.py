"""Methods of Tensor that are easier to write in Python: iteration, copying, pickling, formats, NumPy's protocol."""
import copy
import copyreg
import math

from . import _ingot
from ._ingot import Tensor


def _iter(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _unbind(self, dim=0):
    """The slices along dim, as a tuple."""
    return tuple(self.select(dim, i) for i in range(self.size(dim)))


def _contains(self, element):
    return bool((self == element).any())


def _format(self, spec):
    if self.dim() == 0:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _array(self, dtype=None, copy=None):
    import numpy

    a = self.detach().numpy()
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return numpy.array(a) if copy else a


def _as_kind(kind, t, state):
    """t as an object of a class derived from Tensor, with the attributes in state."""
    if kind is Tensor:
        return t
    made = kind.__new__(kind)
    Tensor.__init__(made, t)
    made.__dict__.update(state)
    return made


def _rebuild(kind, payload, dtype, shape, device, requires_grad, state):
    t = _ingot.from_bytes(payload, dtype, shape)
    try:
        t = t.to(device)
    except _ingot.DeviceError:
        pass  # pickled on a machine with a GPU, read on one without
    if requires_grad:
        t.requires_grad_(True)
    return _as_kind(kind, t, state)


def _reduce(self, protocol):
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("only leaves can be pickled or deep-copied: x.detach() drops the history")
    state = getattr(self, "__dict__", {})
    return _rebuild, (type(self), _ingot.to_bytes(self.detach()), self.dtype, self.shape, self.device.name, self.requires_grad, dict(state))


def _copy(self):
    """copy.copy(x): another handle on the same tensor."""
    return _as_kind(type(self), Tensor(self), getattr(self, "__dict__", {}))


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("only leaves can be deep-copied: x.detach() drops the history")
    t = self.detach().clone().detach()
    if self.requires_grad:
        t.requires_grad_(True)
        if self._grad is not None:
            t.grad = self._grad.detach().clone().detach()
    t = _as_kind(type(self), t, {})
    memo[id(self)] = t
    for name, value in getattr(self, "__dict__", {}).items():
        t.__dict__[name] = copy.deepcopy(value, memo)
    return t


def _reduce_function(fn):
    """A function of the core, by its name: so modules that hold one (activation=F.gelu) can be copied and pickled."""
    return _function, (fn.__qualname__,)


def _function(path):
    found = _ingot
    for name in path.split("."):
        found = getattr(found, name)
    return found


# Functions of _functions.py that are methods too.
_METHODS = ("aminmax cross diff dist hsplit vsplit dsplit index_put mode nonzero norm renorm scatter "
            "select_scatter slice_scatter diagonal_scatter slogdet unique unique_consecutive bernoulli multinomial positive isreal adjoint").split()

# x.name_(...) is x.copy_(x.name(...)): the same handle names the new value.
_IN_PLACE = ("abs absolute acos addbmm addcdiv addcmul addmm addmv addr arccos arcsin arctan asin atan atan2 baddbmm "
             "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip "
             "copysign cos cosh cumprod cumsum divide eq erf erfc exp exp2 expm1 fix float_power floor "
             "floor_divide fmod ge greater greater_equal gt heaviside hypot index_add index_copy index_fill index_put ldexp le lerp "
             "less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill "
             "masked_scatter multiply nan_to_num ne neg negative not_equal pow put reciprocal relu remainder renorm round rsqrt "
             "scatter scatter_add scatter_reduce sgn sigmoid sign sin sinh sqrt square subtract tan tanh tril triu "
             "true_divide trunc xlogy").split()


def _in_place(name):
    def method(self, *args, **kwargs):
        return self.copy_(getattr(self, name)(*args, **kwargs))

    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"{name}(), written into this tensor."
    return method


def uniform_(self, from_=0.0, to=1.0, *, generator=None, **words):
    """This tensor filled with uniform values between from and to."""
    if set(words) - {"from"}:
        raise TypeError(f"uniform_() does not take {', '.join(words)}")
    low = words.get("from", from_)
    if not low <= to:
        raise _ingot.ValueError(f"[uniform_] from={low} is above to={to}")
    return self.copy_(_ingot.rand(self.shape, generator=generator, **_like(self)) * (to - low) + low)


def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """This tensor filled with normal values."""
    if not std >= 0:
        raise _ingot.ValueError(f"[normal_] std is {std}, but cannot be negative")
    return self.copy_(_ingot.randn(self.shape, generator=generator, **_like(self)) * std + mean)


def bernoulli_(self, p=0.5, *, generator=None):
    """This tensor filled with ones with probability p (a number, or a tensor of one for each element), else zeros."""
    if isinstance(p, Tensor):
        return self.copy_(_ingot.bernoulli(p.expand(self.shape), generator))
    if not 0 <= p <= 1:
        raise _ingot.ValueError(f"[bernoulli_] p is a probability, between 0 and 1, not {p}")
    return self.copy_(_ingot.rand(self.shape, generator=generator, device=self.device) < p)


_WHOLE = {"float32": 24, "float16": 11, "bfloat16": 8, "bool": 1, "int8": 7, "uint8": 8, "int16": 15}


def random_(self, from_=0, to=None, *, generator=None, **words):
    """This tensor filled with integers from `from` to to - 1; with one argument from 0; with none, all that the dtype holds (of wider
    ones those below 2^31)."""
    if set(words) - {"from"}:
        raise TypeError(f"random_() does not take {', '.join(words)}")
    low, high = words.get("from", from_), to
    if high is None:
        low, high = (0, low) if low or words else (0, 2 ** _WHOLE.get(self.dtype.name, 31))
    whole = self.dtype if not self.dtype.is_floating_point and self.dtype is not _ingot.bool_ else _ingot.int64
    return self.copy_(_ingot.randint(low, high, self.shape, generator=generator, device=self.device, dtype=whole))


def exponential_(self, lambd=1.0, *, generator=None):
    """This tensor filled with values of the exponential distribution."""
    if not lambd > 0:
        raise _ingot.ValueError(f"[exponential_] lambd is {lambd}, but must be above 0")
    return self.copy_(-(1 - _ingot.rand(self.shape, generator=generator, **_like(self))).log() / lambd)


def _like(self):
    return dict(dtype=self.dtype, device=self.device)


def _made(self, dtype, device, requires_grad):
    return dict(dtype=dtype or self.dtype, device=self.device if device is None else device, requires_grad=requires_grad)


def _new(name):
    """zeros(), ones() or empty() with the tensor's dtype and device."""
    function = getattr(_ingot, name)

    def method(self, *size, dtype=None, device=None, requires_grad=False, **words):
        if words:
            if set(words) != {"size"} or size:
                raise TypeError(f"new_{name}() takes sizes, dtype, device and requires_grad, not {', '.join(words)}")
            size = (words["size"],)
        return function(*size, **_made(self, dtype, device, requires_grad))

    method.__name__ = method.__qualname__ = "new_" + name
    return method


def _new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    return _ingot.full(size, fill_value, **_made(self, dtype, device, requires_grad))


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return _ingot.tensor(data, **_made(self, dtype, device, requires_grad))


def _type(self, dtype=None):
    return f"ingot.{self.dtype.name}" if dtype is None else self.to(dtype)


def _tile(self, *dims):
    return _ingot.tile(self, dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims)


def _fill_diagonal(self, value, wrap=False):
    sizes = list(self.shape)
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise _ingot.ShapeError(f"[fill_diagonal_] is for matrices, and for more dims of one size, not for {sizes}")
    step = 1 + sum(math.prod(sizes[k:]) for k in range(1, len(sizes)))
    n = self.numel() if wrap and len(sizes) == 2 else min(self.numel(), sizes[1] * math.prod(sizes[1:]))
    at = _ingot.arange(self.numel(), device=self.device)
    return self.copy_(_ingot.where(((at % step == 0) & (at < n)).reshape(sizes), value, self))


def _html(self):
    """What a notebook shows: the values, and a line on shape, type and device."""
    import html

    facts = f"shape {list(self.shape)}, {self.dtype.name}, {self.device.name}" + (", requires gradients" if self.requires_grad else "")
    return f"<pre>{html.escape(repr(self))}</pre><small>{html.escape(facts)}</small>"


def _namespace(self, *, api_version=None):
    """The array API standard's functions for tensors."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(f"version {api_version} of the array API is not supported")
    from . import array_api

    return array_api


def _to_device(self, device, /, *, stream=None):
    if stream is not None:
        raise _ingot.UnsupportedError("[to_device] streams are not supported\n  fix: leave stream out")
    return self.to(device)


def _add_parts():
    from . import _functions

    for name in _METHODS:
        setattr(Tensor, name, getattr(_functions, name))
    for name in (*_IN_PLACE, *_ingot._in_place_functions):
        setattr(Tensor, name + "_", _in_place(name))
    for method in (uniform_, normal_, bernoulli_, random_, exponential_):
        setattr(Tensor, method.__name__, method)
    for name in ("zeros", "ones", "empty"):
        setattr(Tensor, "new_" + name, _new(name))
    Tensor.new_full, Tensor.new_tensor = _new_full, _new_tensor
    Tensor.__iter__ = _iter
    if not hasattr(Tensor, "unbind"):
        Tensor.unbind = _unbind
    Tensor.__contains__ = _contains
    Tensor.__format__ = _format
    Tensor.__array__ = _array
    Tensor.__array_priority__ = 1000
    Tensor.__reduce_ex__ = _reduce
    Tensor.__copy__ = _copy
    Tensor.__deepcopy__ = _deepcopy
    for function in (_ingot.relu, Tensor.relu):
        copyreg.pickle(type(function), _reduce_function)
    Tensor.__hash__ = object.__hash__
    Tensor._repr_html_ = _html
    Tensor.type = _type
    Tensor.__array_namespace__ = _namespace
    Tensor.__complex__ = lambda self: complex(self.item())
    Tensor.to_device = _to_device
    Tensor.tile = _tile
    Tensor.fill_diagonal_ = _fill_diagonal
    Tensor.is_sparse = Tensor.is_quantized = Tensor.is_meta = property(lambda self: False)
    Tensor.is_signed = lambda self: self.dtype.is_signed
    Tensor.pin_memory = lambda self, device=None: self
    Tensor.share_memory_ = lambda self: self
    Tensor.detach_ = lambda self: self.copy_(self.detach())


_add_parts()
