#!/usr/bin/env python3
"""ingot profile: the trace is Chrome's format, shares add up, the kernels explain the step; what bounds it follows what is done to it."""
import json
import pathlib
import random
import re

from common import check, folder, run

with folder() as name:
    home = pathlib.Path(name)
    (home / "words.txt").write_text(" ".join(random.Random(1).choice(["the", "cat", "sat"]) for _ in range(20000)))
    out, _ = run("profile", "spirals", cwd=home)
    bound = re.search(r"bound by (\w+): compute (\d+) %, memory (\d+) %, host (\d+) %, data (\d+) % of the step", out)
    check(bound and 97 <= sum(map(int, bound.groups()[1:])) <= 103, out)
    check("of the limit" in out and "perfetto" in out, out)

    args = ["profile", "chars", "--set", "data=words.txt", "--set", "width=64", "--set", "context=64", "--batch", 8, "--json", "--trace", "t.json"]
    p = json.loads(run(*args, cwd=home)[0])
    check(abs(sum(p["shares"].values()) - 1) < 1e-6 and p["shares"][p["bound"]] == max(p["shares"].values()), p["shares"])
    kernels = sum(k["seconds"] for k in p["kernels"])
    check(0 < kernels and p["kernels"] == sorted(p["kernels"], key=lambda k: -k["seconds"]), p)
    check(any("matmul" in k["ops"] and k["kind"] == "library" for k in p["kernels"]), p["kernels"])
    check(all(k["of_limit"] > 0 or k["seconds"] < 1e-4 for k in p["kernels"]) and any(k["bound"] == "compute" for k in p["kernels"]), p["kernels"])
    check(p["with_data"], p)

    events = json.loads((home / "t.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    check({e["tid"] for e in spans} == {1, 2} and all(e["dur"] >= 0 and "ts" in e for e in spans), events[:5])
    launches = sorted((e for e in spans if e["tid"] == 2), key=lambda e: e["ts"])
    check(len(launches) == 5 * sum(k["launches"] for k in p["kernels"]), len(launches))
    check(all(a["ts"] + a["dur"] <= b["ts"] + 0.5 for a, b in zip(launches, launches[1:])), "launches overlap")
    steps = [e for e in spans if e["name"] == "step"]
    inside = sum(any(s["ts"] <= l["ts"] and l["ts"] + l["dur"] <= s["ts"] + s["dur"] + 1 for s in steps) for l in launches)
    check(len(steps) == 5 and inside == len(launches), "launches outside their steps", inside, len(launches))

    # Without its data a recipe is profiled on zeros, and says so.
    out, _ = run("profile", "fashion", "--batch", 16, "--steps", 3, cwd=home)
    check("the data is missing" in out and "conv" in out, out)

    # train and profile say the same of what bounds a step, by one definition. A machine with other work may disturb one measurement.
    large = ["--set", "data=words.txt", "--set", "width=256", "--set", "context=128", "--set", "layers=2", "--batch", 8]
    for attempt in range(4):
        out, _ = run("train", "chars", *large, "--set", "steps=24", "--out", f"bound{attempt}", cwd=home)
        said = re.findall(r"bound by (\w+) \((\d+) %\)", out)
        check(said, out)
        p = json.loads(run("profile", "chars", *large, "--json", "--trace", "t.json", cwd=home)[0])
        same = said[-1][0] == p["bound"] and abs(int(said[-1][1]) / 100 - p["shares"][p["bound"]]) < 0.25
        if same:
            break
    check(same, "train:", said, "profile:", p["bound"], p["shares"])
print("ok")
