#!/usr/bin/env python3
"""Writes docs/ops.md, the reference of all functions on tensors, from the comments of the public headers, with a table of
PyTorch's and NumPy's names.

    tools/op_reference.py            writes docs/ops.md
    tools/op_reference.py --check    fails when docs/ops.md is not what would be written (a test runs this)
    tools/op_reference.py --names    looks up the other libraries' names again (PyTorch and NumPy must be installed) and
                                     writes tools/op_names.csv, then docs/ops.md
    tools/op_reference.py --python FILE   writes the docstrings of the Python package, rows of a C++ table
"""
import argparse
import csv
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include/ingot"
NAMES = ROOT / "tools/op_names.csv"
TARGET = ROOT / "docs/ops.md"

# Headers of functions on tensors, in the order of the reference; others that hold such functions
# are appended.
ORDER = ["ops.h", "creation.h", "random.h", "movement.h", "elementwise.h", "reductions.h", "indexing.h", "sorting.h", "linalg.h", "activation.h",
         "attention.h", "norm.h", "dropout.h", "conv.h", "pool.h", "resample.h", "rnn.h", "loss.h"]
LAST = ["inplace.h"]
# Headers that are not about functions on tensors.
OTHER = {"ingot.h", "tensor.h", "tensor_args.h", "amp.h", "autograd.h", "capture.h", "device.h", "distributed.h", "dtype.h", "environment.h", "error.h", "models.h", "nn.h",
         "optim.h", "runtime.h", "shape.h", "source.h", "state.h", "texts.h", "version.h", "devices.h", "interop.h", "metrics.h", "io.h", "data.h", "fit.h", "checkpoint.h"}

# Of those, what docstrings are taken from too.
PYTHON_TOO = ["amp.h", "autograd.h", "capture.h", "device.h", "devices.h", "optim/optimizer.h", "runtime.h"]

# NumPy's names where they differ.
NUMPY = dict(cat="concatenate", acos="arccos", asin="arcsin", atan="arctan", acosh="arccosh", asinh="arcsinh", atanh="arctanh", atan2="arctan2",
             pow="power", div="divide", mul="multiply", sub="subtract", neg="negative", eq="equal", ne="not_equal", lt="less", le="less_equal",
             gt="greater", ge="greater_equal", permute="transpose", unsqueeze="expand_dims", clamp="clip", t="transpose", movedim="moveaxis",
             transpose="swapaxes", mm="matmul", bmm="matmul", mv="matmul", gather="take_along_axis", index_select="take", expand="broadcast_to",
             bitwise_left_shift="left_shift", bitwise_right_shift="right_shift", repeat="tile", repeat_interleave="repeat", split="split",
             flatten="ravel", std="std", var="var", lerp=None, inv="linalg.inv", det="linalg.det", slogdet="linalg.slogdet", solve="linalg.solve",
             cholesky="linalg.cholesky", matrix_power="linalg.matrix_power", multi_dot="linalg.multi_dot", norm="linalg.norm", mT="matrix_transpose",
             rand="random.rand", randn="random.randn", randint="random.randint", randperm="random.permutation", normal="random.normal",
             uniform="random.uniform", max="max", min="min", all="all", any="any", sum="sum", prod="prod", round="round", abs="abs", fill_=None,
             true_divide="true_divide", clip="clip", from_data=None, tensor="array", scalar=None, empty="empty", narrow=None, select=None,
             logsumexp="logaddexp.reduce", unique="unique", sort="sort", argsort="argsort", searchsorted="searchsorted", pad="pad", equal="array_equal")
# PyTorch's where they differ.
TORCH = dict(tensor="torch.tensor", scalar="torch.tensor", from_data="torch.frombuffer", wrap="torch.frombuffer", swiglu="—", uniform="Tensor.uniform_",
             argument="—", linear="F.linear", tri="—", scatter_add_zeros="Tensor.scatter_add_", max="torch.max", slice="x[a:b:c]",
             logsigmoid="F.logsigmoid", cast="Tensor.to", mT="Tensor.mT", manual_seed="torch.manual_seed", default_generator="torch.default_generator")


class Group:
    """Declarations that share a comment."""

    def __init__(self, text):
        self.text, self.declarations = text, []


def headers():
    found = {p.name for p in HEADERS.glob("*.h")} - OTHER
    middle = sorted(found - set(ORDER) - set(LAST))
    return [HEADERS / n for n in ORDER + middle + LAST if n in found]


