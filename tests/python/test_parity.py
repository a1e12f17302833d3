"""The public names and keywords of C++ are there in Python, and the other way round: what the headers declare is read from them."""
import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest

from common import TestCase, ingot

HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "ingot")
FUNCTION = re.compile(r"^(?:inline )?(?:Tensor|std::vector<Tensor>|ValuesIndices|SignLogdet|MinMax|Unique|std::pair<Tensor, Tensor>|bool) "
                      r"(\w+)\(([^;{]*?)(?:INGOT_LOC|SourceLoc loc)", re.M | re.S)
FILES = ["activation.h", "attention.h", "conv.h", "creation.h", "dropout.h", "elementwise.h", "indexing.h", "linalg.h", "loss.h", "movement.h",
         "norm.h", "pool.h", "random.h", "reductions.h", "resample.h", "rnn.h", "sorting.h"]

# C++ name -> where Python has it under another.
RENAMED = {"cast": "Tensor.to", "scalar": "tensor", "from_data": "from_bytes", "wrap": "from_numpy", "slice": "Tensor.__getitem__",
           "scatter_add_zeros": "scatter_add", "solve": "linalg.solve", "solve_triangular": "linalg.solve_triangular", "inv": "linalg.inv",
           "mT": "Tensor.mT", "expit": "special.expit", "expand": "Tensor.expand", "repeat": "Tensor.repeat", "tri": "tril",
           "uniform": "Tensor.uniform_", "pad": "nn.functional.pad", "argument": "argument",
           "max_pool1d_with_indices": "nn.functional.max_pool1d", "max_pool2d_with_indices": "nn.functional.max_pool2d",
           "max_pool3d_with_indices": "nn.functional.max_pool3d"}
# Of C++ alone.
ABSENT = {"result_type"}


def find(name):
    for place in (ingot, ingot.nn.functional, ingot.linalg, ingot.special):
        if hasattr(place, name):
            return getattr(place, name)
    return getattr(ingot.Tensor, name, None)


def resolve(path):
    place = ingot
    for part in path.split("."):
        place = getattr(place, part, None)
    return place


def declared():
    """name -> the parameters' names of each declaration."""
    out = {}
    for file in FILES:
        path = os.path.join(HEADERS, file)
        if not os.path.exists(path):
            continue
        with open(path) as f:
            text = re.sub(r"//.*", "", f.read())
        for m in FUNCTION.finditer(text):
            params = [p.strip() for p in re.split(r",(?![^<({]*[>)}])", m[2]) if p.strip()]
            names = [re.sub(r"\s*=.*", "", p).split()[-1].lstrip("&*") for p in params]
            out.setdefault(m[1], []).append(names)
    return out


class Parity(TestCase):
    def test_every_function_of_the_headers_is_there(self):
        found = declared()
        self.assertGreater(len(found), 150, "the headers were not read")
        missing = [n for n in found if n not in ABSENT and (resolve(RENAMED[n]) if n in RENAMED else find(n)) is None]
        self.assertEqual(missing, [])

    def test_keywords(self):
        """Where C++'s parameter names are PyTorch's, Python takes them too."""
        shared = {"dim", "keepdim", "stride", "padding", "dilation", "groups", "kernel_size", "reduction", "diagonal", "start_dim", "end_dim",
                  "correction", "eps", "weight", "bias", "largest", "sorted", "descending", "normalized_shape", "num_classes", "training", "momentum",
                  "output_size", "ceil_mode", "count_include_pad", "alpha", "offset", "dim1", "dim2", "upper", "left"}
        wrong = []
        for name, overloads in declared().items():
            function = find(name)
            if name in RENAMED or function is None:
                continue
            text = (getattr(function, "__doc__", "") or "").split("\n\n")[0] if not inspect.isfunction(function) else str(inspect.signature(function))
            for params in overloads:
                wrong += [f"{name}({p})" for p in params if p in shared and not re.search(rf"\b{p}\b", text)]
        self.assertEqual([w for w in wrong if w not in KNOWN], [])

    def test_the_guides_list_is_true(self):
        path = os.path.join(HEADERS, "..", "..", "docs", "python.md")
        with open(path) as f:
            text = f.read()
        parts = re.findall(r"^### torch([\w.]*) \((\d+)\)\n\n```text\n(.*?)```", text, re.M | re.S)
        self.assertGreater(len(parts), 10)
        for part, count, names in parts:
            place = resolve(part.lstrip(".")) if part else ingot
            self.assertEqual(len(names.split()), int(count), part)
            self.assertEqual([n for n in names.split() if not hasattr(place, n)], [], "torch" + part)

    def test_import_is_quick_and_brings_no_numpy(self):
        # Seconds of this process alone, whatever else the machine does; the first run writes the bytecode.
        code = ("import sys, time; t = time.process_time(); import ingot; t = time.process_time() - t; "
                "assert 'numpy' not in sys.modules and 'torch' not in sys.modules; print(t)")
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, PYTHONPYCACHEPREFIX=folder)
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout)
                     for _ in range(4)]
        self.assertLess(min(times), 0.2)


# Keywords that Python's function has not, with the reason: PyTorch has another name or none.
KNOWN = {"roll(dim)", "searchsorted(sorted)"}

if __name__ == "__main__":
    unittest.main()
