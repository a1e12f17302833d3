"""Which function is declared in which header, and which file defines it: a parser of declarations for include_scan.py.

It knows as much C++ as the house's sources need: it follows namespaces and classes, skips bodies, and names a function by its
scope, its name and the types of its parameters. Inline functions, templates and what an anonymous namespace or `static` keeps
inside a file define nothing for others.
"""
import re

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\\\'\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
SCOPE = re.compile(r"(?:^|\s)(namespace|class|struct|union|enum)\b(.*)$", re.S)
ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]|__attribute__\s*\(\(.*?\)\)|\balignas\s*\([^)]*\)|\bnoexcept\b(?:\s*\([^)]*\))?|\bINGOT_API\b")
KEYWORD = re.compile(r"^(?:using|typedef|friend|static_assert|return|if|for|while|switch|namespace|goto|asm)\b")
NAME = re.compile(r"((?:[A-Za-z_]\w*\s*(?:<[^()]*?>)?\s*::\s*)*(?:operator\s*(?:\(\)|\[\]|[^\s\w(]+|[\w:]+(?:\s*[*&])*)|~?[A-Za-z_]\w*))\s*\($")


def blank(match):
    text = match[0]
    return re.sub(r"[^\n]", " ", text) if text[0] not in "\"'" else text[0] + " " * (len(text) - 2) + text[-1]


def closing(code, at):
    """Where the bracket that opens at `at` closes."""
    pairs, depth = {"{": "}", "(": ")"}, 0
    open_, close = code[at], pairs[code[at]]
    for i in range(at, len(code)):
        if code[i] == open_:
            depth += 1
        elif code[i] == close:
            depth -= 1
            if not depth:
                return i
    return len(code) - 1


