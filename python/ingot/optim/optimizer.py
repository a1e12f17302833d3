"""Optimizer: PyTorch's param_groups around the core's optimisers, which do the work."""
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
        core = self._kind(groups)
        if old is not None:
            new = core.state()
            if len(new) == len(old):
                self._copy(old, new)
        self._core = core
        self._built = self._options()

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
        if self._options() != self._built:
            self._build()
        for i, g in enumerate(self.param_groups):
            lr = float(g["lr"])
            if lr != self._core.lr(i):
                self._core.set_lr(lr, i)

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


class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    _kind = _ingot.SGD

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
                 differentiable=False, fused=None):
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                                      maximize=maximize))


class Adam(Optimizer):
    """Adam; weight_decay is added to the gradient."""

    _kind = _ingot.Adam

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=None):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize))


class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    _kind = _ingot.AdamW

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=None):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize))
