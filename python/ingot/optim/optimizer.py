"""Optimizer: PyTorch's param_groups around the core's optimisers, which do the work; or the base of one written in Python."""
import collections
import functools
import itertools
from operator import is_

from .. import _ingot
from .._ingot import Tensor
from ..nn.module import _signature


class _Hook:
    """Removes a hook."""

    def __init__(self, hooks, hook):
        self._hooks, self._key = hooks, next(_Hook._numbers)
        hooks[self._key] = hook

    _numbers = itertools.count()

    def remove(self):
        self._hooks.pop(self._key, None)


def _hooked(step):
    """step() with the hooks around it, once where one step() calls another."""

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        hooks = self.__dict__.get("_step_hooks")
        if not hooks or self._stepping:
            return step(self, *args, **kwargs)
        self._stepping = True
        try:
            for hook in tuple(hooks[0].values()):
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            out = step(self, *args, **kwargs)
            for hook in tuple(hooks[1].values()):
                hook(self, args, kwargs)
            return out
        finally:
            self._stepping = False

    return run


class Optimizer:
    """Groups of parameters with their options. Changing group["lr"], or a momentum, takes effect with the next step, without another plan;
    changing another option recreates the core's optimiser, with its state.

    Your own class passes parameters and defaults to super().__init__() and writes step(): it finds the gradients in p.grad, keeps what it
    needs in self.state[p], and changes parameters under no_grad()."""

    _kind = None  # the core's class; None in an optimiser written in Python
    _names = ()  # its state tensors' names, in the core's order
    _stepping = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _hooked(cls.__dict__["step"])

    def __init__(self, params, defaults):
        self.defaults = dict(defaults)
        params = [params] if isinstance(params, Tensor) else list(params)
        if not params:
            raise _ingot.ValueError(f"[{type(self).__name__}] there are no parameters\n  fix: pass model.parameters() of a model that has some")
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        self._own_state = collections.defaultdict(dict)
        self._core = None
        self.param_groups = []
        for group in params:
            self._append(group)
        if self._kind is not None:
            self._build()

    def _append(self, group):
        group = {**self.defaults, **group}
        p = group["params"]
        group["params"] = [p] if isinstance(p, Tensor) else [x[1] if isinstance(x, tuple) else x for x in p]
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"{type(self).__name__} optimises tensors, not {type(p).__name__}")
        known = {id(p) for p in self._params()}
        if any(id(p) in known for p in group["params"]) or len({id(p) for p in group["params"]}) < len(group["params"]):
            raise _ingot.ValueError(f"[{type(self).__name__}] a parameter is given twice\n  fix: give each parameter once")
        self.param_groups.append(group)

    def _params(self):
        return [p for g in self.param_groups for p in g["params"]]

    # ---- The core

    def _momentum(self, i, group):
        """The group's momentum where the core takes another one without being recreated, or None."""
        if not self._core.has_momentum(i):
            return None
        return group["momentum"] if "momentum" in group else group["betas"][0] if "betas" in group else None

    def _options(self):
        """The options the core was created with and cannot change."""
        out = []
        for i, g in enumerate(self.param_groups):
            options = {k: g[k] for k in self.defaults if k in g and k != "lr"}
            if self._core is not None and self._momentum(i, g) is not None:
                if "momentum" in options:
                    del options["momentum"]
                else:
                    options["betas"] = options["betas"][1]
            out.append((options, [id(p) for p in g["params"]]))
        return out

    def _make(self):
        groups = [{k: (float(v) if k == "lr" else v) for k, v in g.items() if v is not None} for g in self.param_groups]
        for g in groups:  # an integer where the core expects a float
            g.update({k: float(v) for k, v in g.items() if type(v) is int and type(self.defaults.get(k)) is float})
        return self._kind(groups)

    def _build(self, core=None):
        core = core or self._make()
        if self._core is not None:
            core.adopt(self._core)
        self._core = core
        self._built = self._options()
        self._momenta = [self._momentum(i, g) for i, g in enumerate(self.param_groups)]
        self._seen = None  # the groups' values when they last reached the core

    def _push_rates(self):
        """Passes the program's changes of param_groups to the core."""
        if self._core is None:
            raise _ingot.UnsupportedError(f"[{type(self).__name__}] an optimiser written in Python cannot be used here\n"
                                          "  fix: divide the gradients and call its step() yourself")
        if self._seen is not None and len(self._seen) == len(self.param_groups) and all(
                len(g) == len(seen) and all(map(is_, g.values(), seen)) for g, seen in zip(self.param_groups, self._seen)):
            return
        if self._options() != self._built:
            self._build()
        for i, g in enumerate(self.param_groups):
            lr = float(g["lr"])
            if lr != self._core.lr(i):
                self._core.set_lr(lr, i)
            momentum = self._momentum(i, g)
            if momentum is not None and momentum != self._momenta[i]:
                self._core.set_momentum(float(momentum), i)
                self._momenta[i] = momentum
        self._seen = [list(g.values()) for g in self.param_groups]

    def add_param_group(self, param_group):
        """More parameters, with separate options; all others keep their state."""
        self._append(param_group)
        if self._core is not None:
            try:
                self._build()
            except BaseException:
                self.param_groups.pop()
                raise

    # ---- Steps

    def step(self, closure=None, keep_gradients=False):
        """Updates every parameter that has a gradient. Gradients stay after the first two steps, and after all others once the program
        has used one after a step, or with keep_gradients; otherwise the step clears them, which saves their memory."""
        if self._kind is None:
            raise NotImplementedError(f"{type(self).__name__} does not define step()")
        loss = None
        if closure is not None:
            from ..autograd import enable_grad

            with enable_grad():
                loss = closure()
        self._push_rates()
        self._core.step(keep_gradients)
        return loss

    step = _hooked(step)

    def zero_grad(self, set_to_none=True):
        """Clears the gradients: to None, or, without set_to_none, to zeros."""
        if not set_to_none:
            _ingot.zero_gradients(self._params())
        elif self._core is not None:
            self._core.zero_grad()
        else:
            for p in self._params():
                p.grad = None

    def register_step_pre_hook(self, hook):
        """hook(optimizer, args, kwargs) runs before each step(); what it returns, if anything, are the new args and kwargs."""
        return _Hook(self.__dict__.setdefault("_step_hooks", ({}, {}))[0], hook)

    def register_step_post_hook(self, hook):
        """hook(optimizer, args, kwargs) runs after each step()."""
        return _Hook(self.__dict__.setdefault("_step_hooks", ({}, {}))[1], hook)

    # ---- State

    def _names_of(self, group):
        names = list(self._names)
        if not group.get("centered", True):
            names.remove("grad_avg")
        return names

    def _entries(self):
        """Each parameter's state in the core, by PyTorch's names."""
        groups = [g for g in self.param_groups for _ in g["params"]]
        for g, (tensors, master, steps, product) in zip(groups, self._core.parameter_states()):
            entry = {"step": steps}
            if product is not None:
                entry["mu_product"] = product
            entry.update(zip(self._names_of(g), tensors))
            if master is not None:
                entry["master_weight"] = master
            yield entry

    @property
    def state(self):
        """parameter -> its state, by names; of the core's optimisers the tensors themselves, in a dict made for this call."""
        if self._core is None:
            return self._own_state
        return collections.defaultdict(dict, zip(self._params(), self._entries()))

    @state.setter
    def state(self, value):
        self._own_state = value

    def state_dict(self):
        """PyTorch's layout: {"state": {index: {name: value}}, "param_groups": [...]}, parameters by their indices."""
        numbers = itertools.count()
        groups = [{**g, "params": list(itertools.islice(numbers, len(g["params"])))} for g in self.param_groups]
        state = self.state
        return {"state": {i: {k: v.detach().clone() if isinstance(v, Tensor) else v for k, v in state[p].items()}
                          for i, p in enumerate(self._params()) if p in state},
                "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Restores what state_dict() returned; PyTorch's own fits too. Nothing changes when it does not fit."""
        groups, saved = state_dict["param_groups"], state_dict["state"]
        sizes = [len(g["params"]) if "params" in g else len(m["params"]) for g, m in zip(groups, self.param_groups)]
        if len(groups) != len(self.param_groups) or sizes != [len(g["params"]) for g in self.param_groups]:
            raise _ingot.ValueError(f"[load_state_dict] the state has {len(groups)} groups of {sizes} parameters, this optimiser has "
                                    f"{len(self.param_groups)} of {[len(g['params']) for g in self.param_groups]}\n"
                                    "  fix: create the optimiser over the same parameters as the one that was saved")
        keys = [k for g, m in zip(groups, self.param_groups) for k in g.get("params", range(len(m["params"])))]
        entries = [saved.get(k, {}) for k in keys]
        params = self._params()
        for i, (p, entry) in enumerate(zip(params, entries)):
            for name in self._names:
                if name in entry and tuple(entry[name].shape) != tuple(p.shape):
                    raise _ingot.ShapeError(f"[load_state_dict] {name} of parameter {i} is {list(entry[name].shape)}, the parameter {list(p.shape)}")
        for mine, theirs in zip(self.param_groups, groups):
            mine.update({k: (tuple(v) if isinstance(v, list) else v) for k, v in theirs.items() if k != "params"})
        if self._core is None:
            self._own_state = collections.defaultdict(dict)
            for p, entry in zip(params, entries):
                if entry:
                    self._own_state[p] = {k: v.detach().clone().to(p.device) if isinstance(v, Tensor) else v for k, v in entry.items()}
            return
        fresh = self._make()
        self._core = None
        self._build(fresh)
        self._fill(entries)

    def _fill(self, entries):
        """Writes values into the state of a new core."""
        guard, targets = _ingot.NoGradGuard(), []
        guard.enter()
        try:
            for mine, entry in zip(self._entries(), entries):
                for name in (*self._names, "master_weight"):
                    if name in mine and entry.get(name) is not None:
                        mine[name].copy_(entry[name].to(mine[name].device))
                        targets.append(mine[name])
            _ingot.eval(targets)
        finally:
            guard.exit()
        self._core.set_steps([float(e.get("step", 0)) for e in entries], [float(e.get("mu_product", 1)) for e in entries])

    def __getstate__(self):
        state = {k: v for k, v in self.__dict__.items() if k not in ("_core", "_built", "_momenta", "_seen", "_step_hooks", "_stepping")}
        if self._core is not None:
            state["_saved"] = [{k: float(v) if k in ("step", "mu_product") else v.detach().clone() for k, v in e.items()} for e in self._entries()]
        return state

    def __setstate__(self, state):
        saved = state.pop("_saved", None)
        self.__dict__.update(state)
        self._core = None
        if saved is not None:
            self._build()
            self._fill(saved)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, g in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {v}" for k, v in sorted(g.items()) if k != "params"]
        return "\n".join(lines + [")"])


_STATE = {"SGD": "momentum_buffer", "Adam": "exp_avg exp_avg_sq max_exp_avg_sq", "AdamW": "exp_avg exp_avg_sq max_exp_avg_sq",
          "RMSprop": "square_avg grad_avg momentum_buffer", "Adagrad": "sum", "Adadelta": "square_avg acc_delta", "Adamax": "exp_avg exp_inf",
          "NAdam": "exp_avg exp_avg_sq", "RAdam": "exp_avg exp_avg_sq", "Lion": "exp_avg", "Muon": "momentum_buffer"}


# PyTorch's hints (python/ingot/_hints.py): a step is one plan in any case.
_HINTS = {"foreach": None, "fused": None, "capturable": False}


def _refuse(name, kwargs):
    if kwargs.get("differentiable"):
        raise _ingot.UnsupportedError(f"[{name}] differentiable=True is not supported: no gradient flows through a step\n"
                                      "  fix: write the update with operations")
    if kwargs.get("foreach") and kwargs.get("fused"):
        raise _ingot.ValueError(f"[{name}] foreach and fused cannot both be True")


def _optimizer(name, kind, doc, **defaults):
    """A class whose options, in order, are PyTorch's."""
    names = list(defaults)
    others = {**_HINTS, "differentiable": False}

    def __init__(self, params, *args, **kwargs):
        unknown = [k for k in kwargs if (k not in defaults and k not in others) or k in names[:len(args)]]
        if unknown or len(args) > len(names):
            raise TypeError(f"{name}() does not take {unknown or args}")
        _refuse(name, kwargs)
        Optimizer.__init__(self, params, {**defaults, **dict(zip(names, args)), **{k: v for k, v in kwargs.items() if k in defaults}})

    __init__.__signature__ = _signature(["params"], {**defaults, **others})
    return type(name, (Optimizer,), {"__init__": __init__, "__doc__": doc, "__module__": __name__, "__qualname__": name, "_kind": kind,
                                     "_names": tuple(_STATE[name].split())})


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
