"""Initial values, written into an existing tensor immediately; PyTorch's names and formulas."""
import math

from .. import _ingot
from ..autograd import no_grad


def _write(tensor, value):
    with no_grad():
        tensor.copy_(value)
    return tensor


def _like(tensor):
    return dict(dtype=tensor.dtype, device=tensor.device)


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    return _write(tensor, _ingot.rand(tensor.shape, generator=generator, **_like(tensor)) * (b - a) + a)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    return _write(tensor, _ingot.randn(tensor.shape, generator=generator, **_like(tensor)) * std + mean)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal values between a and b, by the inverse of the distribution."""
    low = math.erf((a - mean) / std / math.sqrt(2))
    high = math.erf((b - mean) / std / math.sqrt(2))
    u = _ingot.rand(tensor.shape, generator=generator, **_like(tensor)) * (high - low) + low
    return _write(tensor, (_ingot.erfinv(u) * (std * math.sqrt(2)) + mean).clamp(a, b))


def constant_(tensor, val):
    with no_grad():
        tensor.fill_(val)
    return tensor


def zeros_(tensor):
    return constant_(tensor, 0.0)


def ones_(tensor):
    return constant_(tensor, 1.0)


def eye_(tensor):
    return _write(tensor, _ingot.eye(tensor.size(0), tensor.size(1), **_like(tensor)))


def _fans(tensor):
    if tensor.dim() < 2:
        raise _ingot.ShapeError(f"[init] fan-in and fan-out need at least two dims, not {list(tensor.shape)}")
    field = 1
    for s in tensor.shape[2:]:
        field *= s
    return tensor.size(1) * field, tensor.size(0) * field


def calculate_gain(nonlinearity, param=None):
    gains = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
             "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains:
        raise _ingot.ValueError(f"[calculate_gain] {nonlinearity} is not known; there are {', '.join([*gains, 'leaky_relu'])}")
    return gains[nonlinearity]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    a = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise _ingot.ValueError(f"[kaiming] mode {mode} is not known; there are fan_in and fan_out")
    fan = _fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)
