"""The fields of C++'s option structs are PyTorch's keywords in PyTorch's order, and Python's classes take them. The structs are read from
the headers. Where PyTorch is not installed the order is compared with Python's own classes alone."""
import glob
import inspect
import os
import re
import unittest

from common import TestCase, ingot

try:
    import torch
except ImportError:
    torch = None

HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "ingot")
# Structs that serve other classes than the one of their name.
SERVES = {
    "Conv": ["Conv1d", "Conv2d", "Conv3d"], "ConvTranspose": ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"],
    "MaxPool": ["MaxPool1d", "MaxPool2d", "MaxPool3d"], "AvgPool": ["AvgPool2d", "AvgPool3d"], "LPPool": ["LPPool1d", "LPPool2d"],
    "BatchNorm": ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"], "InstanceNorm": ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"],
    "Loss": ["MSELoss", "L1Loss", "SoftMarginLoss"], "MarginLoss": ["MarginRankingLoss", "CosineEmbeddingLoss"],
    "Cell": ["LSTMCell", "GRUCell"], "TransformerLayer": ["TransformerEncoderLayer", "TransformerDecoderLayer"],
    "OneCycle": ["OneCycleLR"], "Plateau": ["ReduceLROnPlateau"],
}
# Of Ingot alone.
OWN_STRUCTS = {"LoRA", "Rotary", "Lion", "EMA", "NanGuard", "Kaiming"}
OWN_FIELDS = {"master_weights"}
# PyTorch's RNN takes nonlinearity and proj_size by keyword (it hands *args on), so that its signature does not say them.
THROUGH_ARGS = {"RNN", "LSTM", "GRU"}
RNN_ORDER = ["num_layers", "nonlinearity", "bias", "batch_first", "dropout", "bidirectional", "proj_size", "device", "dtype"]


def structs():
    """Struct's name without Options -> its fields, in order."""
    out = {}
    for path in sorted(glob.glob(HEADERS + "/nn/*.h") + glob.glob(HEADERS + "/optim/*.h")):
        with open(path) as f:
            text = re.sub(r"//.*", "", f.read())
        for name, body in re.findall(r"^struct (\w+)Options \{(.*?)^\};", text, re.M | re.S):
            fields = []
            for declaration in body.split(";"):
                declaration = re.sub(r"(=.*|\{.*\})\s*$", "", declaration.strip(), flags=re.S).strip()
                if declaration:
                    fields.append(re.split(r"[\s>]+", declaration)[-1])
            out[name] = fields
    return out


def find(package, name):
    for place in (package.nn, package.optim, package.optim.lr_scheduler):
        if hasattr(place, name):
            return getattr(place, name)
    return None


def keywords(cls, fields):
    """The class's keywords in order; of one that hands them on, those of the fields that it does not refuse."""
    parameters = inspect.signature(cls.__init__).parameters
    if not any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        return [p for p in parameters if p != "self"]
    try:
        given = [[ingot.nn.Parameter(ingot.ones(2, 2))]] if "params" in parameters else []
        cls(*given, **dict.fromkeys(fields), nonsense=None)
    except TypeError as error:
        if "nonsense" in str(error):
            refused = str(error).rpartition(" not ")[2]
            return [f for f in fields if f"'{f}'" not in refused]
    return []


class Options(TestCase):
    maxDiff = None

    def check(self, package):
        problems, seen = [], 0
        for struct, fields in structs().items():
            if struct in OWN_STRUCTS:
                continue
            for name in SERVES.get(struct, [struct]):
                cls = find(package, name)
                if cls is None:
                    problems.append(f"{name} ({struct}Options) is missing")
                    continue
                known = RNN_ORDER if name in THROUGH_ARGS else keywords(cls, fields)
                missing = [f for f in fields if f not in known and f not in OWN_FIELDS]
                if missing:
                    problems.append(f"{name} has no {', '.join(missing)}")
                order = [f for f in known if f in fields]
                if order != [f for f in fields if f in known]:
                    problems.append(f"{name}: {fields}, but {order}")
                seen += 1
        self.assertEqual(problems, [])
        self.assertGreater(seen, 60, "the headers were not read")

    def test_python_takes_the_fields(self):
        self.check(ingot)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_fields_are_pytorchs(self):
        self.check(torch)


if __name__ == "__main__":
    unittest.main()
