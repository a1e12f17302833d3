"""torch.special's names for functions of the package."""
from . import _ingot

_NAMES = {"digamma": "digamma", "psi": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid",
          "expm1": "expm1", "gammaln": "lgamma", "log1p": "log1p", "log_softmax": "log_softmax", "logit": "logit", "logsumexp": "logsumexp",
          "polygamma": "polygamma", "round": "round", "sinc": "sinc", "softmax": "softmax", "xlogy": "xlogy"}
globals().update({name: getattr(_ingot, target) for name, target in _NAMES.items() if hasattr(_ingot, target)})


def entr(input):
    """-x * log(x); 0 at 0, -inf below."""
    y = -input * _ingot.where(input > 0, input, 1.0).log()
    return _ingot.where(input < 0, float("-inf"), y)


def xlog1py(input, other):
    a = input if isinstance(input, _ingot.Tensor) else _ingot.tensor(input, dtype=other.dtype)
    return _ingot.where(a == 0, 0.0, a * (other.log1p() if isinstance(other, _ingot.Tensor) else _ingot.tensor(other, dtype=a.dtype).log1p()))


def ndtr(input):
    """The normal distribution's share below input."""
    return _ingot.erfc(-input * 0.5**0.5) * 0.5


def ndtri(input):
    return _ingot.erfinv(input * 2 - 1) * 2**0.5


def erfcx(input):
    return (input * input).exp() * _ingot.erfc(input)


def multigammaln(input, p):
    import math

    if not 1 <= p <= 1 << 16:
        raise _ingot.ValueError(f"[multigammaln] p is 1 to 65536, not {p}")
    steps = _ingot.arange(p, dtype=input.dtype, device=input.device) / -2.0
    return (input.unsqueeze(-1) + steps).lgamma().sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
