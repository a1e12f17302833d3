"""Every argument of every public function and class acts, is refused, or is on the one list of hints (ingot/_hints.py, docs/python.md).
The arguments are read from the signatures. Each is given two values, and the results must differ: values, dtype, shape, device, what is
left in the arguments, gradients. Where the other value is refused, REFUSED says so, and the error must be a sentence of Ingot's.

What is called with what: by the argument's name (BASE, and others() for the second value), or by a function's row in keyword_rows.py. A new
function, or a new argument, that neither covers fails the test."""
import fnmatch
import inspect
import os
import re
import types
import unittest

import keyword_rows as rows
from common import TestCase, ingot
from ingot._hints import HINTS
from keyword_rows import BASE, INPUTS, PROBES, REFUSED, ROWS, SKIPPED, facts

nn = ingot.nn
PLACES = {
    "": ingot, "Tensor": ingot.Tensor, "nn": nn, "nn.functional": nn.functional, "nn.init": nn.init, "nn.utils": nn.utils, "optim": ingot.optim,
    "optim.lr_scheduler": ingot.optim.lr_scheduler, "linalg": ingot.linalg, "special": ingot.special, "utils.data": ingot.utils.data,
    "utils.checkpoint": ingot.utils.checkpoint, "amp": ingot.amp, "autograd": ingot.autograd, "cuda": ingot.cuda, "random": ingot.random,
    "testing": ingot.testing, "compat": ingot.compat,
}
FUNCTIONS = (types.FunctionType, type(ingot.relu), type(ingot.Tensor.relu))


