"""Ingot: fused tensors, gradients and networks, in PyTorch's manner.

    import ingot
    import ingot.nn as nn

    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = ingot.optim.AdamW(model.parameters(), lr=1e-3)
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()

Nothing runs op by op: a call records and returns at once; what was recorded runs as few fused kernels when a value is needed.
docs/python.md says what of PyTorch is supported, and where Ingot differs.
"""
import builtins as _builtins
import os as _os

from . import _ingot

_ingot.set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from ._ingot import *  # noqa: E402,F401,F403 (the functions of the core)
# Bound for internal use, mostly under other signatures than the public names have.
for _name in ("aminmax_pair block_diag_list broadcast_list meshgrid_list slogdet_pair tensordot_n tensordot_dims einsum_list pad_constant pad_mode "
              "pick_rows put_rows scatter_set nonzero_rows unique_parts custom_function checkpoint grad gradcheck gradgradcheck Captured "
              "NoGradGuard EnableGradGuard AutocastGuard CheckpointFiles doc_of dtype_named promote_dtypes set_package_folder load_contents "
              "load_contents_bytes save_safetensors write_safetensors zero_gradients set_grad_mode linalg_cross linalg_solve "
              "linalg_solve_triangular Optimizer SGD Adam AdamW RMSprop Adagrad Adadelta Adamax NAdam RAdam Lion Muon clip_grad_norm_ "
              "clip_grad_value_ get_total_norm vector_norm vecdot multi_dot").split():
    del globals()[_name]

from ._ingot import __version__  # noqa: E402,F401
from . import _tensor  # noqa: E402  (methods of Tensor written in Python)
from ._functions import *  # noqa: E402,F401,F403
from .autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402,F401
from .runtime import capture, compile, eval, explain, plan, progress  # noqa: E402,F401
from ._checkpoint import Checkpoint  # noqa: E402,F401
from .serialization import load, save  # noqa: E402,F401
from .amp import GradScaler  # noqa: E402,F401
from . import amp, autograd, cuda, linalg, nn, optim, random, special, utils  # noqa: E402,F401
from . import _docs, _functions  # noqa: E402

for _part in (_functions, autograd, cuda, linalg, nn, nn.functional, nn.init, nn.utils, optim, optim.lr_scheduler, special, utils.data):
    _docs.fill(vars(_part))
_docs.fill(vars(nn.Module), "Module.")
_docs.fill(vars(Tensor))  # noqa: F405

# Names of Python's own that are dtypes in Ingot as in PyTorch; inside this package use the builtins module.
float = float32  # noqa: F405
double = float64  # noqa: F405
half = float16  # noqa: F405
long = int64  # noqa: F405
int = int32  # noqa: F405
short = int16  # noqa: F405
bool = bool_  # noqa: F405
inf = _builtins.float("inf")
nan = _builtins.float("nan")
from math import e, pi  # noqa: E402,F401
newaxis = None

FloatTensor = LongTensor = Tensor  # noqa: F405


def __getattr__(name):
    """Parts that few programs need are imported at first use."""
    if name in ("compat", "testing", "array_api", "check"):
        import importlib

        if name == "check":
            return importlib.import_module(".compat", __name__).check
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'ingot' has no attribute '{name}' (docs/python.md lists the names of torch that exist)")
