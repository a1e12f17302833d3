#!/usr/bin/env python3
"""ingot sweep: the space it tries, the ranking, what is stopped early, and going on after SIGTERM."""
import json
import pathlib
import signal
import subprocess
import time

from common import INGOT, check, folder, run

with folder() as name:
    home = pathlib.Path(name)

    # A range and a list: values inside the range, both of the list, the best first, hopeless ones stopped.
    space = ["sweep", "spirals", "--set", "lr=1e-5..3e-2:log", "--set", "width=16,64", "--trials", 10, "--epochs", 40]
    out, _ = run(*space, "--out", "s", cwd=home)
    check("rank" in out and "best: ingot train spirals --set lr=" in out and "--epochs 40" in out, out)
    kept = json.loads((home / "s/sweep.json").read_text())["trials"]
    rates = [t["values"]["lr"] for t in kept]
    check(len(kept) == 10 and len(set(rates)) == 10 and all(1e-5 <= r <= 3e-2 for r in rates), rates)
    check({t["values"]["width"] for t in kept} == {16, 64}, kept)
    check(max(rates) / min(rates) > 100, "a logarithmic range is not covered:", rates)
    stopped = [t for t in kept if t["state"] == "stopped"]
    check(stopped and all(0.1 < t["part"] < 1 for t in stopped), "nothing was stopped early:", out)
    ranking = json.loads(run(*space, "--out", "s", "--json", cwd=home)[0])
    done = [t for t in ranking if t["state"] == "done"]
    check(ranking[: len(done)] == done and [t["accuracy"] for t in done] == sorted((t["accuracy"] for t in done), reverse=True), ranking)
    check(min(t["values"]["lr"] for t in done[:2]) > min(rates), "the lowest rate cannot be best:", ranking)
    check(sorted(t["number"] for t in ranking) == list(range(1, 11)), "trials are not counted from 1:", ranking)
    page = (home / "s/sweep.html").read_text()
    check(f'href="trial-{ranking[0]["number"]:03d}/report.html"' in page and "ingot train spirals --set lr=" in page, "no links or no best command")
    check(all((home / "s" / f"trial-{t['number']:03d}" / "report.html").exists() for t in ranking), "a link leads nowhere")
    check(page.count("<svg") == 3 and page.count("<circle") >= 20 and "<script" not in page, "sweep.html")
    best = home / f"s/trial-{ranking[0]['number']:03d}"
    out, _ = run("eval", best, "--json", cwd=home)
    check(abs(json.loads(out)["accuracy"] - ranking[0]["accuracy"]) < 1e-9, out, ranking[0])

    # Nothing is trained twice; more trials add to what is there.
    before = {p: p.stat().st_mtime_ns for p in (home / "s").rglob("model.safetensors")}
    run(*space, "--out", "s", cwd=home)
    more = [a if a != 10 else 12 for a in space]
    run(*more, "--out", "s", cwd=home)
    after = {p: p.stat().st_mtime_ns for p in (home / "s").rglob("model.safetensors")}
    check(len(after) == 12 and all(after[p] == t for p, t in before.items()), "trials were trained again")

    # Lists alone: every combination once.
    out = run("sweep", "spirals", "--set", "width=8,16", "--set", "optimizer=adamw,sgd", "--epochs", 2, "--out", "grid", "--json", cwd=home)[0]
    tried = {(t["values"]["width"], t["values"]["optimizer"]) for t in json.loads(out)}
    check(tried == {(8, "adamw"), (8, "sgd"), (16, "adamw"), (16, "sgd")}, tried)

    # SIGTERM in the middle of a trial; the same command continues and ends as if nothing had happened.
    long = ["sweep", "spirals", "--set", "lr=0.005,0.01", "--epochs", "600", "--no-stop"]
    whole = json.loads(run(*long, "--out", "whole", "--json", cwd=home)[0])
    child = subprocess.Popen([INGOT, *long, "--out", "cut"], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for _ in range(1200):
        if (home / "cut/trial-002/metrics.jsonl").exists() and list((home / "cut/trial-002/checkpoints").glob("*")):
            break
        time.sleep(0.02)
    child.send_signal(signal.SIGTERM)
    text, _ = child.communicate(timeout=60)
    check(child.returncode == 143, child.returncode, text)
    cut = json.loads(run(*long, "--out", "cut", "--json", cwd=home)[0])
    check([(t["values"], t["loss"]) for t in cut] == [(t["values"], t["loss"]) for t in whole], cut, whole)

    # A trial whose loss is not finite fails alone.
    out, _ = run("sweep", "spirals", "--set", "lr=0.01,1e30", "--set", "optimizer=sgd", "--epochs", 3, "--out", "nan", cwd=home)
    check("not finite" in out and "done" in out, out)

    def mistake(words, *args):
        _, err = run("sweep", "spirals", *args, "--out", "x", cwd=home, code=2)
        check(len(err.strip().splitlines()) == 1 and all(w in err for w in words), args, err)

    mistake(["nothing to try", "lr=1e-4..1e-2:log"], "--epochs", 2)
    mistake(["not a range"], "--set", "lr=1..0.1")
    mistake(["not a range"], "--set", "lr=0..0.1:log")
    mistake(["no setting", "Did you mean lr"], "--set", "lt=1..2")
    mistake(["integer"], "--set", "width=8,wide")
    _, err = run("sweep", "spirals", "--set", "lr=0.1,0.2", "--out", "s", cwd=home, code=2)
    check("holds another sweep" in err and "--out" in err, err)
print("ok")
