"""The array API's elementwise functions. Two arrays compute in the type both promote to, whatever their dims."""
from .. import _ingot
from .._ingot import Tensor as _Tensor
from .types import _both, float64


def _unary(name, target=None, keep_integers=False, keep_bool=False):
    fn = getattr(_ingot, target or name)

    def function(x, /):
        if keep_integers and not x.is_floating_point():
            return x.clone()
        return fn(x)

    function.__name__ = function.__qualname__ = name
    return function


def _binary(name, target=None):
    fn = getattr(_ingot, target or name)

    def function(x1, x2, /):
        a, b = _both(x1, x2)
        return fn(a, b)

    function.__name__ = function.__qualname__ = name
    return function


for _name in "abs acos asin atan cos cosh exp expm1 log log1p log2 log10 logical_not reciprocal sin sinh sqrt square tan tanh".split():
    globals()[_name] = _unary(_name)
for _name in "acosh asinh atanh signbit".split():
    if hasattr(_ingot, _name):
        globals()[_name] = _unary(_name)
for _name in "ceil floor round trunc".split():
    globals()[_name] = _unary(_name, keep_integers=True)
bitwise_invert = _unary("bitwise_invert", "bitwise_not")
negative = _unary("negative", "neg")
for _name in "atan2 bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor maximum minimum pow".split():
    globals()[_name] = _binary(_name)
for _name in "copysign hypot logaddexp".split():
    if hasattr(_ingot, _name):
        globals()[_name] = _binary(_name)
for _name, _target in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"), ("equal", "eq"), ("not_equal", "ne"),
                       ("less", "lt"), ("less_equal", "le"), ("greater", "gt"), ("greater_equal", "ge"),
                       ("bitwise_left_shift", "bitwise_left_shift"), ("bitwise_right_shift", "bitwise_right_shift")):
    globals()[_name] = _binary(_name, _target)


def sign(x, /):
    y = _ingot.sign(x)
    return _ingot.where(x.isnan(), x, y) if x.is_floating_point() else y


def floor_divide(x1, x2, /):
    """As the standard says it: an infinity divided by a number is one, a number divided by an infinity 0 of its sign."""
    a, b = _both(x1, x2)
    y = _ingot.floor_divide(a, b)
    return _ingot.where(a.isinf() | b.isinf(), (a / b).floor(), y) if a.is_floating_point() else y


def remainder(x1, x2, /):
    a, b = _both(x1, x2)
    y = _ingot.remainder(a, b)
    return _ingot.where(y == 0, _ingot.copysign(y, b), y) if a.is_floating_point() else y


def imag(x, /):
    raise TypeError("imag is for complex arrays, which are not supported")


def positive(x, /):
    return x.clone()


def real(x, /):
    return x


def conj(x, /):
    return x


def isfinite(x, /):
    return _ingot.isfinite(x)


def isinf(x, /):
    return _ingot.isinf(x)


def isnan(x, /):
    return _ingot.isnan(x)


def clip(x, /, min=None, max=None):
    y = x
    if min is not None:
        low = min if isinstance(min, _Tensor) else _ingot.tensor(min, dtype=x.dtype if not isinstance(min, float) or x.is_floating_point() else float64)
        low = low.to(x.dtype) if low.dtype != x.dtype and x.is_floating_point() else low
        y = _ingot.maximum(y, low)
    if max is not None:
        high = max if isinstance(max, _Tensor) else _ingot.tensor(max, dtype=x.dtype if not isinstance(max, float) or x.is_floating_point() else float64)
        high = high.to(x.dtype) if high.dtype != x.dtype and x.is_floating_point() else high
        y = _ingot.minimum(y, high)
    return (y if y is not x else x.clone()).to(x.dtype)


def nextafter(x1, x2, /):
    """The next number towards x2, by the bits."""
    x, y = _both(x1, x2)
    if not x.is_floating_point():
        raise TypeError("nextafter needs floating arrays")
    import numpy

    return _ingot.tensor(numpy.asarray(numpy.nextafter(x.detach().numpy(), y.detach().numpy())))
