"""Networks: Module in plain Python, the layers, functional, initial values, utilities."""
from . import functional, init, utils  # noqa: F401
from .module import Buffer, Module, Parameter  # noqa: F401
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential  # noqa: F401
from .layers import *  # noqa: F401,F403
from .losses import *  # noqa: F401,F403
from .recurrent import *  # noqa: F401,F403
from .transformer import *  # noqa: F401,F403
from .windows import *  # noqa: F401,F403
