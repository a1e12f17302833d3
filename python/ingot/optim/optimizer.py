"""Optimizer: PyTorch's param_groups around the core's optimisers, which do the work."""
from operator import is_

from .. import _ingot
from .._ingot import Tensor


class Optimizer:
    """Groups of parameters with their options. Changing group["lr"] takes effect with the next step, without another plan; another
    option that is changed makes the core's optimiser anew, with its state."""

    _kind = None  # the core's class

    def __init__(self, params, defaults):
        self.defaults = dict(defaults)
        params = list(params)
        if not params:
            raise _ingot.ValueError(f"[{type(self).__name__}] there are no parameters\n  fix: pass model.parameters() of a model that has some")
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        self.param_groups = []
        for group in params:
            self._append(group)
        self._core = None
        self._build()

    def _append(self, group):
        group = {**self.defaults, **group}
        p = group["params"]
        group["params"] = [p] if isinstance(p, Tensor) else [x[1] if isinstance(x, tuple) else x for x in p]
        self.param_groups.append(group)

    def _options(self):
        return [{k: v for k, v in g.items() if k not in ("params", "initial_lr", "lr")} for g in self.param_groups]

    def _build(self):
        old = self._core.state() if self._core is not None else None
        groups = [{k: (float(v) if k == "lr" else v) for k, v in g.items() if v is not None} for g in self.param_groups]
        for g in groups:  # a whole number where the core wants a floating one
            g.update({k: float(v) for k, v in g.items() if type(v) is int and type(self.defaults.get(k)) is float})
        core = self._kind(groups)
        if old is not None:
            new = core.state()
            if len(new) == len(old):
                self._copy(old, new)
        self._core = core
        self._built = self._options()
        self._seen = None  # the groups' values when they last reached the core

    @staticmethod
    def _copy(source, target):
        guard = _ingot.NoGradGuard()
        guard.enter()
        try:
            for s, t in zip(source, target):
                t.copy_(s.to(t.device))
            _ingot.eval(target)
        finally:
            guard.exit()

    def _push_rates(self):
        """What the program changed in param_groups reaches the core."""
        if self._seen is not None and len(self._seen) == len(self.param_groups) and all(
                len(g) == len(seen) and all(map(is_, g.values(), seen)) for g, seen in zip(self.param_groups, self._seen)):
            return
        if self._options() != self._built:
            self._build()
        for i, g in enumerate(self.param_groups):
            lr = float(g["lr"])
            if lr != self._core.lr(i):
                self._core.set_lr(lr, i)
        self._seen = [list(g.values()) for g in self.param_groups]

    def add_param_group(self, group):
        self._append(group)
        self._core = None
        self._build()

    def step(self, closure=None, keep_gradients=False):
        """Updates every parameter that has a gradient, and takes the gradients away unless keep_gradients."""
        loss = closure() if closure is not None else None
        self._push_rates()
        self._core.step(keep_gradients)
        return loss

    def zero_grad(self, set_to_none=True):
        self._core.zero_grad()

    def state_dict(self):
        return {"state": {i: t.detach().clone() for i, t in enumerate(self._core.state())},
                "param_groups": [{k: v for k, v in g.items() if k != "params"} for g in self.param_groups]}

    def load_state_dict(self, state_dict):
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise _ingot.ValueError(f"[load_state_dict] {len(groups)} groups for an optimiser with {len(self.param_groups)}")
        for mine, theirs in zip(self.param_groups, groups):
            mine.update({k: (tuple(v) if isinstance(v, list) else v) for k, v in theirs.items() if k != "params"})
        self._push_rates()
        state = [state_dict["state"][k] for k in sorted(state_dict["state"])]
        mine = self._core.state()
        if len(state) != len(mine):
            raise _ingot.ValueError(f"[load_state_dict] {len(state)} state tensors for an optimiser with {len(mine)}")
        self._copy(state, mine)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, g in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {v}" for k, v in sorted(g.items()) if k != "params"]
        return "\n".join(lines + [")"])


def _optimizer(name, kind, doc, **defaults):
    """A class whose options, in order, are PyTorch's; foreach, fused, capturable and differentiable are taken and have no effect."""
    names = list(defaults)
    ignored = ("foreach", "fused", "capturable", "differentiable")

    def __init__(self, params, *args, **kwargs):
        unknown = [k for k in kwargs if k not in defaults and k not in ignored]
        if unknown or len(args) > len(names):
            raise TypeError(f"{name}() does not take {unknown or args}")
        Optimizer.__init__(self, params, {**defaults, **dict(zip(names, args)), **{k: v for k, v in kwargs.items() if k in defaults}})

    return type(name, (Optimizer,), {"__init__": __init__, "__doc__": doc, "__module__": __name__, "__qualname__": name, "_kind": kind})


SGD = _optimizer("SGD", _ingot.SGD, "Stochastic gradient descent with momentum.", lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0,
                 nesterov=False, maximize=False, master_weights=False)
Adam = _optimizer("Adam", _ingot.Adam, "Adam; weight_decay is added to the gradient.", lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                  weight_decay=0.0, amsgrad=False, maximize=False, decoupled_weight_decay=False, master_weights=False)
AdamW = _optimizer("AdamW", _ingot.AdamW, "Adam with decoupled weight decay.", lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
                   amsgrad=False, maximize=False, master_weights=False)
RMSprop = _optimizer("RMSprop", _ingot.RMSprop, "RMSprop.", lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False,
                     maximize=False, master_weights=False)
Adagrad = _optimizer("Adagrad", _ingot.Adagrad, "Adagrad.", lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0,
                     eps=1e-10, maximize=False, master_weights=False)
Adadelta = _optimizer("Adadelta", _ingot.Adadelta, "Adadelta.", lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False,
                      master_weights=False)
Adamax = _optimizer("Adamax", _ingot.Adamax, "Adamax.", lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False,
                    master_weights=False)
NAdam = _optimizer("NAdam", _ingot.NAdam, "NAdam.", lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
                   decoupled_weight_decay=False, maximize=False, master_weights=False)
RAdam = _optimizer("RAdam", _ingot.RAdam, "RAdam.", lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, decoupled_weight_decay=False,
                   maximize=False, master_weights=False)
Lion = _optimizer("Lion", _ingot.Lion, "The sign of an average of gradients; not in PyTorch.", lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0,
                  maximize=False, master_weights=False)
Muon = _optimizer("Muon", _ingot.Muon, "Momentum made orthogonal, for matrices.", lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
                  ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn="original", master_weights=False)
