"""The Python array API standard (2024.12): `xp = x.__array_namespace__()`. Arrays are Ingot's tensors; the functions have the
standard's names, arguments and type rules. There are no complex types, no other unsigned types, and no fft."""
from math import e, inf, nan, pi  # noqa: F401

from .. import _docs
from . import linalg  # noqa: F401
from .creation import *  # noqa: F401,F403
from .elementwise import *  # noqa: F401,F403
from .linalg import matmul, matrix_transpose, tensordot, vecdot  # noqa: F401
from .manipulation import *  # noqa: F401,F403
from .searching import *  # noqa: F401,F403
from .statistical import *  # noqa: F401,F403
from .types import *  # noqa: F401,F403
from .types import __array_namespace_info__  # noqa: F401

__array_api_version__ = "2024.12"
newaxis = None
_docs.fill(globals())
_docs.fill(vars(linalg))