def tidy(declaration):
    d = re.sub(r"\s+", " ", declaration).strip()
    d = re.sub(r"\)\s*\{ .*$", ")", d).rstrip(";").strip()  # without the body of an inline function
    d = re.sub(r",?\s*INGOT_LOC", "", d)
    d = re.sub(r",?\s*SourceLoc loc = SourceLoc::current\(\)", "", d)
    return re.sub(r"^(inline|constexpr) ", "", d)


def name_of(declaration):
    m = re.search(r"([A-Za-z_]\w*)\(", declaration)
    return m.group(1) if m and not declaration.startswith("template") else None


def with_rows(text):
    """The text of a header with the declarations that it makes from rows of methods.def."""
    made = re.compile(r'#define INGOT_FUNCTION\(name\) (Tensor name\(.*;)\n#include "ingot/methods.def"\n')
    rows = re.findall(r"^INGOT_FUNCTION\((\w+)\) *(///<.*)$", (HEADERS / "methods.def").read_text(), re.M)
    return made.sub(lambda m: "".join(f"{m[1].replace('name', name, 1)}  {comment}\n" for name, comment in rows), text)


def parse(path):
    """The file's introduction and its sections: [(title, [Group or struct text])]."""
    lines = with_rows(path.read_text()).split("\n")
    intro, k = [], 0
    while k < len(lines) and lines[k].startswith("//"):
        intro.append(lines[k][2:].strip())
        k += 1
    sections, group, struct, depth, statement = [("", [])], None, None, 0, ""
    skipping = 0
    while k < len(lines):
        line = lines[k]
        k += 1
        s = line.strip()
        if skipping:  # namespace detail and other parts that are not for users
            skipping += line.count("{") - line.count("}")
            continue
        if s.startswith("namespace detail"):
            skipping = line.count("{") - line.count("}")
            continue
        if s.startswith(("#", "namespace", "}  // namespace", "template", "class ", "enum class ")) and not statement:
            while s.endswith("\\"):
                s = lines[k].strip()
                k += 1
            if s.startswith("template"):  # its declaration
                depth = 0
                while k < len(lines):
                    depth += lines[k].count("{") - lines[k].count("}")
                    end = depth == 0 and lines[k].rstrip().endswith((";", "}"))
                    k += 1
                    if end:
                        break
            elif s.startswith(("class ", "enum class ")) and not s.endswith(";"):
                skipping = line.count("{") - line.count("}")
            group = None
            continue
        m = re.match(r"// ---- (.*)", s)
        if m:
            title = m.group(1)
            while k < len(lines) and re.match(r"// (?!----)", lines[k].strip()):
                title += " " + lines[k].strip()[3:]
                k += 1
            sections.append((title, []))
            group = None
            continue
        if not s:
            group = None
            continue
        if s.startswith("///") and not s.startswith("///<"):
            if group is None or group.declarations:
                group = Group("")
                sections[-1][1].append(group)
            group.text = (group.text + " " + s[3:].strip()).strip()
            continue
        if s.startswith("//"):
            continue
        if struct is None and s.startswith("struct ") and not statement:
            if s.endswith(";"):
                continue
            struct = [s]
            continue
        if struct is not None:
            struct.append(line.rstrip())
            if s == "};":
                sections[-1][1].append("\n".join(struct))
                struct, group = None, None
            continue
        own = None
        if "///<" in line:
            line, own = line.split("///<", 1)
        statement += " " + line.strip()
        opened = statement.count("{") - statement.count("}")
        if opened > 0 or not (statement.rstrip().endswith(";") or statement.rstrip().endswith("}")):
            if own:
                statement += ""
            continue
        d = tidy(statement)
        statement = ""
        if not name_of(d) or d.startswith(("using", "typedef", "extern")):
            continue
        if own is not None:
            g = Group(own.strip())
            if group is not None and not group.declarations:  # the comment above belongs to it too
                g, group.text = group, (group.text + " " + own.strip()).strip()
            else:
                sections[-1][1].append(g)
            g.declarations.append(d)
            group = None
        else:
            if group is None:
                group = Group("")
                sections[-1][1].append(group)
            group.declarations.append(d)
    return " ".join(intro), [x for x in sections if x[1]]


