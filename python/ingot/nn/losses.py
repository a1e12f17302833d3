"""Losses as modules."""
from . import functional as F
from .module import Module

__all__ = ["CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]


def _loss(name, function, **defaults):
    """A module whose options, in order, are those of PyTorch's class; tensors among them are buffers."""
    names = list(defaults)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        unknown = [k for k in kwargs if k not in defaults and k not in ("size_average", "reduce")]
        if unknown or len(args) > len(names):
            raise TypeError(f"{name}() does not take {unknown or args}")
        options = {**defaults, **dict(zip(names, args)), **{k: v for k, v in kwargs.items() if k in defaults}}
        for k, v in options.items():
            if k in ("weight", "pos_weight"):
                self.register_buffer(k, v)
            else:
                object.__setattr__(self, k, v)

    def forward(self, *inputs):
        return function(*inputs, **{k: getattr(self, k) for k in names})

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": __name__, "__qualname__": name,
                                  "__doc__": f"{function.__name__} as a module."})


CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)
NLLLoss = _loss("NLLLoss", F.nll_loss, weight=None, ignore_index=-100, reduction="mean")
MSELoss = _loss("MSELoss", F.mse_loss, reduction="mean")
L1Loss = _loss("L1Loss", F.l1_loss, reduction="mean")
