#!/usr/bin/env python3
"""The ticks of the charts: one unit for an axis, even steps, no two alike, and room for the text on the left."""
import pathlib
import re

from common import check, folder, run

UNITS = {"": 1, " k": 1e3, " M": 1e6, " G": 1e9, " %": 1}


def axes(page):
    """For each chart its title and the texts of both axes' ticks."""
    for figure in re.findall(r"<figure>.*?</figure>", page, re.S):
        title = re.match(r"<figure><figcaption>([^<]*)", figure).group(1)
        y = re.findall(r'<text class="y" x="([-\d.]+)" y="[-\d.]+">([^<]*)</text>', figure)
        x = [t for t in re.findall(r'<text class="x" x="[-\d.]+" y="[-\d.]+">([^<]*)</text>', figure) if re.match(r"-?\d", t)]
        yield title, [t for _, t in y], x, min(float(at) for at, _ in y)


def check_axis(title, texts):
    check(len(texts) >= 2 and len(set(texts)) == len(texts), title, texts)
    split = [re.fullmatch(r"(-?\d+(?:\.\d+)?)(e-\d+)?( [kMG%])?", t) for t in texts]
    check(all(split), title, "has ticks in another form:", texts)
    units = {m.group(2) or m.group(3) or "" for m in split if float(m.group(1))}
    check(len(units) <= 1, title, "has ticks in several units:", texts)
    values = [float(m.group(1)) for m in split]
    steps = [b - a for a, b in zip(values, values[1:])]
    check(max(steps) - min(steps) < 1e-6 * max(map(abs, values)) + 1e-9, title, "has uneven ticks:", texts)
    decimals = {len(m.group(1).partition(".")[2]) for m in split if float(m.group(1))}
    check(len(decimals) <= 1, title, "has ticks of different precision:", texts)


with folder() as name:
    home = pathlib.Path(name)
    seen = set()
    for steps, more in ((3, []), (400, ["--lr", 3e-5]), (2000, ["--set", "width=8", "--batch", 512])):
        run("train", "spirals", "--set", f"steps={steps}", *more, "--out", "run", "--fresh", "--quiet", cwd=home)
        for title, y, x, left in axes((home / "run/report.html").read_text()):
            check_axis(title, y), check_axis(title + " (below)", x)
            # About 7.5 units of the drawing for a character: none begins left of it.
            check(left - 7.5 * max(map(len, y)) > 0, title, "is cut on the left:", y)
            seen.add(title.split(" (")[0].strip())
    check({"Loss", "Learning rate", "Throughput", "Memory in use"} <= seen, seen)
    run("sweep", "spirals", "--set", "lr=1e-4..1e-1:log", "--trials", 4, "--epochs", 3, "--out", "sweep", cwd=home)
    for title, y, x, left in axes((home / "sweep/sweep.html").read_text()):
        check_axis(title, y)
print("ok")
