"""Layers with and without parameters, over nn.functional."""
import math

from .. import _ingot
from . import functional as F
from . import init
from .module import Module, Parameter

__all__ = ["Dropout", "Embedding", "Flatten", "GELU", "Identity", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "ReLU", "RMSNorm",
           "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh"]


def _empty(*size, device=None, dtype=None):
    return Parameter(_ingot.empty(*size, device=device, dtype=dtype))


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """x @ weight^T + bias over the last dim."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _empty(out_features, in_features, device=device, dtype=dtype)
        self.bias = _empty(out_features, device=device, dtype=dtype) if bias else None
        if not bias:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Embedding(Module):
    """Rows of a table by number."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.max_norm = num_embeddings, embedding_dim, max_norm
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        if _weight is not None:
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        else:
            self.weight = _empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, **options):
        return cls(*embeddings.shape, padding_idx=padding_idx, _weight=embeddings, _freeze=freeze, **options)

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with _no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}" + ("" if self.padding_idx is None else f", padding_idx={self.padding_idx}")


def _no_grad():
    from ..autograd import no_grad

    return no_grad()


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dims, then weight and bias."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", _empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None)
        self.register_parameter("bias", _empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last dims, times weight."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", _empty(self.normalized_shape, device=device, dtype=dtype) if elementwise_affine else None)
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class Dropout(Module):
    """Zeroes elements with probability p while training."""

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise _ingot.ValueError(f"[Dropout] p must lie between 0 and 1, but is {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


# ---- Functions as modules


def _activation(name, function, **defaults):
    """A module whose options, in order, are those of the function."""
    names = list(defaults)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        given = dict(zip(names, args))
        unknown = [k for k in kwargs if k not in defaults and k != "inplace"]
        if len(args) > len(names) + 1 or unknown:
            raise TypeError(f"{name}() does not take {unknown or args}")
        self._options = {**defaults, **given, **{k: v for k, v in kwargs.items() if k != "inplace"}}
        self.inplace = kwargs.get("inplace", False)
        for k, v in self._options.items():
            object.__setattr__(self, k, v)

    def forward(self, input):
        return function(input, **self._options)

    def extra_repr(self):
        return ", ".join(f"{k}={v!r}" for k, v in self._options.items())

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__module__": __name__,
                                  "__qualname__": name, "__doc__": f"{function.__name__}(input) as a module."})


ReLU = _activation("ReLU", F.relu)
Tanh = _activation("Tanh", F.tanh)
Sigmoid = _activation("Sigmoid", F.sigmoid)
SiLU = _activation("SiLU", F.silu)
GELU = _activation("GELU", F.gelu, approximate="none")
LeakyReLU = _activation("LeakyReLU", F.leaky_relu, negative_slope=0.01)
Softplus = _activation("Softplus", F.softplus, beta=1.0, threshold=20.0)
Softmax = _activation("Softmax", F.softmax, dim=None)
LogSoftmax = _activation("LogSoftmax", F.log_softmax, dim=None)
