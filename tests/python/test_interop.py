"""NumPy, buffers, DLPack."""
import gc
import unittest

from common import TestCase, ingot, needs_numpy, needs_torch, numpy, torch

TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")


class NumPy(TestCase):
    @needs_numpy
    def test_a_tensor_has_the_elements_the_array_had(self):
        made = (ingot.from_numpy, ingot.as_tensor, ingot.asarray, ingot.tensor)
        for name in TYPES:
            for make in made:
                a = numpy.ones((2, 3), dtype=name)
                t = make(a)
                self.assertIs(t.dtype, getattr(ingot, name))
                y = t + 0 if name != "bool" else ~t
                a[:] = 0
                self.assertEqual(t.to(ingot.int64).sum().item(), 6)
                self.assertEqual(y.to(ingot.int64).sum().item(), 6 if name != "bool" else 0)
        buffer, means = numpy.zeros(4, "f4"), []
        for i in range(3):
            buffer[:] = i
            means.append(ingot.from_numpy(buffer).mean() * 2)
        self.assertEqual([m.item() for m in means], [0, 2, 4])

    @needs_numpy
    def test_what_an_array_says_is_checked(self):
        far = numpy.broadcast_to(numpy.float32(1), (1 << 20, 1 << 20))
        self.assertRaises(ingot.OutOfMemoryError, ingot.from_numpy, far)
        self.assertRaises(BufferError, ingot.from_dlpack, numpy.zeros((1,) * 11, numpy.float32))
        self.assertRaises(TypeError, ingot.tensor, numpy.zeros(2, numpy.complex64))
        odd = numpy.frombuffer(b"\x02\x01\x00\xff", dtype=bool).copy()
        self.assertEqual(ingot.tensor(odd).sum().item(), 3)
        self.assertEqual(ingot.from_dlpack(odd).sum().item(), 3)
        self.assertRaises(ValueError, ingot.from_numpy, odd, share=True)
        self.assertEqual(ingot.tensor(numpy.arange(6).reshape(2, 3).T[::-1]).tolist(), [[2, 5], [1, 4], [0, 3]])

    def test_memory_is_shared_on_request(self):
        for name in TYPES:
            a = numpy.ones((2, 3), dtype=name)
            for t in (ingot.from_numpy(a, share=True), ingot.asarray(a, copy=False)):
                self.assertEqual(t.numpy().ctypes.data, a.ctypes.data)
                t.numpy()[0, 0] = 0
                self.assertEqual(t[0, 0].item(), 0)
                self.assertEqual(a[0, 0], 0)
        a = numpy.arange(6).reshape(2, 3)
        self.assertEqual(ingot.from_numpy(a.T).tolist(), a.T.tolist())
        with self.assertRaisesRegex(ValueError, "contiguous"):
            ingot.from_numpy(a.T, share=True)
        a.setflags(write=False)
        with self.assertRaisesRegex(ValueError, "written"):
            ingot.from_numpy(a, share=True)
        for bad in (numpy.array(["a"]), numpy.array([1 + 2j])):
            with self.assertRaises(TypeError):
                ingot.from_numpy(bad)

    @needs_numpy
    def test_an_array_outlives_its_tensor_and_in_place_calls(self):
        t = ingot.ones(1000) * 2
        a = t.numpy()
        t += 1
        t.eval_()
        del t
        gc.collect()
        ingot.ones(1000).eval_()
        self.assertEqual(set(a.tolist()), {2.0})

    @needs_numpy
    def test_rules(self):
        with self.assertRaises(TypeError) as caught:
            ingot.ones(2, requires_grad=True).numpy()
        self.assertIn("detach", str(caught.exception))
        with self.assertRaises(TypeError) as caught:
            ingot.ones(2, dtype=ingot.bfloat16).numpy()
        self.assertIn("float()", str(caught.exception))
        self.assertEqual(ingot.ones(2, requires_grad=True).numpy(force=True).tolist(), [1, 1])
        self.assertEqual(numpy.asarray(ingot.arange(3)).tolist(), [0, 1, 2])
        self.assertEqual((ingot.ones(2) * numpy.float32(2)).tolist(), [2, 2])

    def test_buffers(self):
        view = memoryview(ingot.arange(6).reshape(2, 3))
        self.assertEqual(view.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(ingot.tensor(bytearray(b"\1\2")).tolist(), [1, 2])


class DLPack(TestCase):
    @needs_numpy
    def test_numpy(self):
        t = ingot.randn(2, 3)
        a = numpy.from_dlpack(t)
        self.assertEqual(a.ctypes.data, t.data_ptr())
        b = numpy.arange(6.0).reshape(2, 3)
        u = ingot.from_dlpack(b)
        self.assertEqual(u.data_ptr(), b.ctypes.data)
        self.assertEqual(ingot.from_dlpack(b.T).tolist(), b.T.tolist())
        self.assertNotEqual(ingot.from_dlpack(b, copy=True).data_ptr(), b.ctypes.data)

    @needs_torch
    def test_torch(self):
        for name in TYPES + ("bfloat16",):
            t = ingot.ones(2, 3).to(getattr(ingot, name))
            a = torch.from_dlpack(t)
            self.assertEqual(a.data_ptr(), t.data_ptr())
            self.assertEqual(a.dtype, getattr(torch, name))
            back = ingot.from_dlpack(a)
            self.assertEqual(back.data_ptr(), t.data_ptr())
            self.assertIs(back.dtype, t.dtype)

    @needs_torch
    def test_owners_live_as_long_as_needed(self):
        t = ingot.ones(4)
        a = torch.from_dlpack(t)
        del t
        gc.collect()
        self.assertEqual(a.tolist(), [1, 1, 1, 1])
        b = torch.full((4,), 2.0)
        u = ingot.from_dlpack(b)
        del b
        gc.collect()
        self.assertEqual((u + 1).tolist(), [3, 3, 3, 3])

    def test_refusals(self):
        with self.assertRaises(BufferError):
            ingot.ones(2, requires_grad=True).__dlpack__()
        with self.assertRaises(TypeError):
            ingot.from_dlpack(3)
        self.assertEqual(ingot.ones(2).__dlpack_device__(), (1, 0))


if __name__ == "__main__":
    unittest.main()
