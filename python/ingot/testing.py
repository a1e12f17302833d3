"""torch.testing's comparisons."""
from . import _ingot
from ._ingot import Tensor

__all__ = ["assert_close"]

# PyTorch's tolerances by dtype: rtol, atol.
_TOLERANCES = {"float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float16": (1e-3, 1e-5)}


def _tolerances(actual, expected, rtol, atol):
    if (rtol is None) != (atol is None):
        raise ValueError("give both rtol and atol, or neither")
    if rtol is not None:
        return rtol, atol
    both = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
    return max(r for r, _ in both), max(a for _, a in both)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and shapes, dtypes and devices agree.
    Numbers, arrays, tensors, and nests of lists, tuples and dicts of them. check_layout and check_stride: every tensor here is dense and
    row-major."""
    given = dict(allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device,
                 check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride, msg=msg)

    def fail(text):
        raise AssertionError(msg(text) if callable(msg) else msg or text)

    if isinstance(expected, dict) and isinstance(actual, dict):
        if set(actual) != set(expected):
            fail(f"the keys differ: {sorted(map(str, actual))} and {sorted(map(str, expected))}")
        for k in expected:
            assert_close(actual[k], expected[k], **given)
        return
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            fail(f"the lengths differ: {len(actual)} and {len(expected)}")
        for a, b in zip(actual, expected):
            assert_close(a, b, **given)
        return
    if not allow_subclasses and type(actual) is not type(expected):
        fail(f"the types differ: {type(actual).__name__} and {type(expected).__name__}")
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    a, b = (t if isinstance(t, Tensor) else _ingot.tensor(t, dtype=_ingot.float64 if isinstance(t, float) else None)
            for t in (actual, expected))
    if tuple(a.shape) != tuple(b.shape):
        fail(f"the shapes differ: {list(a.shape)} and {list(b.shape)}")
    if check_device and a.device != b.device:
        fail(f"the devices differ: {a.device} and {b.device}")
    if check_dtype and not numbers and a.dtype is not b.dtype:
        fail(f"the dtypes differ: {a.dtype} and {b.dtype}")
    rtol, atol = _tolerances(a, b, rtol, atol)
    a, b = (t.detach().cpu().to(_ingot.float64) for t in (a, b))
    good = (a == b) | ((a - b).abs() <= atol + rtol * b.abs())
    if equal_nan:
        good = good | (a.isnan() & b.isnan())
    if not bool(good.all()):
        worst = _ingot.where(good, 0.0, (a - b).abs()).max().item()
        fail(f"{int((~good).sum())} of {a.numel()} elements differ; the largest difference is {worst} "
             f"(rtol {rtol}, atol {atol})")
