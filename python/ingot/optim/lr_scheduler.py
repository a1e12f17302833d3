"""Learning-rate schedules over an optimiser's param_groups, with PyTorch's values. A schedule compiles nothing new."""
import math
from types import FunctionType

from .. import _ingot
from .optimizer import Optimizer

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LambdaLR", "LinearLR",
           "LRScheduler", "MultiplicativeLR", "MultiStepLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]


class LRScheduler:
    """A schedule of your own writes get_lr(): one rate per group at self.last_epoch, from self.base_lrs or from the groups' present rates.
    What it keeps in attributes is in its state_dict()."""

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__} takes an optimiser, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        self._step_count = 0
        for g in optimizer.param_groups:
            if last_epoch == -1:
                g.setdefault("initial_lr", g["lr"])
            elif "initial_lr" not in g:
                raise KeyError("param_groups need 'initial_lr' to resume a schedule")
        self.base_lrs = [g["initial_lr"] for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self):
        raise NotImplementedError("a schedule needs get_lr()")

    def get_last_lr(self):
        return self._last_lr

    def step(self, epoch=None):
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        lrs = self._get_closed_form_lr() if epoch is not None and hasattr(self, "_get_closed_form_lr") else self.get_lr()
        for g, lr in zip(self.optimizer.param_groups, lrs):
            g["lr"] = lr
        self._last_lr = [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas", "_schedulers")}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def _now(self):
        return [g["lr"] for g in self.optimizer.param_groups]


_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise _ingot.ValueError(f"[{type(self).__name__}] {len(self.lr_lambdas)} functions for {n} groups of parameters")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]

    def state_dict(self):
        """As PyTorch's: of callable objects their attributes, of functions nothing."""
        own = [None if isinstance(f, FunctionType) else dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": own}

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        for f, own in zip(self.lr_lambdas, state.pop("lr_lambdas", ())):
            if own is not None:
                f.__dict__.update(own)
        super().load_state_dict(state)


class MultiplicativeLR(LambdaLR):
    def get_lr(self):
        if self.last_epoch == 0:
            return self._now()
        return [lr * f(self.last_epoch) for f, lr in zip(self.lr_lambdas, self._now())]


class StepLR(LRScheduler):
    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        factor = self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1
        return [lr * factor for lr in self._now()]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [lr * self.gamma ** self.milestones.count(self.last_epoch) for lr in self._now()]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** sum(m <= self.last_epoch for m in self.milestones) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise _ingot.ValueError("[ConstantLR] factor must be between 0 and 1")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._now()]
        return [lr / self.factor if self.last_epoch == self.total_iters else lr for lr in self._now()]

    def _get_closed_form_lr(self):
        return [base * (self.factor if self.last_epoch < self.total_iters else 1) for base in self.base_lrs]


class LinearLR(LRScheduler):
    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise _ingot.ValueError("[LinearLR] factors must be between 0 and 1, the first above 0")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        t, n, a, b = self.last_epoch, self.total_iters, self.start_factor, self.end_factor
        if t == 0:
            return [lr * a for lr in self._now()]
        if t > n:
            return self._now()
        return [lr * (1 + (b - a) / (n * a + (t - 1) * (b - a))) for lr in self._now()]

    def _get_closed_form_lr(self):
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [lr * self.gamma if self.last_epoch else lr for lr in self._now()]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        t, n = self.last_epoch, self.total_iters
        if t == 0 or t > n:
            return self._now()
        return [lr * ((1 - t / n) / (1 - (t - 1) / n)) ** self.power for lr in self._now()]

    def _get_closed_form_lr(self):
        return [base * (1 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        t, n, low = self.last_epoch, self.T_max, self.eta_min
        if t == 0:
            return self._now()
        if (t - 1 - n) % (2 * n) == 0:
            return [lr + (base - low) * (1 - math.cos(math.pi / n)) / 2 for lr, base in zip(self._now(), self.base_lrs)]
        factor = (1 + math.cos(math.pi * t / n)) / (1 + math.cos(math.pi * (t - 1) / n))
        return [factor * (lr - low) + low for lr in self._now()]

    def _get_closed_form_lr(self):
        c = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * c for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        c = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * c for base in self.base_lrs]

    def step(self, epoch=None):
        if epoch is not None:
            self.T_i, self.T_cur = self.T_0, epoch
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch) if epoch is not None else self.last_epoch + 1
        for g, lr in zip(self.optimizer.param_groups, self.get_lr()):
            g["lr"] = lr
        self._last_lr = self._now()