def methods():
    text = (HEADERS / "tensor.h").read_text()
    body = text[text.index("class Tensor {"):]
    found = set(re.findall(r"^\s+(?:Tensor&?|void|bool|::std::vector<Tensor>|\w+) (\w+)\(", body, re.M))
    found.discard("unfold")  # the method is a view of one dim, conv.h's function takes windows of images
    return found | set(re.findall(r"INGOT_(?:METHOD\([\w:<>]+, |(?:UNARY|FUNCTION|BINARY|REDUCTION|ADD_PRODUCT)\()(\w+)", (HEADERS / "methods.def").read_text()))


def in_place():
    rows = (HEADERS / "methods.def").read_text()
    own = re.findall(r"Tensor& (\w+_)\(", (HEADERS / "tensor.h").read_text())
    table = [n + "_" for n in re.findall(r"INGOT_(?:UNARY_|BINARY_|FUNCTION|IN_PLACE|IN_PLACE_FUNCTION)\((\w+)", rows) if n != "name"]
    return sorted(set(own + table) - {"eval_", "requires_grad_"})


def in_place_functions():
    rows = (HEADERS / "methods.def").read_text()
    return sorted(n + "_" for n in re.findall(r"INGOT_(?:UNARY_|FUNCTION|IN_PLACE_FUNCTION)\((\w+)", rows) if n != "name")


def filled(text, first="", rest=""):
    """The text in lines of 100 columns, none of which begins with a sign that Markdown takes for a list or a heading."""
    kept = re.sub(r" +(?=(?:[-+*#>=]+|\d+[.)]) )", "\0", text)
    wrapped = textwrap.wrap(kept, 100, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in wrapped]


def reference(parsed, known):
    out = []
    for path, intro, sections in parsed:
        out += ["## `ingot/%s`" % path.name, ""] + filled(intro) + [""]
        if path.name == "inplace.h":
            out += filled("By the rows of `methods.def`, with the arguments of the functions without an underscore: " +
                    ", ".join("`%s`" % n for n in in_place_functions())) + [""]
        for title, groups in sections:
            if title:
                out += ["### " + title.split(". ")[0].rstrip("."), ""]
                if ". " in title:
                    out += filled(title.split(". ", 1)[1]) + [""]
            for g in groups:
                if isinstance(g, str):
                    out += ["```cpp-excerpt", g, "```", ""]
                    continue
                for d in g.declarations:
                    out += filled("`%s`%s" % (d, " *(also a method)*" if name_of(d) in known else ""), "- ", "  ")
                if g.text and g.declarations:
                    out += [""] + filled(g.text, "  ", "  ")
                if g.declarations:
                    out.append("")
    return out


def function_names(parsed):
    names = []
    for _, _, sections in parsed:
        for _, groups in sections:
            for g in groups:
                if not isinstance(g, str):
                    names += [name_of(d) for d in g.declarations]
    return sorted(set(n for n in names + in_place_functions() if not n.startswith("operator")))


def stored_names():
    if not NAMES.exists():
        return {}
    with NAMES.open() as f:
        return {r[0]: (r[1], r[2]) for r in csv.reader(f) if r and not r[0].startswith("#")}


