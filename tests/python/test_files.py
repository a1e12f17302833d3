"""save and load: what comes back, what a killed program leaves, what damaged files raise."""
import argparse
import collections
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import ingot
from common import TestCase, needs_numpy, needs_torch, numpy, torch
from ingot import nn


def through_memory(value):
    f = io.BytesIO()
    ingot.save(value, f)
    f.seek(0)
    return ingot.load(f)


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class RoundTrips(TestCase):
    def same(self, a, b):
        self.assertIs(type(a), type(b))
        if isinstance(a, ingot.Tensor):
            self.assertEqual((a.dtype, a.shape, a.requires_grad, a.tolist()), (b.dtype, b.shape, b.requires_grad, b.tolist()))
        elif isinstance(a, dict):
            self.assertEqual(list(a), list(b))
            for k in a:
                self.same(a[k], b[k])
        elif isinstance(a, (list, tuple)):
            self.assertEqual(len(a), len(b))
            for x, y in zip(a, b):
                self.same(x, y)
        elif isinstance(a, argparse.Namespace):
            self.same(vars(a), vars(b))
        else:
            self.assertEqual(a, b)

    def test_a_checkpoint_as_programs_write_it(self):
        model = nn.Linear(2, 3)
        opt = ingot.optim.Adam(model.parameters())
        value = {"epoch": 3, "best": 0.25, "done": False, "note": None, "model": model.state_dict(), "optimizer": opt.state_dict(),
                 "args": argparse.Namespace(lr=0.1, names=["a", "b"], sizes=(1, 2)), "history": [1.5, float("inf"), {"loss": 2}]}
        back = through_memory(value)
        self.assertEqual(list(back), list(value))
        self.same(back["args"], value["args"])
        self.same(back["history"], value["history"])
        self.assertEqual((back["epoch"], back["best"], back["done"], back["note"]), (3, 0.25, False, None))
        for k, t in model.state_dict().items():
            self.assertEqual(back["model"][k].tolist(), t.tolist())
        opt.load_state_dict(back["optimizer"])
        nn.Linear(2, 3).load_state_dict(back["model"])

    def test_keys_and_values_of_all_kinds(self):
        one = ingot.ones(2)
        for value in ({"a/b": one}, {"a": {"b": one}, "a.b": one * 2, "": one * 3}, {"nul\0name": one, "caf\u00e9 \ud800": one, "__metadata__": one},
                      {0: one, "0": one * 2, (1, "x"): [one], None: 1, 1.5: True}, [], {}, {"$": "tensor", "v": "x"}, one, [one, (one,)],
                      {1, 2}, frozenset({"x"}), b"\x00\xff", 1 + 2j, 2**100, -0.5, "text", ingot.float16, {"x": {}, "y": [[], {}]},
                      {"p": one.clone().requires_grad_(True)}, {"i": ingot.tensor([1, 2]), "b": ingot.tensor([True, False]), "e": ingot.zeros(0, 3)}):
            with self.subTest(value=str(value)):
                self.same(through_memory(value), value)
        self.assertIs(type(through_memory(nn.Parameter(one))), nn.Parameter)
        self.assertEqual(type(through_memory(collections.OrderedDict(a=1))), dict)
        self.assertTrue(through_memory(float("nan")) != through_memory(float("nan")))
        with self.assertRaisesRegex(ingot.ValueError, "part of itself"):
            loop = []
            loop.append(loop)
            through_memory({"loop": loop})

    @needs_numpy
    def test_numpy_values(self):
        back = through_memory({"a": numpy.arange(3, dtype="f8"), "s": numpy.float32(0.5), "f": numpy.float64(2), "i": numpy.int64(7)})
        self.assertIs(type(back["a"]), numpy.ndarray)
        self.assertEqual((back["a"].tolist(), back["s"], back["f"], back["i"]), ([0, 1, 2], 0.5, 2.0, 7))

    def test_objects_with_code_are_refused_in_a_sentence(self):
        for value, word in ((nn.Linear(1, 1), "state_dict"), ({"m": [nn.Linear(1, 1)]}, r"\['m'\]\[0\]"), ({"f": lambda: 0}, "function")):
            with self.assertRaisesRegex(ingot.ValueError, word):
                through_memory(value)

    def test_files_of_other_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            with open(path, "wb") as f:
                f.write(safetensors({"a\u0000b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "c": {"dtype": "BOOL", "shape": [8], "data_offsets": [4, 12]}},
                                    struct.pack("<f", 2) + bytes([0, 1, 2, 255, 0, 1, 128, 0])))
            back = ingot.load(path)
            self.assertEqual(list(back), ["a\0b", "c"])
            self.assertEqual((back["c"].sum().item(), (back["c"] == True).sum().item()), (5, 5))  # noqa: E712
        self.assertEqual(ingot._ingot.from_bytes(b"\x02\x00", ingot.bool_, (2,)).sum().item(), 1)

    @needs_torch
    def test_files_of_torch(self):
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
        value = {"epoch": 3, "lr": 0.125, "inf": float("-inf"), "name": "caf\u00e9", "none": None, "on": True, "big": 2**40, "raw": b"\x00\xff",
                 "list": [1, (2.5, torch.ones(2))], 7: "seven", "model": net.state_dict(), "optimizer": opt.state_dict(), "set": {1, 2},
                 "args": argparse.Namespace(lr=0.1), "dtype": torch.float16, "size": torch.Size([2, 3]), "device": torch.device("cpu")}
        f = io.BytesIO()
        torch.save(value, f)
        f.seek(0)
        back = ingot.load(f)
        self.assertEqual(list(back), list(value))
        for k in ("epoch", "lr", "inf", "name", "none", "on", "big", "raw", 7, "set", "args"):
            self.same(back[k], value[k])
        self.assertEqual(back["list"][0], 1)
        self.close(back["list"][1][1], torch.ones(2))
        self.assertEqual((back["dtype"], tuple(back["size"]), back["device"]), (ingot.float16, (2, 3), "cpu"))
        self.close(back["model"]["weight"], net.weight)
        self.close(back["optimizer"]["state"][0]["exp_avg"], opt.state_dict()["state"][0]["exp_avg"])
        self.assertEqual(back["optimizer"]["param_groups"][0]["betas"], (0.9, 0.999))
        f = io.BytesIO()
        torch.save(torch.arange(3), f)
        f.seek(0)
        self.assertEqual(ingot.load(f).tolist(), [0, 1, 2])


class Damage(TestCase):
    def test_unsound_files_raise_sentences(self):
        entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
        files = [b"", b"abc", safetensors(b"[" * 100000), safetensors({"a": 3}), safetensors({"a": {**entry, "shape": "x"}}, bytes(4)),
                 safetensors({"a": {**entry, "data_offsets": [0]}}, bytes(4)), safetensors({"a": entry}, bytes(8)),
                 safetensors({"a": entry, "b": entry}, bytes(4)), safetensors({"a": {**entry, "data_offsets": [4, 8]}}, bytes(8)),
                 safetensors(b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
                 safetensors({"a": {"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 0]}}), safetensors({"__metadata__": {"x": 1}})]
        files += [safetensors({"__metadata__": {"ingot.tree": tree}}) for tree in (
            "", "{", '{"$":"tensor","v":"x"}', '{"$":"import","v":"os"}', '{"$":"tuple","v":3}', '{"$":[],"v":3}', '{"$":"dict","v":[[[],1]]}',
            "[" * 100000, '{"$":"complex","v":["a"]}', '{"$":"bytes","v":"0"}', '{"$":"namespace","v":[[1,2]]}')]
        for data in files:
            with self.subTest(data=data[:80]), self.assertRaises(ingot.IoError):
                ingot.load(io.BytesIO(data))

    def test_what_cannot_be_written_leaves_the_old_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            ingot.save({"a": 1}, path)
            with self.assertRaises(ingot.ValueError):
                ingot.save({"a": 2, "f": print}, path)
            with self.assertRaises(ingot.IoError):
                ingot.save({"a": 2}, os.path.join(folder, "none", "x"))
            self.assertEqual(ingot.load(path), {"a": 1})
            self.assertEqual(os.listdir(folder), ["x"])

    def test_kill_in_the_middle_of_a_save(self):
        program = ("import ingot, sys\n"
                   "w = ingot.full((16, 1024, 1024), 2.0)\n"
                   "ingot.eval([w])\n"
                   "print('go', flush=True)\n"
                   "while True: ingot.save({'w': w}, sys.argv[1])\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x")
            ingot.save({"w": ingot.ones(16, 4)}, path)
            for kill in range(5):
                child = subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE)
                child.stdout.readline()
                end = time.time() + 20  # until a new file is being written
                while time.time() < end and not any(name != "x" for name in os.listdir(folder)):
                    pass
                time.sleep(0.004 * kill)
                child.send_signal(signal.SIGKILL)
                child.wait()
                child.stdout.close()
                self.assertIn(ingot.load(path)["w"].mean().item(), (1.0, 2.0))
                for name in os.listdir(folder):
                    if name != "x":
                        os.remove(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
