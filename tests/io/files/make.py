"""Makes the files that formats_test.cpp reads: written by PyTorch, NumPy and safetensors themselves.

usage: make.py FOLDER   (needs torch, numpy and safetensors)
"""
import collections
import pathlib
import sys

import numpy
import safetensors.torch
import torch

out = pathlib.Path(sys.argv[1])
kinds = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
         "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}


def values(kind):
    return (torch.arange(6).reshape(2, 3) % 3).to(kind)


everything = {name: values(kind) for name, kind in kinds.items()}
torch.save(everything, out / "types.pt")
safetensors.torch.save_file(everything, out / "types.safetensors", metadata={"format": "pt", "note": "a \"quoted\" note\n"})
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
torch.save(model.state_dict(), out / "model.pt")
base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
torch.save({"model": collections.OrderedDict(turned=base.t(), part=base[1:3, 2:5], same=base), "epoch": 3, "rate": 0.5, "name": "x",
            "list": [torch.tensor(7), torch.zeros(0, 3)], "parameter": torch.nn.Parameter(torch.ones(2))}, out / "nested.pt")
torch.save(model, out / "module.pt")


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


torch.save({"a": torch.ones(1), "b": Evil()}, out / "evil.pt")
arrays = {"f4": numpy.arange(6, dtype="<f4").reshape(2, 3), "big": numpy.arange(6, dtype=">i4").reshape(2, 3),
          "fortran": numpy.asfortranarray(numpy.arange(24, dtype="<f8").reshape(2, 3, 4)), "u2": numpy.array([1, 65535], "u2"),
          "scalar": numpy.array(2.5), "empty": numpy.zeros((0, 2), "i8"), "bool": numpy.array([True, False]), "one": numpy.array([3], "i1")}
numpy.savez(out / "stored.npz", **arrays)
numpy.savez_compressed(out / "packed.npz", **arrays)
numpy.save(out / "complex.npy", numpy.zeros(2, "c8"))
