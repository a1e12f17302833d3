"""Automatic mixed precision: autocast and GradScaler."""
from . import _ingot
from ._ingot import is_autocast_enabled
from ._scope import Scope

__all__ = ["autocast", "GradScaler", "is_autocast_enabled"]


def _check_device(who, device):
    name = device.name if isinstance(device, _ingot.device) else device
    if not isinstance(name, str) or name.partition(":")[0] not in ("cpu", "cuda"):
        raise _ingot.DeviceError(f"[{who}] the device is 'cpu' or 'cuda', not {device!r}")


class autocast(Scope):
    """with autocast("cuda", dtype=ingot.bfloat16): products are computed in 16 bits, losses and norms in float32."""

    def __init__(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        _check_device("autocast", device_type)
        super().__init__(lambda: _ingot.AutocastGuard(dtype or _ingot.bfloat16, enabled))


class GradScaler:
    """scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update(). The recorded step runs in update()."""

    def __init__(self, device="cuda", init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        if not isinstance(device, (str, _ingot.device)):
            device, init_scale = "cuda", device
        _check_device("GradScaler", device)
        self._scaler = _ingot.GradScaler(init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._enabled = enabled
        self._own = {}  # optimisers written in Python: id -> (optimiser, its parameters for the core)

    def scale(self, outputs):
        if isinstance(outputs, (tuple, list)):
            return type(outputs)(self._scaler.scale(x) for x in outputs)
        return self._scaler.scale(outputs)

    def unscale_(self, optimizer):
        """Divides the gradients by the scale, for what looks at them before step()."""
        if optimizer._core is None:
            if self._enabled:
                self._scaler.unscale_(self._parameters(optimizer))
            return
        optimizer._push_rates()
        self._scaler.unscale_(optimizer._core)

    def step(self, optimizer, *args, **kwargs):
        """The optimiser's step, unless a gradient is infinite or NaN. One written in Python is called here, and its gradients are
        computed for it; the core's run in update()."""
        if optimizer._core is None:
            return self._step_own(optimizer, *args, **kwargs)
        optimizer._push_rates()
        self._scaler.step(optimizer._core)

    def _parameters(self, optimizer):
        params = _ingot._OptimizerParameters([p for p in optimizer._params() if p.grad is not None])
        self._own[id(optimizer)] = (optimizer, params)
        return params

    def _step_own(self, optimizer, *args, **kwargs):
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if all(p.grad is None for p in optimizer._params()):
            return None
        if id(optimizer) not in self._own:
            self.unscale_(optimizer)
        params = self._own[id(optimizer)][1]
        self._scaler.step(params, True)
        if all(bool(p.grad.isfinite().all()) for p in params.params() if p.grad is not None):
            return optimizer.step(*args, **kwargs)
        return None

    def update(self, new_scale=None):
        """Runs the recorded step and adapts the scale: shrunk after gradients that were not finite, grown after growth_interval good
        steps in a row; or new_scale, where one is given."""
        self._scaler.update()
        self._own.clear()
        if new_scale is not None and self._enabled:
            self._scaler.set_state(float(new_scale), float(self._scaler.state()[1]))

    def get_scale(self):
        return float(self._scaler.get_scale())

    def state_dict(self):
        """The scale and the good steps since it last changed."""
        scale, streak = self._scaler.state()
        return {"scale": float(scale), "_growth_tracker": int(streak.item())} if self._enabled else {}

    def load_state_dict(self, state_dict):
        if self._enabled:
            self._scaler.set_state(float(state_dict["scale"]), float(state_dict["_growth_tracker"]))

    def is_enabled(self):
        return self._enabled
