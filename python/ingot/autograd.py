"""Gradients: modes, grad(), Function with a custom gradient, checks."""
from . import _ingot
from ._ingot import Tensor, is_grad_enabled
from ._scope import Scope

__all__ = ["Function", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad",
           "set_grad_enabled"]


class _Mode(Scope):
    def __init__(self, on):
        super().__init__(_ingot.EnableGradGuard if on else _ingot.NoGradGuard)


class no_grad(_Mode):
    """with no_grad(): ... records operations without history. Also a decorator of functions and generators, with or without
    brackets."""

    def __new__(cls, fn=None):
        if fn is not None:
            return _Mode(False)(fn)
        return super().__new__(cls)

    def __init__(self, fn=None):
        super().__init__(False)


class enable_grad(_Mode):
    """The opposite, inside a no_grad."""

    def __new__(cls, fn=None):
        if fn is not None:
            return _Mode(True)(fn)
        return super().__new__(cls)

    def __init__(self, fn=None):
        super().__init__(True)


class inference_mode(_Mode):
    """no_grad by PyTorch's other name."""

    def __new__(cls, mode=True):
        if callable(mode):
            return _Mode(False)(mode)
        return super().__new__(cls)

    def __init__(self, mode=True):
        super().__init__(not mode)


class set_grad_enabled(_Mode):
    """Turns gradients on or off: from this statement on, or inside `with set_grad_enabled(train): ...`; also a decorator."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled() takes a bool, not {type(mode).__name__}")
        super().__init__(mode)
        self._before = is_grad_enabled()
        _ingot.set_grad_mode(mode)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _ingot.set_grad_mode(self._before)
        return False

    def __call__(self, fn):
        _ingot.set_grad_mode(self._before)  # as a decorator it is for the calls alone
        return super().__call__(fn)


def _tuple(x):
    return () if x is None else tuple(x) if isinstance(x, (tuple, list)) else (x,)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
         is_grads_batched=False, materialize_grads=False):
    """The gradients of the outputs' sum with respect to each input, as a tuple; .grad is left alone."""
    if is_grads_batched or not only_inputs:
        raise _ingot.UnsupportedError("[grad] is_grads_batched=True and only_inputs=False are not supported\n"
                                      "  fix: call grad() once for each row of grad_outputs")
    inputs = _tuple(inputs)
    found = _ingot.grad(_tuple(outputs), inputs, _tuple(grad_outputs), retain_graph, create_graph,
                        bool(allow_unused) or materialize_grads)
    if materialize_grads:
        found = tuple(_ingot.zeros_like(x) if g is None else g for g, x in zip(found, inputs))
    return found


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    """tensor.backward() for several tensors."""
    tensors, grads = _tuple(tensors), _tuple(grad_tensors) or (None,) * len(_tuple(tensors))
    keep = bool(retain_graph) or create_graph
    for i, (t, g) in enumerate(zip(tensors, grads)):
        t.backward(g, keep or i + 1 < len(tensors), create_graph)


class _Context:
    """Shared by forward and backward of a Function."""

    saved_tensors = ()
    needs_input_grad = ()
    _constant = ()

    def save_for_backward(self, *tensors):
        """Keeps tensors (inputs, outputs, others; None for none) for backward, which finds them in saved_tensors."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        """These outputs do not require gradients."""
        self._constant = tensors

    def mark_dirty(self, *tensors):
        raise _ingot.UnsupportedError("[mark_dirty] a Function cannot change its inputs in place\n  fix: return a new tensor")

    def set_materialize_grads(self, value):
        """A hint: gradients that did not arrive are always zeros here."""


class Function:
    """An operation with a custom gradient:

        class Clipped(ingot.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.clamp(0, 1)

            @staticmethod
            def backward(ctx, g):
                return g

        y = Clipped.apply(x)

    backward returns one gradient per argument of forward, None for none."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function needs a static method backward(ctx, ...)")

    @classmethod
    def apply(cls, *args):
        ctx = _Context()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        single, constant = False, []

        def forward(*tensors):
            nonlocal single
            given = list(args)
            for place, t in zip(places, tensors):
                given[place] = t
            out = cls.forward(ctx, *given)
            single = not isinstance(out, (tuple, list))
            outs = (out,) if single else tuple(out)
            constant.extend(i for i, o in enumerate(outs) if any(o is t for t in ctx._constant))
            saved, ctx.saved_tensors, ctx._constant = ctx.saved_tensors, (), ()
            return outs, tuple(saved)

        def backward(saved, *grads):
            ctx.saved_tensors = saved
            try:
                out = cls.backward(ctx, *grads)
            finally:
                ctx.saved_tensors = ()
            out = out if isinstance(out, (tuple, list)) else (out,)
            if len(out) != len(args):
                raise _ingot.AutogradError(f"[{cls.__name__}] backward returned {len(out)} gradients for {len(args)} arguments of forward\n"
                                           "  fix: return one per argument, None for none")
            return tuple(out[place] for place in places)

        results = _ingot.custom_function(cls.__name__, forward, backward, [args[i] for i in places])
        if constant:
            results = tuple(r.detach() if i in constant else r for i, r in enumerate(results))
        return results[0] if single else results


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """Compares gradients with finite differences (float64 inputs)."""
    ok, report = _ingot.gradcheck(func, _tuple(inputs), eps, atol, rtol)
    if not ok and raise_exception:
        raise _ingot.AutogradError("[gradcheck] " + report)
    return ok


def gradgradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    ok, report = _ingot.gradgradcheck(func, _tuple(inputs), eps, atol, rtol)
    if not ok and raise_exception:
        raise _ingot.AutogradError("[gradgradcheck] " + report)
    return ok
