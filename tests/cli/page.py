#!/usr/bin/env python3
"""report.html in a real browser: the curves are drawn, wide and on a phone, in light and dark, and nothing is reported as wrong."""
import pathlib
import shutil
import struct
import subprocess
import zlib

from common import check, folder, run

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def pixels(path):
    """Width, height and the colours (red, green, blue) of a PNG of 8 bits, row by row."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, bits, colour = struct.unpack(">IIBB", body[:10])
            check(bits == 8 and colour in (2, 6), "a PNG of another kind:", bits, colour)
            each = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            packed += body
        at += size + 12
    raw, before, rows = zlib.decompress(packed), bytearray(width * each), []
    for y in range(height):
        start = y * (width * each + 1)
        rule, row = raw[start], bytearray(raw[start + 1:start + 1 + width * each])
        for i in range(len(row)):
            a = row[i - each] if i >= each else 0
            b, c = before[i], before[i - each] if i >= each else 0
            if rule == 1:
                row[i] = (row[i] + a) & 255
            elif rule == 2:
                row[i] = (row[i] + b) & 255
            elif rule == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif rule == 4:
                p = a + b - c
                row[i] = (row[i] + min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, len(row), each)])
        before = row
    return width, height, rows


def shoot(home, name, page, width, height, *flags):
    target = home / f"{name}.png"
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", f"--user-data-dir={home / 'profile'}",
                           f"--screenshot={target}", f"--window-size={width},{height}", *flags, page.as_uri()], capture_output=True, text=True, timeout=200)
    check(target.exists(), "no screenshot of the page:", done.stderr[-2000:])
    check("CONSOLE" not in done.stderr, "the browser reports:", [l for l in done.stderr.splitlines() if "CONSOLE" in l])
    return pixels(target)[2]


def near(colour, wanted):
    return all(abs(a - b) < 40 for a, b in zip(colour, wanted))


def columns(rows, wanted):
    """How many columns have this colour somewhere."""
    return sum(any(near(row[x], wanted) for row in rows) for x in range(0, len(rows[0]), 2)) * 2


if not BROWSER:
    print("skipped: there is no chromium here (Debian: apt install chromium)")
    raise SystemExit(77)
with folder() as name:
    home = pathlib.Path(name)
    run("train", "spirals", "--epochs", 5, "--out", "run", cwd=home)
    report = home / "run/report.html"
    light = shoot(home, "light", report, 1000, 900)
    check(light[5][5] == (255, 255, 255), "the page is not white:", light[5][5])
    # The training curves of the left half, the test curves of both. (The throughput of so short a run is a short line or a long one.)
    blue, orange = columns(light, (0x1F, 0x6F, 0xEB)), columns(light, (0xE3, 0x62, 0x09))
    check(blue > 350 and orange > 600, "the curves are not drawn:", blue, orange)
    dark = shoot(home, "dark", report, 1000, 900, "--blink-settings=preferredColorScheme=0")
    check(sum(dark[5][5]) < 100 and columns(dark, (0x58, 0xA6, 0xFF)) > 350, "the dark page:", dark[5][5])
    # A phone's width by a frame: the window itself cannot be so narrow. Nothing may stick out of it.
    frame = home / "phone.html"
    frame.write_text('<body style="margin:0;background:#fff"><iframe src="run/report.html" style="border:0;width:360px;height:1500px"></iframe></body>')
    phone = shoot(home, "phone", frame, 500, 1500)
    check(columns(phone, (0x1F, 0x6F, 0xEB)) > 200, "the curves are not drawn on a phone")
    margin = [row[x] for row in phone for x in range(346, 360)]
    check(all(near(c, (255, 255, 255)) for c in margin), "something sticks out on a phone")
print("ok")