def look_up(names):
    import numpy
    import torch
    import torch.nn.functional

    def torch_name(n):
        if n in TORCH:
            return TORCH[n]
        for prefix, module in (("torch", torch), ("F", torch.nn.functional), ("torch.linalg", torch.linalg), ("torch.special", torch.special)):
            if hasattr(module, n):
                return prefix + "." + n
        return "Tensor." + n if hasattr(torch.Tensor, n) else "—"

    def numpy_name(n):
        n = NUMPY.get(n, n)
        if n is None:
            return "—"
        at = numpy
        for part in n.split("."):
            at = getattr(at, part, None)
        return "np." + n if at is not None else "—"

    with NAMES.open("w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["# function", "PyTorch", "NumPy; written by op_reference.py --names"])
        for n in names:
            w.writerow([n, torch_name(n), numpy_name(n)])


def document():
    parsed = [(p, *parse(p)) for p in headers()]
    known, table = methods(), stored_names()
    out = ["# Functions on tensors", ""]
    out += filled("Written by `tools/op_reference.py` from the comments of the headers; do not edit.") + [""]
    out += filled("All of this is in namespace `ingot` and comes with `#include <ingot/ingot.h>`. Every function has a last argument, left "
                 "out here, that defaults to the caller's line and appears in error messages. A function marked as a method can also be "
                 "called as `x.name(...)`.") + [""]
    out += reference(parsed, known)
    out += ["## In place", ""]
    out += filled("Methods that write into their tensor. Its other handles see the change, and a view writes through to its base. "
                 "`tensor.h` says what throws.")
    out += [""] + filled(", ".join("`%s`" % n for n in in_place())) + ["", "## Names elsewhere", ""]
    out += filled("Arguments have PyTorch's names, order and defaults. F is `torch.nn.functional`.")
    out += ["", "| Ingot | PyTorch | NumPy |", "| --- | --- | --- |"]
    for n in function_names(parsed):
        t, u = table.get(n, ("—", "—"))
        out.append("| `%s` | %s | %s |" % (n, "—" if t == "—" else "`%s`" % t, "—" if u == "—" else "`%s`" % u))
    return "\n".join(out) + "\n", parsed


def alias_names():
    """Other names for a function, of the headers and of the Python package: {alias: function}."""
    found = {}
    for path in headers():
        found.update(re.findall(r"^inline Tensor (\w+)\([^{;]*\) \{\s*return (\w+)\(", path.read_text(), re.M))
    for path in (ROOT / "python/src").glob("*.cpp"):
        found.update(re.findall(r"^\s*ALIAS\((\w+), (\w+)\)", path.read_text(), re.M))
    return found


def docstrings(parsed):
    """{function: its comment}, the texts of overloads one after another, and of the in-place forms. A function without a comment has its
    section's."""
    texts, shared = {}, {}
    for _, _, sections in parsed:
        for title, groups in sections:
            for g in groups:
                for d in [] if isinstance(g, str) else g.declarations:
                    texts.setdefault(name_of(d), [])
                    shared.setdefault(name_of(d), title)
                    if g.text and g.text not in texts[name_of(d)]:
                        texts[name_of(d)].append(g.text)
    for alias, name in alias_names().items():
        if texts.get(name) and not texts.get(alias):
            texts[alias] = ["The same as %s()." % name] + texts[name]
    for name, title in shared.items():
        if not texts.get(name) and ". " in title:
            texts[name] = [title]
    for name in in_place():
        if texts.get(name[:-1]) and not texts.get(name):
            texts[name] = ["%s(), written into this tensor." % name[:-1]] + texts[name[:-1]]
    return {n: t for n, t in texts.items() if t and not n.startswith("operator")}


def class_docstrings():
    """{class: its comment} of layers, optimisers, schedules and data sets, with Module's methods and the initialisers."""
    texts = {}
    comment = r"((?:^[ ]*///(?!<).*\n)+)"
    for path in sorted(p for folder in ("nn", "optim", "data") for p in (HEADERS / folder).glob("*.h")):
        text = path.read_text()
        found = re.findall(comment + r"(?:template.*\n)?(?:class|struct) (\w+)", text, re.M)
        prefix = "Module." if path.name == "module.h" else "" if path.name == "init.h" else None
        if prefix is not None:
            found += [(c, prefix + n) for c, n in re.findall(comment + r"[ ]*(?:virtual |static |inline )?[\w:<>&*, ]+?[ &](\w+)\(", text, re.M)]
            found += [(c, prefix + n) for n, c in re.findall(r"^[ ]*[\w:<>&*, ]+?[ &](\w+)\(.*\);  +(///<.*)$", text, re.M)]
        for c, name in found:
            texts.setdefault(name, [" ".join(line.strip().lstrip("/<").strip() for line in c.strip().split("\n"))])
    return texts


def write_docstrings(path, parsed):
    import json

    rows = []
    for name, texts in sorted({**class_docstrings(), **docstrings(parsed)}.items()):
        text = "\n\n".join(textwrap.fill(t.replace("ingot::", ""), 100, break_on_hyphens=False) for t in texts)
        rows.append("    {%s, %s},\n" % (json.dumps(name), json.dumps(text, ensure_ascii=False)))
    pathlib.Path(path).write_text("// Written by tools/op_reference.py --python.\n" + "".join(rows))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--check", action="store_true")
    a.add_argument("--names", action="store_true")
    a.add_argument("--python", metavar="FILE")
    o = a.parse_args()
    if o.python:
        write_docstrings(o.python, [(p, *parse(p)) for p in headers() + [HEADERS / n for n in PYTHON_TOO]])
        return 0
    if o.names:
        look_up(function_names(document()[1]))
    text, parsed = document()
    if not o.check:
        TARGET.write_text(text)
        print("%s: %d functions" % (TARGET.relative_to(ROOT), len(function_names(parsed))))
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        print("docs/ops.md is up to date")
        return 0
    print("docs/ops.md does not match the headers: run tools/op_reference.py", file=sys.stderr)
    return 1


sys.exit(main())
