"""Modules that hold modules or parameters."""
from .module import Module, Parameter


class _Modules(Module):
    """Shared by lists of modules; the names are "0", "1", ..."""

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for m in modules:
            self.append(m)
        return self

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, i, module):
        self._modules[list(self._modules)[i]] = module


class Sequential(_Modules):
    """Modules called one after the other; takes modules, or one dict of them."""

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name, m in modules[0].items():
                self.add_module(name, m)
        else:
            self.extend(modules)

    def forward(self, input):
        for m in self._modules.values():
            input = m(input)
        return input

    def __getitem__(self, i):
        items = list(self._modules.items())
        return type(self)(dict(items[i])) if isinstance(i, slice) else items[i][1]


class ModuleList(_Modules):
    """A list of modules, named "0", "1", ..."""

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules or ())

    def insert(self, index, module):
        items = list(self)
        items.insert(index, module)
        self._modules.clear()
        self.extend(items)

    def __getitem__(self, i):
        items = list(self._modules.values())
        return type(self)(items[i]) if isinstance(i, slice) else items[i]


class _Named(Module):
    """Shared by dicts of modules and of parameters; _kept says where these are."""

    _kept = "_modules"

    def __getitem__(self, name):
        return getattr(self, self._kept)[name]

    def __contains__(self, name):
        return name in getattr(self, self._kept)

    def __len__(self):
        return len(getattr(self, self._kept))

    def __iter__(self):
        return iter(getattr(self, self._kept))

    def keys(self):
        return getattr(self, self._kept).keys()

    def values(self):
        return getattr(self, self._kept).values()

    def items(self):
        return getattr(self, self._kept).items()


class ModuleDict(_Named):
    """Modules under names."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        for name, m in modules.items() if hasattr(modules, "items") else modules:
            self.add_module(name, m)

    def __setitem__(self, name, module):
        self.add_module(name, module)


class ParameterList(Module):
    """A list of parameters."""

    def __init__(self, values=()):
        super().__init__()
        for v in values or ():
            self.append(v)

    def append(self, value):
        self.register_parameter(str(len(self)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())

    def __getitem__(self, i):
        return list(self._parameters.values())[i]


class ParameterDict(_Named):
    """Parameters under names."""

    _kept = "_parameters"

    def __init__(self, parameters=None):
        super().__init__()
        for name, v in (parameters or {}).items():
            self[name] = v

    def __setitem__(self, name, value):
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))
