#!/usr/bin/env python3
"""The event files that ingot train writes for TensorBoard, read by a reader of their format that shares nothing with the writer."""
import json
import pathlib
import resource
import struct
import subprocess
import time

from common import INGOT, check, folder, run


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


check(crc32c(b"123456789") == 0xE3069283, "the test's own checksum")


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = path.read_bytes()
    while data:
        length, check_length = struct.unpack("<QI", data[:12])
        check(masked(data[:8]) == check_length, "the length's checksum")
        body = data[12 : 12 + length]
        check(len(body) == length and masked(body) == struct.unpack("<I", data[12 + length : 16 + length])[0], "the record's checksum")
        yield body
        data = data[16 + length :]


def fields(message):
    """(number, value) of each field of a protocol buffer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 2:
            size = varint()
            value = message[at : at + size]
            at += size
        else:
            size = {1: 8, 5: 4}[kind]
            value = struct.unpack("<d" if kind == 1 else "<f", message[at : at + size])[0]
            at += size
        yield key >> 3, value


def events(run_folder):
    """(step, tag, value) of all scalars, and what sessions began at."""
    found, sessions = [], []
    for path in sorted(run_folder.glob("events.out.tfevents.*")):
        all_records = list(records(path))
        check(dict(fields(all_records[0]))[3] == b"brain.Event:2", "no version")
        for body in all_records[1:]:
            event = dict(fields(body))
            check(event[1] > 1.6e9, "the wall time")
            if 7 in event:
                sessions.append(event[2])
            for number, value in fields(event.get(5, b"")):
                v = dict(fields(value))
                check(number == 1, "a summary has values only")
                found.append((event[2], v[1].decode(), v[2]))
    return found, sessions


with folder() as name:
    home = pathlib.Path(name)
    run("train", "spirals", "--out", "run", cwd=home)
    found, sessions = events(home / "run")
    lines = [json.loads(l) for l in (home / "run/metrics.jsonl").read_text().splitlines()]
    wanted = []
    for l in lines:
        names = {"test/loss": "test_loss", "test/accuracy": "test_accuracy"} if "test_loss" in l else {
            "train/loss": "loss", "train/lr": "lr", "train/rate": "rate", "train/memory": "memory"}
        wanted += [(l["step"], tag, struct.unpack("<f", struct.pack("<f", l[key]))[0]) for tag, key in names.items()]
    check(found == wanted and len(found) > 10 and not sessions, found[:4], wanted[:4])

    # A run that begins anew has its own; one that continues says from where.
    run("train", "spirals", "--out", "run", "--fresh", cwd=home)
    check(len(list((home / "run").glob("events.out.tfevents.*"))) == 1, "old event files are still there")
    run("train", "spirals", "--out", "run", "--resume", cwd=home)
    check(events(home / "run")[1] == [600], events(home / "run")[1])

    # A limit on files that is lifted while the run goes on, as a disk that is full for a while: nothing is missing at the end.
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
    child = subprocess.Popen([INGOT, "train", "spirals", "--set", "steps=12000", "--out", "full", "--quiet"], cwd=home, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, preexec_fn=limit)
    start, log = time.time(), home / "full/metrics.jsonl"
    while child.poll() is None and time.time() - start < 100 and not (log.exists() and log.stat().st_size > 5000):
        time.sleep(0.01)
    time.sleep(0.3)
    early = child.poll() is None
    if early:
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    _, err = child.communicate(timeout=200)
    if early:
        check(child.returncode == 0 and "are kept until there is room" in err, child.returncode, err)
        losses = [json.loads(l)["step"] for l in log.read_text().splitlines() if "test_loss" not in l]
        check([step for step, tag, _ in events(home / "full")[0] if tag == "train/loss"] == losses and len(losses) > 300, len(losses))
print(f"{len(found)} figures")