class OneCycleLR(LRScheduler):
    """Rates rise from max_lr / div_factor to max_lr and fall to that start / final_div_factor; momentum (or the first beta) falls while
    they rise."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy="cos",
                 cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise _ingot.ValueError("[OneCycleLR] the number of steps is missing\n  fix: pass total_steps, or epochs and steps_per_epoch")
        self.total_steps = total_steps if total_steps is not None else epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise _ingot.ValueError(f"[OneCycleLR] anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        groups = optimizer.param_groups
        self._linear = anneal_strategy == "linear"
        up = pct_start * self.total_steps - 1
        # Ends of phases, and the start and end of rate and momentum in each: 0 the start, 1 the
        # peak, 2 the end.
        self._phases = ([(up, 0, 1), (2 * up - 1 + 1, 1, 0), (self.total_steps - 1, 0, 2)] if three_phase
                        else [(up, 0, 1), (self.total_steps - 1, 1, 2)])
        self.cycle_momentum = cycle_momentum
        if cycle_momentum and not any(k in optimizer.defaults for k in ("momentum", "betas")):
            raise _ingot.ValueError("[OneCycleLR] this optimiser has neither momentum nor betas\n  fix: pass cycle_momentum=False")
        peaks, lows, highs = (list(v) if isinstance(v, (list, tuple)) else [v] * len(groups) for v in (max_lr, base_momentum, max_momentum))
        if last_epoch == -1:
            for g, peak, low, high in zip(groups, peaks, lows, highs):
                g["lr"] = g["initial_lr"] = peak / div_factor
                g["max_lr"], g["min_lr"] = peak, peak / div_factor / final_div_factor
                if cycle_momentum:
                    g["base_momentum"], g["max_momentum"] = low, high
                    self._set_momentum(g, high)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _set_momentum(group, value):
        if "betas" in group:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _between(self, a, b, share):
        return (b - a) * share + a if self._linear else b + (a - b) / 2 * (math.cos(math.pi * share) + 1)

    def get_lr(self):
        t, begin = self.last_epoch, 0.0
        if t > self.total_steps:
            raise _ingot.ValueError(f"[OneCycleLR] step {t} of {self.total_steps}")
        for i, (end, a, b) in enumerate(self._phases):
            if t <= end or i == len(self._phases) - 1:
                share = (t - begin) / (end - begin)
                break
            begin = end
        out = []
        for g in self.optimizer.param_groups:
            rates = (g["initial_lr"], g["max_lr"], g["min_lr"])
            out.append(self._between(rates[a], rates[b], share))
            if self.cycle_momentum:
                momenta = (g["max_momentum"], g["base_momentum"], g["max_momentum"])
                self._set_momentum(g, self._between(momenta[a], momenta[b], share))
        return out


def _check_optimizer(name, schedulers, optimizer):
    if any(s.optimizer is not optimizer for s in schedulers):
        raise _ingot.ValueError(f"[{name}] the schedules belong to different optimisers")


class SequentialLR(LRScheduler):
    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(milestones) != len(schedulers) - 1:
            raise _ingot.ValueError(f"[SequentialLR] {len(schedulers)} schedules need {len(schedulers) - 1} milestones, not {len(milestones)}")
        _check_optimizer("SequentialLR", schedulers, optimizer)
        self.optimizer, self._schedulers, self._milestones = optimizer, schedulers, milestones
        self.last_epoch = last_epoch + 1
        for g in optimizer.param_groups:
            g["lr"] = g["initial_lr"]
        for s in schedulers:
            s.last_epoch -= 1
        schedulers[0].step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self):
        self.last_epoch += 1
        i = sum(self.last_epoch >= m for m in self._milestones)
        s = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            s.step(0)
        else:
            s.step()
        self._last_lr = s.get_last_lr()

    def state_dict(self):
        state = super().state_dict()
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        state = dict(state_dict)
        for s, d in zip(self._schedulers, state.pop("_schedulers")):
            s.load_state_dict(d)
        self.__dict__.update(state)


class ChainedScheduler(LRScheduler):
    def __init__(self, schedulers, optimizer=None):
        _check_optimizer("ChainedScheduler", schedulers, optimizer or schedulers[0].optimizer)
        self.optimizer, self._schedulers = optimizer or schedulers[0].optimizer, schedulers
        self._last_lr = self._now()

    def step(self):
        for s in self._schedulers:
            s.step()
        self._last_lr = self._now()


class ReduceLROnPlateau(LRScheduler):
    def __init__(self, optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8):
        for word, value, known in (("mode", mode, ("min", "max")), ("threshold_mode", threshold_mode, ("rel", "abs"))):
            if value not in known:
                raise _ingot.ValueError(f"[ReduceLROnPlateau] {word} is {known[0]!r} or {known[1]!r}, not {value!r}")
        if factor >= 1:
            raise _ingot.ValueError(f"[ReduceLROnPlateau] factor must be below 1, but is {factor}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        n = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * n
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self._now()

    def _better(self, value):
        if self.threshold_mode == "rel":
            return value < self.best * (1 - self.threshold) if self.mode == "min" else value > self.best * (1 + self.threshold)
        return value < self.best - self.threshold if self.mode == "min" else value > self.best + self.threshold

    def step(self, metrics, epoch=None):
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for g, low in zip(self.optimizer.param_groups, self.min_lrs):
                new = max(g["lr"] * self.factor, low)
                if g["lr"] - new > self.eps:
                    g["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()