def split(text):
    """The parts between the commas that are outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def parameters(function):
    """name -> its default, or inspect.Parameter.empty; of all overloads."""
    if isinstance(function, type):
        function = function.__init__
    out = {}
    if hasattr(function, "__nb_signature__"):
        for text, _, defaults in function.__nb_signature__:
            inside = text[text.index("(") + 1:text.rindex(") ->")]
            for p in split(inside):
                name, _, default = p.partition("=")
                name = name.partition(":")[0].strip()
                if name.isidentifier() and name != "self" and not re.fullmatch(r"arg\d*", name):
                    out.setdefault(name, defaults[int(default.strip()[1:])] if default else inspect.Parameter.empty)
        return out
    for name, p in inspect.signature(function).parameters.items():
        if name not in ("self", "ctx") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            out[name] = p.default
    return out


def public():
    """qualified name -> function or class, each once."""
    out, seen = {}, set()

    def add(name, value):
        if id(value) in seen or (isinstance(value, type) and (issubclass(value, BaseException) or value.__module__ == "builtins")):
            return
        if isinstance(value, (type, *FUNCTIONS)):
            seen.add(id(value))
            out[name] = value
            if isinstance(value, type) and value is not ingot.Tensor:
                for part, f in vars(value).items():
                    f = f.__func__ if isinstance(f, (staticmethod, classmethod)) else f
                    if not part.startswith("_") and isinstance(f, FUNCTIONS):
                        add(f"{name}.{part}", f)

    for place, owner in PLACES.items():
        if isinstance(owner, FUNCTIONS):
            add(place, owner)
            continue
        for name in sorted(vars(owner)):
            if not name.startswith("_"):
                value = vars(owner)[name]
                add(f"{place}.{name}" if place else name, value)
    out.pop("Tensor", None)  # its methods are listed
    return {n: f for n, f in sorted(out.items()) if not any(fnmatch.fnmatch(n, p) for p in SKIPPED)}


def hinted(name, keyword):
    for words, places, _ in HINTS:
        if keyword in words.split(", "):
            for place in places.split(", "):
                if fnmatch.fnmatch(name, place) or fnmatch.fnmatch(name, "*." + place) or fnmatch.fnmatch(name, "Tensor." + place):
                    return True
    return False


def others(name, value):
    """Second values for an argument of this name whose first is value."""
    if name in rows.OTHERS:
        return rows.OTHERS[name]
    if isinstance(value, ingot.Tensor):
        if value.dtype is ingot.bool_:
            return [~value]
        if not value.is_floating_point():
            return [value.flip(0), value + 1]
        return [value * 0.5 + 0.125, value.flip(0), -value, value * 0, value[:1] if value.dim() else value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 2]
    if isinstance(value, float):
        return [value * 2 + 0.5, value / 2, -value - 0.5]
    if isinstance(value, (tuple, list)) and value and all(type(v) is int for v in value):
        return [type(value)(reversed(value)), type(value)(v + 1 for v in value)]
    if isinstance(value, (tuple, list)) and value and all(isinstance(v, ingot.Tensor) for v in value):
        return [type(value)(reversed(value)), type(value)(others("", v)[0] for v in value)]
    return []


class Row:
    """How a function is called: base values, second values, and which other arguments it needs to have an effect."""

    def __init__(self, name, function):
        self.name, self.function = name, function
        self.parameters = parameters(function)
        self.plain, given = None, {}
        last = name.rpartition(".")[2]
        own = dict(next((ROWS[n] for n in (name, last, "nn.functional." + last) if n in ROWS), {}))
        self.method = name.startswith("Tensor.") and inspect.isroutine(function)
        self.second = own.pop("others", {})
        self.beside = own.pop("beside", {})
        self.positional = own.pop("args", ())
        given.update(own)
        owner = name.rpartition(".")[0].rpartition(".")[2]
        # Of methods the arguments with a default: what is required acts.
        self.optional = owner[:1].isupper() and owner != "Tensor"
        for p, default in self.parameters.items():
            if not self.optional and default is inspect.Parameter.empty and p not in given and p in BASE and not self.positional:
                given[p] = BASE[p]
        self.base = {k: v for k, v in given.items() if k in self.parameters}
        self.subject = None
        if self.method and "input" not in self.parameters:
            self.subject = given.get("input", given.get("self", BASE["input"]))
            self.base.pop("input", None)

    def call(self, change=None, beside=(), must=True):
        ingot.manual_seed(1)
        given = {**self.base, **dict(beside), **(change or {})}
        given = {k: v for k, v in given.items() if v is not rows.DROP}
        given = {k: rows.own(v) for k, v in given.items()}
        args = [rows.own(a) for a in self.positional]
        if self.subject is not None:
            args = [rows.own(dict(beside).get("input", self.subject)), *args]
            given.pop("input", None)
        place = self.name.rpartition(".")[0]
        probe = next((PROBES[p] for p in (self.name, place + ".*") if p in PROBES), None)
        try:
            if probe is not None:
                return facts(probe(self.function, *args, **given))
            if isinstance(self.function, type) and issubclass(self.function, nn.Module):
                return facts(rows.run_module(self.function(*args, **given), INPUTS.get(self.name, (BASE["input"],)), must))
            before = facts((args, given))
            out = self.function(*args, **given)
            after = facts((args, given))
            return [facts(out), [(a, b) for a, b in zip(before, after) if a != b]]  # and what it wrote to its arguments
        except Exception as e:
            return e


class Keywords(TestCase):
    maxDiff = None

    def failures(self, name, function):
        row = Row(name, function)
        unhinted = [k for k, v in row.parameters.items() if not hinted(name, k) and not (row.optional and v is inspect.Parameter.empty)]
        row.plain = row.call() if unhinted else []
        if isinstance(row.plain, Exception):
            yield f"{name}(): the call with {sorted(row.base)} fails: {self.said(row.plain)}: it needs a row in keyword_rows.py"
            return
        for keyword in unhinted:
            problem = self.problem(row, keyword)
            if problem:
                yield f"{name}({keyword}): {problem}"

    @staticmethod
    def said(e):
        return f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"

    def problem(self, row, keyword):
        """Why this argument neither acts nor is refused, or None."""
        first = row.base.get(keyword, row.parameters[keyword])
        values = row.second.get(keyword)
        values = values if isinstance(values, list) else [values] if keyword in row.second else others(keyword, first)
        if not values:
            return f"there is no second value beside {first!r}: add one to its row, or to OTHERS, in keyword_rows.py"
        beside = row.beside.get(keyword, {})
        plain = row.call(beside=beside) if beside else row.plain
        if isinstance(plain, Exception):
            return f"the call without it fails: {self.said(plain)}"
        errors = []
        for value in values:
            got = row.call({keyword: value}, beside, must=False)
            if isinstance(got, Exception):
                errors.append(got)
            elif got != plain:
                return None if (row.name, keyword) not in REFUSED else "it acts: take it out of REFUSED"
        if not errors:
            return f"it changes nothing: {first!r} and {values!r}. Let it act, refuse it, or put it on the list of hints"
        if (row.name, keyword) not in REFUSED:
            return f"{self.said(errors[0])}: give a value that acts, or name it in REFUSED"
        own = [e for e in errors if "incompatible function arguments" not in str(e) and len(str(e)) > 15]
        return None if own else f"the error is no sentence: {self.said(errors[0])}"

    def test_every_argument_acts_or_is_refused(self):
        problems = [p for name, f in public().items() for p in self.failures(name, f)]
        self.assertEqual(problems, [], f"{len(problems)} problems")

    def test_a_new_argument_fails(self):
        """What the walk says of arguments that nobody knows."""
        def ignoring(input, knob=1, word="a", dim=0):
            return input.sum(dim)

        ingot.nn.functional.ignoring = ignoring
        try:
            problems = list(self.failures("nn.functional.ignoring", public()["nn.functional.ignoring"]))
        finally:
            del ingot.nn.functional.ignoring
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("ignoring(knob): it changes nothing", problems[0])
        self.assertIn("ignoring(word): there is no second value beside 'a'", problems[1])

    def test_unknown_arguments_are_refused(self):
        """Also where a function takes *args and **kwargs."""
        swallowed = []
        for name, function in public().items():
            row = Row(name, function)
            if name in PROBES or "*" in str(getattr(function, "__nb_signature__", "")) and not row.base:
                continue
            got = row.call(change={"nonsense": 1})
            if isinstance(got, list) and name not in TAKE_ANYTHING:
                swallowed.append(name)
        self.assertEqual(swallowed, [])

    def test_in_place_methods_hand_their_arguments_on(self):
        """x.name_(...) is x.copy_(x.name(...))."""
        tried = 0
        for name, function in public().items():
            plain = name[:-1]
            if not name.startswith("Tensor.") or not name.endswith("_") or plain in ("Tensor.bernoulli",
                "Tensor.normal") or not isinstance(inspect.getattr_static(ingot.Tensor, plain[7:], None), FUNCTIONS):
                continue
            row = Row(plain, getattr(ingot.Tensor, plain[7:]))
            x = rows.own(row.subject if row.subject is not None else row.base.pop("input", BASE["input"]))
            given = {k: rows.own(v) for k, v in row.base.items() if v is not rows.DROP}
            try:
                want = getattr(x, plain[7:])(**given)
            except ingot.Error:
                continue  # needs values of another kind: its own tests have them
            if list(want.shape) != list(x.shape):
                continue
            tried += 1
            got = getattr(x.clone(), name[7:])(**given)
            self.assertEqual(facts(got), facts(want.to(x.dtype)), name)
            with self.assertRaises(TypeError, msg=name):
                getattr(x.clone(), name[7:])(nonsense=1, **given)
        self.assertGreater(tried, 60)

    def test_hints_change_nothing(self):
        """And each is an argument that exists."""
        used, tried = set(), 0
        for name, function in public().items():
            row = Row(name, function)
            for keyword, default in row.parameters.items():
                if not hinted(name, keyword):
                    continue
                used.add(keyword)
                if keyword in ("device_type", "device", "num_workers", "timeout", "worker_init_fn") or default is inspect.Parameter.empty:
                    continue
                plain, got = row.call(), row.call({keyword: not default if isinstance(default, bool) else True})
                if isinstance(plain, list) and isinstance(got, list):
                    tried += 1
                    self.assertEqual(got, plain, f"{name}({keyword}) is a hint, and changes a result")
        words = {w for words, _, _ in HINTS for w in words.split(", ")}
        self.assertEqual(words - used, {"args", "kwargs", "value", "num_workers", "timeout", "worker_init_fn"})  # these are tested by their classes
        self.assertGreater(tried, 40)

    def test_the_list_of_hints_is_documented(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "..", "docs", "python.md")) as f:
            text = f.read()
        table = [line.strip("| \n").split(" | ") for line in text.split("| Argument | Of | Why |")[1].split("\n\n")[0].split("\n")[2:]]
        self.assertEqual([tuple(cell.replace("`", "") for cell in line) for line in table], list(HINTS))


# By PyTorch's own design.
TAKE_ANYTHING = {"nn.Identity"}


class Numbers(TestCase):
    """Numbers that an integer type cannot hold are refused where PyTorch refuses them; arithmetic wraps."""

    def test_numbers_that_do_not_fit(self):
        big, whole, bytes_ = 2**40, ingot.tensor([1, 2], dtype=ingot.int32), ingot.tensor([1, 2], dtype=ingot.uint8)
        mask, at, small = ingot.tensor([True, False]), ingot.tensor([0]), ingot.tensor([1, 2], dtype=ingot.int8)

        def assign(x, v):
            x[0] = v

        calls = {
            "full": lambda: ingot.full((2,), big, dtype=ingot.int32), "full of uint8": lambda: ingot.full((2,), 300, dtype=ingot.uint8),
            "full without a dtype": lambda: ingot.full((2,), 2**63),
            "full of a float": lambda: ingot.full((2,), 1e10, dtype=ingot.int8), "full of NaN": lambda: ingot.full((2,), float("nan"),
                dtype=ingot.int32),
            "full of inf": lambda: ingot.full((2,), float("inf"), dtype=ingot.int64), "full_like": lambda: ingot.full_like(whole, big),
            "new_full": lambda: whole.new_full((2,), big), "tensor": lambda: ingot.tensor([big], dtype=ingot.int32),
            "tensor of a float": lambda: ingot.tensor([-1.5], dtype=ingot.uint8), "as_tensor": lambda: ingot.as_tensor([big], dtype=ingot.int32),
            "scalar_tensor": lambda: ingot.scalar_tensor(big, dtype=ingot.int32), "fill_": lambda: whole.fill_(big),
                "fill_ of uint8": lambda: bytes_.fill_(300),
            "fill_ of int8": lambda: small.fill_(-129), "x[0] = v": lambda: assign(whole, big), "x[mask] = v": lambda: whole.__setitem__(mask, big),
            "masked_fill": lambda: whole.masked_fill(mask, big), "masked_fill_": lambda: whole.masked_fill_(mask, big),
            "index_fill": lambda: whole.index_fill(0, at, big), "scatter": lambda: whole.scatter(0, at, value=big),
            "where": lambda: ingot.where(mask, whole, big), "clamp": lambda: whole.clamp(0, big), "clamp of uint8": lambda: bytes_.clamp(max=300),
            "clamp_": lambda: whole.clamp_(0, big), "clamp_min": lambda: small.clamp_min(200), "add(alpha)": lambda: whole.add(whole, alpha=big),
            "add_(alpha)": lambda: whole.add_(whole, alpha=big), "pow": lambda: whole ** big, "addcmul": lambda: ingot.addcmul(whole, whole, whole,
                value=big),
            "pad": lambda: ingot.nn.functional.pad(whole, (1, 1), value=big), "constant_": lambda: ingot.nn.init.constant_(whole, big),
            "randint": lambda: ingot.randint(0, 300, (3,), dtype=ingot.int8), "random_": lambda: small.random_(0, 300),
        }
        for name, call in calls.items():
            with self.subTest(name), self.assertRaisesRegex(ingot.ValueError, "does not fit into"):
                call()
        self.assertEqual(whole.tolist(), [1, 2])

    def test_numbers_that_do(self):
        bytes_, whole = ingot.tensor([1, 2], dtype=ingot.uint8), ingot.tensor([1, 2], dtype=ingot.int32)
        self.assertEqual(ingot.full((1,), -1, dtype=ingot.uint8).tolist(), [255])  # negative ones wrap in uint8
        self.assertEqual(ingot.full((1,), 3.7, dtype=ingot.int32).tolist(), [3])
        self.assertEqual(ingot.full((1,), -(2**63), dtype=ingot.int64).tolist(), [-(2**63)])
        self.assertEqual((bytes_ + 300).tolist(), [45, 46])  # arithmetic wraps
        self.assertEqual((whole + 2**40).tolist(), [1, 2])
        self.assertEqual(whole.add(3, alpha=2).dtype, ingot.int32)
        self.assertEqual(whole.add(3, alpha=2).tolist(), [7, 8])
        self.assertEqual(ingot.full((1,), 1e300).tolist(), [float("inf")])
        with self.assertRaisesRegex(ingot.DTypeError, "alpha must be an integer"):
            whole.add(whole, alpha=0.5)


if __name__ == "__main__":
    unittest.main()
