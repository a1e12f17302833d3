#!/usr/bin/env python3
"""The rooms as the linker sees them: which room's objects use what another room's define. include_scan.py looks at what is
written; this finds also what a file declares for itself, or reaches through a template.

A room uses what is defined in the rooms that it sees, or calls through the public headers (SEES and CALLS in include_scan.py),
and wiring defines WIRED for all.

usage: link_graph.py BUILD_DIR | link_graph.py --self-test
"""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

import include_scan

LINE = re.compile(r"^[0-9a-f]*\s+([A-Za-z]) (.+)$", re.M)


def symbols(listing):
    """(defined, used) of what `nm -C` prints. Weak symbols are inline functions and templates: whoever uses one has it."""
    found = LINE.findall(listing)
    return {name for kind, name in found if kind in "TDBR"}, {name for kind, name in found if kind == "U"}


def problems(rooms):
    """rooms: room -> list of (defined, used)."""
    home = {name: room for room, objects in rooms.items() for defined, _ in objects for name in defined}
    wrong = set()
    for room, objects in rooms.items():
        may = {room, *include_scan.SEES[room], *include_scan.CALLS.get(room, [])}
        for _, used in objects:
            for name in used:
                other = home.get(name, room)
                if other not in may and not (other == "wiring" and name.split("(")[0] in include_scan.WIRED):
                    wrong.add(f"{room} uses {name}, which {other} defines")
    return sorted(wrong)


def self_test():
    listing = "0000 T ingot::f(int)\n                 U ingot::g()\n0000 W ingot::inline_one()\n0000 t local\n0010 B ingot::variable\n"
    assert symbols(listing) == ({"ingot::f(int)", "ingot::variable"}, {"ingot::g()"}), symbols(listing)
    low, high = ({"ingot::f(int)"}, set()), ({"ingot::g()"}, {"ingot::f(int)"})
    assert problems({"graph": [low], "compile": [high]}) == []
    assert problems({"graph": [high], "compile": [low]}) == ["graph uses ingot::f(int), which compile defines"]
    made = {"ingot::make_engine()", "ingot::more()"}
    assert problems({"graph": [(set(), made)], "wiring": [(made, set())]}) == ["graph uses ingot::more(), which wiring defines"]
    print("link graph: planted uses judged rightly")


def main(build):
    nm, folder = shutil.which("nm"), pathlib.Path(build) / "src/CMakeFiles/ingot.dir"
    objects = sorted(folder.rglob("*.o"))
    if not nm or not objects:
        print(f"skipped: {'no nm' if not nm else f'no objects in {folder}'}")
        return 77
    def listing(file):
        return subprocess.run([nm, "-C", file], capture_output=True, text=True, check=True).stdout
    rooms = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for file, text in zip(objects, pool.map(listing, objects)):
            room = include_scan.room_of(file.relative_to(folder).as_posix())
            if room and (pathlib.Path(__file__).parents[2] / "src" / file.relative_to(folder).with_suffix("")).exists():
                rooms.setdefault(room, []).append(symbols(text))
    found = problems(rooms)
    print("\n".join(found) if found else f"link graph: {sum(map(len, rooms.values()))} objects of {len(rooms)} rooms, all uses allowed")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    sys.exit(main(sys.argv[1]))
