"""Module: attributes that are parameters, buffers or modules register themselves; a call runs forward with the hooks around it."""
import inspect
import itertools
import warnings
from collections import OrderedDict, namedtuple

from .. import _ingot
from .._ingot import Tensor

_numbers = itertools.count()


class Parameter(Tensor):
    """A tensor that a Module registers when it becomes an attribute, and that requires gradients."""

    def __init__(self, data=None, requires_grad=True):
        super().__init__(_ingot.empty(0) if data is None else data.detach())
        if requires_grad or self.requires_grad:
            self.requires_grad_(requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a Module registers as a buffer when it becomes an attribute."""

    def __init__(self, data, persistent=True):
        super().__init__(data)
        self.persistent = persistent


def _signature(first, defaults):
    """What help() and inspect show of an __init__ that takes *args and **kwargs."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = [inspect.Parameter(n, kind) for n in ("self", *first)]
    return inspect.Signature(named + [inspect.Parameter(k, kind, default=v) for k, v in defaults.items()])


class _Removable:
    """Removes a hook."""

    def __init__(self, hooks, key):
        self._hooks, self._key = hooks, key

    def remove(self):
        self._hooks.pop(self._key, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


def _add_hook(hooks, fn, first=False):
    key = next(_numbers)
    if first:
        others = dict(hooks)
        hooks.clear()
        hooks[key] = fn
        hooks.update(others)
    else:
        hooks[key] = fn
    return _Removable(hooks, key)


class _ForwardHook:
    """A function called after forward, with or without the keyword arguments."""

    def __init__(self, fn, with_kwargs, always_call):
        self.fn, self.with_kwargs, self.always_call = fn, with_kwargs, always_call

    def __call__(self, module, args, kwargs, out):
        return self.fn(module, args, kwargs, out) if self.with_kwargs else self.fn(module, args, out)


class _PreHook:
    """A function called before forward; gives the arguments that forward is called with."""

    def __init__(self, fn, with_kwargs):
        self.fn, self.with_kwargs = fn, with_kwargs

    def __call__(self, module, args, kwargs):
        if not self.with_kwargs:
            changed = self.fn(module, args)
            return (args if changed is None else changed if isinstance(changed, tuple) else (changed,)), kwargs
        changed = self.fn(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if isinstance(changed, tuple) and len(changed) == 2 and isinstance(changed[1], dict):
            return changed
        raise RuntimeError(f"a forward pre-hook with with_kwargs=True must return None or (args, kwargs), not {changed!r}")


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    def __repr__(self):
        return "<All keys matched successfully>" if not self.missing_keys and not self.unexpected_keys else super().__repr__()


class Module:
    """Parameters, buffers and other modules under the names of the attributes that hold them."""

    training: bool

    def __init__(self):
        put = object.__setattr__
        put(self, "training", True)
        for name in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
            put(self, name, {})
        put(self, "_transient", set())

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f"module {type(self).__name__} has no forward()")

    def __call__(self, *args, **kwargs):
        parts = self.__dict__
        if not (parts["_forward_hooks"] or parts["_forward_pre_hooks"] or parts["_backward_hooks"]):
            return self.forward(*args, **kwargs)
        called = set()
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            for hook in tuple(self._forward_hooks.values()):
                if hook.always_call and hook not in called:
                    try:
                        hook(self, args, kwargs, None)
                    except Exception as e:
                        warnings.warn(f"a forward hook with always_call=True raised an exception, which gives way to the one of "
                                      f"{type(self).__name__}: {e}", stacklevel=2)
            raise

    def _call_with_hooks(self, args, kwargs, called):
        for hook in tuple(self._forward_pre_hooks.values()):
            args, kwargs = hook(self, args, kwargs)
        watch = self._backward_hooks and _ingot.is_grad_enabled()
        if watch:
            args, finish = _watch_gradients(self, args)
        out = self.forward(*args, **kwargs)
        if watch:
            out = finish(out)
        for hook in tuple(self._forward_hooks.values()):
            called.add(hook)
            changed = hook(self, args, kwargs, out)
            if changed is not None:
                out = changed
        return out

    # ---- Attributes

    def __setattr__(self, name, value):
        parts = self.__dict__
        if "_parameters" not in parts:
            if isinstance(value, (Parameter, Module)):
                raise AttributeError(f"call super().__init__() before {type(self).__name__} gets parameters or modules")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._forget(name)
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in self._parameters:
            if value is not None:
                raise TypeError(f"'{name}' is a parameter: assign an nn.Parameter or None, not {type(value).__name__}")
            self._parameters[name] = None
        elif name in self._buffers and (value is None or isinstance(value, Tensor)):
            self._buffers[name] = value
        elif name in self._modules and value is None:
            self._modules[name] = None
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        parts = self.__dict__
        if "_modules" in parts:  # the last of the three that __init__ creates
            for kind in (parts["_parameters"], parts["_modules"], parts["_buffers"]):
                if name in kind:
                    return kind[name]
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __delattr__(self, name):
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def _forget(self, name):
        self.__dict__.pop(name, None)
        for kind in (self._parameters, self._buffers, self._modules):
            kind.pop(name, None)

    def register_parameter(self, name, param):
        self._check_name(name)
        self._forget(name)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        self._check_name(name)
        self._forget(name)
        self._buffers[name] = tensor
        (self._transient.discard if persistent else self._transient.add)(name)

    def add_module(self, name, module):
        self._check_name(name)
        self._forget(name)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name):
        if not name or "." in name:
            raise KeyError(f"a name must not be empty or have a dot, but is '{name}'")

    # ---- Traversal

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, m in self._modules.items():
                if m is not None:
                    yield from m.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self):
        for _, m in self.named_modules():
            yield m

    def named_children(self):
        seen = set()
        for name, m in self._modules.items():
            if m is not None and m not in seen:
                seen.add(m)
                yield name, m

    def children(self):
        for _, m in self.named_children():
            yield m

    def _named(self, kind, prefix, recurse, once):
        seen = set()
        for path, m in (self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]):
            for name, t in getattr(m, kind).items():
                if t is None or (once and id(t) in seen):
                    continue
                seen.add(id(t))
                yield (f"{path}.{name}" if path else name), t

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def get_submodule(self, target):
        m = self
        for part in target.split(".") if target else []:
            m = getattr(m, part)
        return m

    def get_parameter(self, target):
        path, _, name = target.rpartition(".")
        return getattr(self.get_submodule(path), name)

    # ---- State

    def state_dict(self, *, prefix="", keep_vars=False):
        out = OrderedDict()
        for path, m in self.named_modules(prefix="", remove_duplicate=False):
            head = prefix + (path + "." if path else "")
            for name, p in m._parameters.items():
                if p is not None:
                    out[head + name] = p if keep_vars else p.detach()
            for name, b in m._buffers.items():
                if b is not None and name not in m._transient:
                    out[head + name] = b if keep_vars else b.detach()
        return out

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies tensors (or NumPy arrays, or PyTorch's tensors) into the parameters and buffers of these names. With assign they
        take dtype and device of what is loaded, too; the Parameter objects stay the same."""
        own = self.state_dict(keep_vars=True)
        missing = [k for k in own if k not in state_dict]
        unexpected = [k for k in state_dict if k not in own]
        problems = []
        if strict and missing:
            problems.append(f"missing: {', '.join(missing)}")
        if strict and unexpected:
            problems.append(f"unexpected: {', '.join(unexpected)}")
        pairs = []
        for k, t in own.items():
            if k in state_dict:
                v = _as_tensor(state_dict[k])
                if tuple(v.shape) != tuple(t.shape):
                    problems.append(f"{k} has shape {list(v.shape)} in the file and {list(t.shape)} here")
                pairs.append((t, v))
        if problems:
            raise _ingot.ValueError(f"[load_state_dict] into {type(self).__name__}: " + "; ".join(problems) +
                                    "\n  fix: build the model as it was when it was saved, or give strict=False for names")
        with _no_grad():
            for t, v in pairs:
                if assign:
                    t.data = v.clone()
                else:
                    t.copy_(v.to(t.device))
        _ingot.eval([t.detach() for t, _ in pairs])
        return IncompatibleKeys(missing, unexpected)

    def _apply(self, fn):
        """Every parameter and buffer becomes fn(itself), in place: its holders (an optimiser, another module) see the change."""
        seen = set()
        for m in self.modules():
            for kind in (m._parameters, m._buffers):
                for t in kind.values():
                    if t is not None and id(t) not in seen:
                        seen.add(id(t))
                        _change(t, fn)
        return self

    def to(self, *args, **kwargs):
        """to(device), to(dtype), to(device, dtype), to(tensor): in place, the Parameter objects stay the same; only floating
        parameters change type. non_blocking and memory_format are hints."""
        unknown = set(kwargs) - {"device", "dtype", "tensor", "non_blocking", "memory_format"}
        if unknown:
            raise TypeError(f"to() takes device, dtype, tensor, non_blocking and memory_format, not {', '.join(sorted(unknown))}")
        dtype = kwargs.get("dtype")
        device = kwargs.get("device")
        types = {float: _ingot.float64, int: _ingot.int64, bool: _ingot.bool_}
        args = (*(types.get(a, a) if isinstance(a, type) else a for a in args), kwargs.get("tensor"))
        dtype = types.get(dtype, dtype) if isinstance(dtype, type) else dtype
        for a in args:
            if isinstance(a, Tensor):
                dtype, device = a.dtype, a.device
            elif isinstance(a, _ingot.dtype):
                dtype = a
            elif a is not None and not isinstance(a, bool):
                device = a
        if dtype is not None and not dtype.is_floating_point:
            raise _ingot.DTypeError(f"[to] a module's parameters are floating, not {dtype}")
        return self._apply(lambda t: t.to(device=device, dtype=dtype if t.is_floating_point() else None))

    def cuda(self, device=None):
        return self.to("cuda" if device is None else device)

    def cpu(self):
        return self.to("cpu")

    def float(self):
        return self.to(_ingot.float32)

    def double(self):
        return self.to(_ingot.float64)

    def half(self):
        return self.to(_ingot.float16)

    def bfloat16(self):
        return self.to(_ingot.bfloat16)

    def apply(self, fn):
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise _ingot.ValueError(f"[train] mode is a bool, not {mode!r}")
        for m in self.modules():
            object.__setattr__(m, "training", mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        if not set_to_none:
            return _ingot.zero_gradients(list(self.parameters()))
        for p in self.parameters():
            p.grad = None

    def share_memory(self):
        return self

    def compile(self, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, disable=False):
        return self

    # ---- Hooks

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """hook(module, args, output), or hook(module, args, kwargs, output) with with_kwargs, after forward; what it returns
        replaces the output. prepend: before the hooks that are there. always_call: also when forward raises (output is None)."""
        return _add_hook(self._forward_hooks, _ForwardHook(hook, with_kwargs, always_call), prepend)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """hook(module, args) before forward; what it returns replaces the arguments. With with_kwargs hook(module, args, kwargs),
        which returns None or (args, kwargs). prepend: before the hooks that are there."""
        return _add_hook(self._forward_pre_hooks, _PreHook(hook, with_kwargs), prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """hook(module, grad_input, grad_output) once both are known; what it returns replaces grad_input.
        prepend: before the hooks that are there."""
        return _add_hook(self._backward_hooks, hook, prepend)

    # ---- Text

    def extra_repr(self):
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        lines = [f"({name}): " + repr(m).replace("\n", "\n  ") for name, m in self._modules.items()]
        if not lines:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}({extra}\n  " + "\n  ".join(lines) + "\n)"


def _no_grad():
    from ..autograd import no_grad

    return no_grad()


def _as_tensor(v):
    if isinstance(v, Tensor):
        return v.detach()
    if hasattr(v, "detach") and hasattr(v, "numpy"):  # PyTorch's
        v = v.detach().cpu()
        return _ingot.from_dlpack(v.contiguous()) if v.numel() else _ingot.tensor(v.numpy())
    return _ingot.tensor(v)


def _change(t, fn):
    """Moves or converts a tensor in place, and its gradient with it."""
    new = fn(t.detach())
    if new.dtype is t.dtype and new.device == t.device:
        return
    grad = t._grad if t.is_leaf else None
    _ingot.eval([new])
    t.grad = None
    t.data = new
    if grad is not None:
        t.grad = fn(grad.detach())


def _watch_gradients(module, args):
    """Wraps forward in identities whose gradients are passed to a full backward hook."""
    from ..autograd import Function

    state = {"out": None, "args": tuple(a for a in args)}

    class Before(Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tensors

        @staticmethod
        def backward(ctx, *grads):
            result = tuple(grads)
            for hook in tuple(module._backward_hooks.values()):
                changed = hook(module, result, state["out"])
                if changed is not None:
                    result = changed if isinstance(changed, tuple) else (changed,)
            return result

    class After(Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tensors

        @staticmethod
        def backward(ctx, *grads):
            state["out"] = tuple(grads)
            return grads

    def pass_through(kind, values):
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.is_floating_point()]
        if not places:
            return values
        outs = kind.apply(*(values[i] for i in places))
        values = list(values)
        for i, t in zip(places, outs):
            values[i] = t
        return tuple(values)

    def finish(out):
        if isinstance(out, Tensor):
            return pass_through(After, (out,))[0]
        return pass_through(After, tuple(out)) if isinstance(out, (tuple, list)) else out

    if any(isinstance(a, Tensor) and a.requires_grad for a in args):
        args = pass_through(Before, args)
        return args, finish

    def finish_and_tell(out):  # nothing flows into the inputs: the hook is called at the outputs
        class Tell(After):
            @staticmethod
            def backward(ctx, *grads):
                for hook in tuple(module._backward_hooks.values()):
                    hook(module, (None,) * len(args), tuple(grads))
                return grads

        if isinstance(out, Tensor):
            return pass_through(Tell, (out,))[0]
        return pass_through(Tell, tuple(out)) if isinstance(out, (tuple, list)) else out

    return args, finish_and_tell
