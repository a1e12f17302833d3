"""Optimisers. A step's update, the backward and the forward before it run as one plan; the step clears the gradients unless
step(keep_gradients=True): PyTorch keeps them until zero_grad()."""
from . import lr_scheduler  # noqa: F401
from .optimizer import (  # noqa: F401
    SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Muon, NAdam, Optimizer, RAdam, RMSprop)
