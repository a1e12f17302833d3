"""What the Python tests share. A test that needs NumPy or PyTorch and does not find it is skipped, and says so."""
import unittest

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

import ingot

needs_numpy = unittest.skipIf(numpy is None, "NumPy is not installed")
needs_torch = unittest.skipIf(torch is None, "PyTorch is not installed (tools/setup.sh --torch)")


def to_torch(x):
    """The tensor as a copy in PyTorch."""
    return torch.from_dlpack(x.detach()).clone()


def to_ingot(x):
    return ingot.from_dlpack(x.detach().contiguous(), copy=True)


class TestCase(unittest.TestCase):
    def close(self, a, b, rtol=1e-5, atol=1e-6):
        """Tensors of either library, arrays or numbers agree."""
        if torch is not None and isinstance(a, torch.Tensor):
            a = a.detach().numpy()
        if torch is not None and isinstance(b, torch.Tensor):
            b = b.detach().numpy()
        a = a.detach().numpy() if isinstance(a, ingot.Tensor) else numpy.asarray(a)
        b = b.detach().numpy() if isinstance(b, ingot.Tensor) else numpy.asarray(b)
        self.assertEqual(a.shape, b.shape)
        numpy.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
