"""GPUs, by PyTorch's names."""
from . import _ingot


def _gpus():
    try:
        return [d for d in _ingot.device.all() if d.type == "cuda"]
    except _ingot.Error:
        return []


def is_available():
    """Is there a GPU that Ingot can use?"""
    return bool(_gpus())


def device_count():
    return len(_gpus())


def _device(device):
    if device is None:
        return _ingot.device("cuda")
    return device if isinstance(device, _ingot.device) else _ingot.device(device)


def synchronize(device=None):
    """Runs what is pending and waits for every GPU."""
    if device is not None:
        _device(device)
    _ingot.synchronize()


def memory_allocated(device=None):
    return _device(device).memory().in_use


def max_memory_allocated(device=None):
    return _device(device).memory().peak


def reset_peak_memory_stats(device=None):
    _device(device).reset_peak_memory()


def empty_cache():
    """Accepted for compatibility with PyTorch: there is no cache to empty."""


def manual_seed(seed):
    _ingot.manual_seed(seed)


manual_seed_all = manual_seed


def is_bf16_supported():
    return is_available()