def split(parameters):
    """The parameters of a list, at its own commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(parameters):
        if c in "<({[":
            depth += 1
        elif c in ">)}]" and parameters[i - 1] != "-":
            depth -= 1
        elif c == "," and not depth:
            parts.append(parameters[start:i])
            start = i + 1
    return [p.strip() for p in parts + [parameters[start:]] if p.strip() not in ("", "void")]


def type_of(parameter):
    """'std::span<Node* const> in = {}' -> 'span<Node*>': without what a declaration may write in another way."""
    text = re.sub(r"\s*=(?!=).*$", "", parameter, flags=re.S)
    array = re.match(r"^(.*?)\b\w+\s*\[\w*\]$", text, re.S)
    text = array[1] + "*" if array else text
    text = re.sub(r"\b(?:const|struct|class|typename)\b", " ", text)
    text = re.sub(r"\b\w+\s*::\s*", "", text)
    text = re.sub(r"(?<=[\w>*&\s])(?<=[*&>\s])[A-Za-z_]\w*\s*$", "", text) if re.search(r"[\w>]\s*[*&\s]\s*[A-Za-z_]\w*\s*$", text) else text
    return re.sub(r"\s+", "", text)


class Function:
    def __init__(self, name, parameters, line):
        self.name, self.line = name, line
        self.parameters = tuple(type_of(p) for p in parameters)

    def __repr__(self):
        return f"{self.name}({', '.join(self.parameters)})"


def function_of(head, scope, line):
    """The function that a declaration's or a definition's head names, or None."""
    head = ATTRIBUTE.sub(" ", head).strip()
    if not head or KEYWORD.match(head) or re.match(r"^template\s*<\s*>", head) is None and head.startswith("template"):
        return None
    depth = 0
    for i, c in enumerate(head):
        if c == "<" and not head[:i].rstrip().endswith("operator") and not head[:i].endswith("operator<"):
            depth += 1
        elif c == ">" and depth and head[i - 1] != "-":
            depth -= 1
        elif c == "=" and not depth and "operator" not in head[:i]:
            return None  # a variable with its value
        elif c == "(" and not depth:
            at = i
            if re.search(r"operator\s*$", head[:i]):
                at = head.index("(", i + 1)
            found = NAME.search(head[:at + 1])
            if not found:
                return None
            name = re.sub(r"\s+", "", re.sub(r"<[^<>]*>", "", found[1]) if "operator" not in found[1] else found[1])
            before = head[:found.start()].strip()
            if not before and not scope and "::" not in name:
                return None  # a macro's call
            return Function("::".join(scope + [name]), split(head[at + 1:closing(head, at)]), line)
    return None


def functions(text):
    """(declared, defined) of a file: functions that others may see. Inline ones are in neither."""
    code = NOISE.sub(blank, text)
    declared, defined = [], []
    # (name or None, does it hide its functions, is it a class)
    scopes, at, start = [], 0, 0
    while at < len(code):
        c = code[at]
        if c == "(":
            at = closing(code, at) + 1
            continue
        if c not in ";{}":
            at += 1
            continue
        head, line = code[start:at], code.count("\n", 0, start + len(code[start:at]) - len(code[start:at].lstrip())) + 1
        head = re.sub(r"^\s*(?:(?:public|private|protected)\s*:(?!:)\s*)+", "", head)
        path = [part for name, _, _ in scopes for part in ([name] if name else [])]
        hidden, in_class = any(s[1] for s in scopes), bool(scopes) and scopes[-1][2]
        if c == ";":
            found = function_of(head, path, line)
            gone = re.search(r"=\s*(?:0|delete|default)\s*$", head)
            if found and not gone and not hidden and not re.match(r"\s*(?:static|extern\s+template)\b", head if not in_class else ""):
                (declared if not re.search(r"\binline\b", head) else []).append(found)
        elif c == "{":
            plain = ATTRIBUTE.sub(" ", head)
            scope = SCOPE.search(plain)
            if "(" in plain and not (scope and scope[1] == "namespace"):
                scope = None
            if re.match(r'^\s*extern\s*"', plain) and "(" not in plain:
                scopes.append((None, False, False))
                at, start = at + 1, at + 1
                continue
            if scope and scope[1] != "enum" and "=" not in re.sub(r"<[^<>]*>", "", scope[2]):
                template = plain.strip().startswith("template")
                words = re.sub(r"\bfinal\b|:(?!:).*$", "", scope[2].replace("::", "\0"), flags=re.S).replace("\0", "::")
                words = re.sub(r"<.*$", "", words, flags=re.S).split()
                name = words[-1] if words else None
                anonymous = scope[1] == "namespace" and not name or template
                for part in (name or "").split("::")[:-1]:
                    scopes.append((part, False, None))
                scopes.append(((name or "").split("::")[-1] or None, anonymous, scope[1] != "namespace"))
                at, start = at + 1, at + 1
                continue
            end = closing(code, at)
            # A member initialiser `a_{1}` is not the body.
            while re.match(r"\s*[,{]", code[end + 1:end + 80]) and re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", head):
                opening = code.index("{", end + 1)
                end = closing(code, opening)
            found = function_of(re.split(r"\)\s*:(?!:)", head)[0] + (")" if re.search(r"\)\s*:(?!:)", head) else ""), path, line)
            if found and not hidden and not in_class and not re.search(r"\b(?:inline|constexpr)\b", head) and not re.match(r"\s*static\b", head):
                defined.append(found)
            at = end + 1
            after = re.match(r"\s*;", code[at:at + 40])
            if after:
                at += after.end()
            elif not found and not re.search(r"\)\s*(?:const|override|final|noexcept|\s)*$", plain) and not (scope and scope[1] == "enum"):
                # A value in braces inside a statement that continues: it ends at its semicolon.
                semicolon = code.find(";", at)
                at = semicolon + 1 if semicolon >= 0 else len(code)
            start = at
            continue
        else:  # }
            if scopes:
                scopes.pop()
                while scopes and scopes[-1][2] is None:
                    scopes.pop()
        at, start = at + 1, at + 1
    return declared, defined


def misplaced(files, room_of, homes):
    """(file, line, function, what) for each function that a header of one room declares and a file of another defines.

    files: path -> text. homes: public header -> the rooms that define it; a header that is not named belongs nowhere.
    """
    where, parsed = {}, {path: functions(text) for path, text in files.items()}
    for path, (declared, _) in parsed.items():
        for f in declared:
            where.setdefault(f.name, []).append((path, f))
    problems = []
    for path, (_, defined) in parsed.items():
        room = room_of(path)
        if room is None or not path.endswith(".cpp"):
            continue
        for f in defined:
            found = where.get(f.name, [])
            found = [p for p, d in found if d.parameters == f.parameters] or [p for p, d in found if len(d.parameters) == len(f.parameters)]
            if not found or any(room_of(p) == room or room in homes.get(p, ()) for p in found):
                continue
            problems.append((path, f.line, f.name, f"defines {f!r}, which {found[0]} declares"))
    return problems


def self_test(misplaced_in):
    header = """
