#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the measurements in bench/results/*.jsonl, one file per machine.

    tools/benchmarks_table.py            writes docs/benchmarks.md
    tools/benchmarks_table.py --check    fails when the page differs from what would be written (a test)

Each line of a file is one of
    {"machine": NAME, "about": TEXT}                               once, first
    {"table": TITLE, "unit": UNIT, "about": TEXT}                  the rows below are in this table
    {"run": LETTER, "command": COMMAND, "date": DATE, "note": TEXT}  a run that rows name
    {"case": NAME, "ours": FIGURE, "peer": NAME, "theirs": FIGURE, "ratio": FIGURE, "run": LETTERS}
    {"case": NAME, "ours_ms": N, "peer": NAME, "peer_ms": N, "ratio": N}
Figures are text and are shown as they are. The last form is what compare_cpu --json prints; it
belongs to the run line before it."""
import json
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
TARGET = ROOT / "docs/benchmarks.md"
PEERS = {"torch-eager": "eager", "torch-compile": "torch.compile"}
MACHINES = ["epyc-zen4", "xeon", "h200"]  # in the order of the page; others follow

INTRO = """\
# Benchmarks

<!-- Written by tools/benchmarks_table.py from bench/results; do not edit. -->

Each figure has the command, the machine and the date that made it. The ratio is the peer's time
over Ingot's (for rates, Ingot's over the peer's): more than 1 means that Ingot is faster. Ratios
below 1 are bold. On another machine only ratios from one run are comparable: `make bench` measures
yours.

[performance.md](performance.md#where-the-time-goes) explains the figures: where the time goes and
what limits it.
"""


def paragraph(text, indent=""):
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False) + "\n"


def table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def legend(run):
    """The meaning of a letter in the column "command"."""
    command = f"`{run['command']}`" if run["command"] else ""
    parts = filter(None, [command, run.get("note"), run["date"]])
    text = f"- {run['run']}: " + "; ".join(parts)
    return paragraph(text, "  ")


class Section:
    def __init__(self, entry):
        self.title, self.unit, self.about = entry["table"], entry["unit"], entry["about"]
        self.runs, self.rows = [], []

    def add(self, row):
        if "ours_ms" in row:
            row = dict(case=row["case"], peer=PEERS.get(row["peer"], row["peer"]),
                       ours=f"{row['ours_ms']:.4g}", theirs=f"{row['peer_ms']:.4g}",
                       ratio=f"{row['ratio']:.2f}", run=self.runs[-1]["run"])
        known = {run["run"] for run in self.runs}
        unknown = [letter for letter in row["run"].split(", ") if letter not in known]
        if unknown:
            sys.exit(f"benchmarks_table: {row['case']}: there is no run {unknown[0]} in its table")
        self.rows.append(row)

    def cells(self, row):
        runs = row["run"].split(", ")
        dates = [run["date"].split(",")[0] for run in self.runs if run["run"] in runs]
        ratio = row["ratio"]
        try:
            slower = float(ratio) < 1
        except ValueError:
            slower = False
        return [row["case"], row["ours"], row["peer"], row["theirs"],
                f"**{ratio}**" if slower else ratio, row["run"], ", ".join(dict.fromkeys(dates))]

    def text(self):
        unit = f" ({self.unit})" if self.unit else ""
        parts = [f"### {self.title}\n"]
        if self.about:
            parts.append(paragraph(self.about))
        columns = ["case", f"Ingot{unit}", "peer", f"peer's{unit}", "ratio", "command", "date"]
        cells = [self.cells(row) for row in self.rows]
        used = [k for k in range(len(columns)) if any(row[k] for row in cells)]
        parts.append(table([columns[k] for k in used], [[row[k] for k in used] for row in cells]))
        parts.append("".join(legend(run) for run in self.runs))
        return "\n".join(parts)


def machine(path):
    parts, section = [], None
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if "machine" in entry:
            parts += [f"## {entry['machine']}\n", paragraph(entry["about"])]
        elif "table" in entry:
            section = Section(entry)
            parts.append(section)
        elif "command" in entry:
            section.runs.append(entry)
        else:
            section.add(entry)
    return "\n".join(part.text() if isinstance(part, Section) else part for part in parts)


def page():
    known = [RESULTS / f"{name}.jsonl" for name in MACHINES]
    files = known + sorted(set(RESULTS.glob("*.jsonl")) - set(known))
    return "\n".join([INTRO] + [machine(path) for path in files])


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = page()
    if not sys.argv[1:]:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit("docs/benchmarks.md does not match bench/results: run tools/benchmarks_table.py")


if __name__ == "__main__":
    main()
