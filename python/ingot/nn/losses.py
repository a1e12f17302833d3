"""Losses as modules."""
import inspect

from . import functional as F
from .module import Module, _signature


def _loss(name, function, **defaults):
    """A module whose options, in order, are those of PyTorch's class; tensors among them are buffers."""
    names, given = list(inspect.signature(function).parameters), {}
    for k in [n for n in names if n in defaults or n in ("size_average", "reduce")]:
        given[k] = defaults.get(k)
    order, names = list(given), list(defaults)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        unknown = [k for k in kwargs if k not in given or k in order[:len(args)]]
        if unknown or len(args) > len(order):
            raise TypeError(f"{name}() does not take {unknown or args}")
        options = {**given, **dict(zip(order, args)), **kwargs}
        options["reduction"] = F._old_words(options.pop("size_average", None), options.pop("reduce", None), options["reduction"])
        F._check_reduction(options["reduction"])
        for k, v in options.items():
            if k in ("weight", "pos_weight"):
                self.register_buffer(k, v)
            else:
                object.__setattr__(self, k, v)

    __init__.__signature__ = _signature([], given)

    def forward(self, *inputs):
        return function(*inputs, **{k: getattr(self, k) for k in names})

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": __name__, "__qualname__": name,
                                  "__doc__": f"{function.__name__} as a module."})


CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)
NLLLoss = _loss("NLLLoss", F.nll_loss, weight=None, ignore_index=-100, reduction="mean")
MSELoss = _loss("MSELoss", F.mse_loss, reduction="mean")
L1Loss = _loss("L1Loss", F.l1_loss, reduction="mean")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, reduction="mean", beta=1.0)
HuberLoss = _loss("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
BCELoss = _loss("BCELoss", F.binary_cross_entropy, weight=None, reduction="mean")
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, weight=None, reduction="mean", pos_weight=None)
KLDivLoss = _loss("KLDivLoss", F.kl_div, reduction="mean", log_target=False)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0, reduction="mean")
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, margin=0.0, reduction="mean")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0, reduction="mean")
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean")
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, reduction="mean")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, eps=1e-8, reduction="mean")
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6, reduction="mean")
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, weight=None, reduction="mean")

__all__ = [n for n, v in list(globals().items()) if isinstance(v, type) and issubclass(v, Module) and v is not Module]