// void in_a_comment();
#pragma once
namespace ingot {
struct Node;
/// "a string (with brackets);"
bool has(const Node& q, int n = 3);
bool has(const Node& q, const char* name);
inline int here() { return 1; }
template <class T>
T any(T x);
class Tensor {
 public:
  Tensor() = default;
  int size() const;
  int numel() const { return 1; }
  Tensor& operator+=(const Tensor& o);
  template <class F> void each(F f);
};
namespace inner {
void deep(int a[3], std::vector<int> v = {1, 2});
}
}  // namespace ingot
"""
    source = """
#include "graph/a.h"
namespace ingot {
namespace {
bool has(const Node& q, int n) { return true; }
struct Own { int size() const { return 2; } };
}  // namespace
static const int table[] = {1, 2};
bool has(const Node& node, const char* name) { return f([&] { return "}"; }); }
int Tensor::size() const { return 1; }
Tensor& Tensor::operator+=(const Tensor& other) { return *this; }
namespace inner {
void deep(int a[3], std::vector<int> v) {}
}
void other() {}
}  // namespace ingot
"""
    declared, defined = functions(header)
    names = ["ingot::has", "ingot::has", "ingot::Tensor::size", "ingot::Tensor::operator+=", "ingot::inner::deep"]
    assert [f.name for f in declared] == names and not defined, (declared, defined)
    declared, defined = functions(source)
    assert [f.name for f in defined] == names[1:] + ["ingot::other"] and not declared, (declared, defined)
    files = {"src/graph/a.h": header, "src/graph/a.cpp": source}
    assert misplaced_in(files) == [], misplaced_in(files)
    moved = {"src/graph/a.h": header, "src/compile/a.cpp": source}
    assert len(misplaced_in(moved)) == 4, misplaced_in(moved)
    planted = "namespace ingot {\nbool has(const Node& q, int n) { return true; }\n}\n"
    found = misplaced_in({"src/graph/a.h": header, "src/compile/b.cpp": planted})
    assert len(found) == 1 and found[0].startswith("src/compile/b.cpp:2: defines ingot::has(Node&, int)"), found
    public = {"include/ingot/loss.h": "namespace ingot {\nint f(int);\n}", "src/nn/a.cpp": "namespace ingot {\nint f(int x) { return x; }\n}"}
    assert len(misplaced_in(public)) == 1, misplaced_in(public)
    public["src/ops/a.cpp"] = public.pop("src/nn/a.cpp")
    assert misplaced_in(public) == [], misplaced_in(public)
    engine = "namespace ingot {\nclass Engine;\nEngine& make_engine();\nEngine& other();\n}"
    made = "namespace ingot {\nEngine& make_engine() { return e; }\nEngine& other() { return e; }\n}"
    assert len(misplaced_in({"src/graph/engine.h": engine, "src/wiring/wiring.cpp": made})) == 1
