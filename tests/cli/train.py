#!/usr/bin/env python3
"""ingot train, predict, eval, generate and the mistakes a newcomer makes, on data small enough for a test."""
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from common import INGOT, check, folder, run


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def write_text(path):
    rng = random.Random(1)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "it"]
    path.write_text(" ".join(rng.choice(words) for _ in range(12000)))


with folder() as name:
    home = pathlib.Path(name)
    write_text(home / "words.txt")

    run("train", "spirals", "--epochs", 1, "--out", "out/here", cwd=home)

    # A run leaves what it says, and others can use it.
    out, _ = run("train", "spirals", "--out", "run", cwd=home)
    accuracy = float(re.search(r"test accuracy ([\d.]+) %", out)[1])
    check(accuracy > 97, "spirals:", out)
    lines = [json.loads(l) for l in (home / "run/metrics.jsonl").read_text().splitlines()]
    check(lines[-1]["test_accuracy"] * 100 >= accuracy - 0.01 and any("loss" in l for l in lines), lines[-3:])
    report = (home / "run/report.html").read_text()
    check(report.count("<polyline") >= 5 and "<script" not in report and "http" not in report, "report.html")
    out, _ = run("eval", "run", "--json", cwd=home)
    check(abs(json.loads(out)["accuracy"] * 100 - accuracy) < 0.01, "eval after train:", out)
    out, _ = run("inspect", "run/model.safetensors", cwd=home)
    check("head.weight" in out and "ingot.recipe" in out, out)
    run("train", "spirals", "--out", "again", "--quiet", cwd=home)
    check(digest(home / "run/model.safetensors") == digest(home / "again/model.safetensors"), "two runs of one seed differ")

    # A recipe of one's own, from the weights of another run, with parts frozen; cpu:1 gives the same bits as cpu.
    text, _ = run("recipes", "spirals")
    (home / "mine.json").write_text(text.replace('"epochs": 60', '"epochs": 3'))
    for device in ("cpu", "cpu:1"):
        out, _ = run("train", "mine.json", "--from", "run", "--freeze", "body.*", "--device", device, "--out", device, cwd=home)
        check("frozen" in out and "weights taken" in out, out)
    check(digest(home / "cpu/model.safetensors") != digest(home / "run/model.safetensors"), "nothing was trained")
    lora, _ = run("train", "mine.json", "--from", "run", "--lora", 2, "--out", "lora", cwd=home)
    check("LoRA of rank 2" in lora, lora)
    inspect, _ = run("inspect", "lora/model.safetensors", cwd=home)
    check("lora_A" not in inspect, "the updates were not merged:", inspect)

    # Text: both models, generation that streams, the same text for the same seed.
    small = ["--set", "data=words.txt", "--set", "steps=30", "--set", "width=32", "--set", "context=32", "--batch", 8]
    for recipe in ("chars", "chars-lstm"):
        run("train", recipe, *small, "--out", recipe, cwd=home)
        texts = [run("generate", recipe, "--prompt", "the cat", "--length", 40, "--seed", s, cwd=home)[0] for s in (1, 1, 2)]
        check(texts[0] == texts[1] != texts[2] and texts[0].startswith("the cat"), texts)
        # Beyond the context, with a prompt that is longer than it; temperature 0 leaves nothing to the seed.
        prompt = "the cat sat on a mat and saw it " * 3
        texts = [run("generate", recipe, "--prompt", prompt, "--length", 70, "--temperature", 0, "--seed", s, cwd=home)[0] for s in (1, 2)]
        check(texts[0] == texts[1] and texts[0].startswith(prompt) and len(texts[0].encode()) > len(prompt) + 50, texts)
    parts = ["--set", "accumulate=2"]
    run("train", "chars", *small, *parts, "--out", "parts", cwd=home)
    losses = [[json.loads(l) for l in (home / d / "metrics.jsonl").read_text().splitlines()][-1]["test_loss"] for d in ("chars", "parts")]
    check(abs(losses[0] - losses[1]) < 0.02, "accumulation changes the result:", losses)

    # Images from folders, and predictions on them.
    for kind in ("bright", "dark"):
        (home / "photos" / kind).mkdir(parents=True)
    subprocess.run(["python3", "-c", """
import sys, zlib, struct, random
def png(path, value):
    rng = random.Random(path)
    rows = b''.join(b'\\0' + bytes(min(255, max(0, value + rng.randint(-40, 40))) for _ in range(16 * 3)) for _ in range(16))
    chunk = lambda k, d: struct.pack('>I', len(d)) + k + d + struct.pack('>I', zlib.crc32(k + d))
    open(path, 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 16, 16, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
for i in range(40):
    png(f'photos/bright/{i}.png', 200)
    png(f'photos/dark/{i}.png', 50)
"""], cwd=home, check=True)
    run("train", "images", "--set", "data=photos", "--set", "image_size=16", "--set", "width=4", "--set", "layers=1", "--epochs", 3, "--batch", 12, "--out", "pics", cwd=home)
    out, _ = run("predict", "pics", "photos/bright/0.png", "photos/dark", "--json", cwd=home)
    answers = [json.loads(l) for l in out.splitlines()]
    check(len(answers) == 41 and answers[0]["answers"][0]["class"] == "bright" and answers[5]["answers"][0]["class"] == "dark", answers[:2])
    check("data:image/png;base64," in (home / "pics/report.html").read_text() and len(list((home / "pics/samples").glob("*.png"))) == 8, "samples")

    # SIGTERM in mid-epoch: a checkpoint within 10 s, code 143, and the resumed run ends with the same bits.
    long = ["train", "chars", *small[:2], "--set", "steps=400", "--set", "width=32", "--set", "context=32", "--set", "dropout=0.1", "--batch", "8"]
    run(*long, "--out", "whole", cwd=home)
    child = subprocess.Popen([INGOT, *map(str, long), "--out", "cut"], cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    metrics = home / "cut/metrics.jsonl"
    for _ in range(600):
        if metrics.exists() and metrics.read_text().count("\n") >= 1:
            break
        time.sleep(0.05)
    time.sleep(0.3)
    sent = time.time()
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=60)
    check(child.returncode == 143 and time.time() - sent < 10, child.returncode, out)
    check(list((home / "cut/checkpoints").iterdir()), "no checkpoint")
    out, _ = run(*long, "--out", "cut", "--resume", cwd=home)
    check("resumed at step" in out, out)
    check(digest(home / "whole/model.safetensors") == digest(home / "cut/model.safetensors"), "the resumed run ends elsewhere")

    # Mistakes: one clear sentence, the way out, a code.
    def mistake(code, words, *args):
        before = {p: p.stat().st_mtime_ns for p in (home / "run").rglob("*")}
        _, err = run(*args, cwd=home, code=code)
        check(len(err.strip().splitlines()) == 1, args, "gave more than one line:", err)
        for w in words:
            check(w in err, args, "does not say", repr(w), ":", err)
        check(before == {p: p.stat().st_mtime_ns for p in (home / "run").rglob("*")}, args, "changed a run")

    mistake(2, ["no recipe", "Did you mean fashion"], "train", "fasion", "--out", "run")
    mistake(3, ["missing", "tools/setup.sh --data fashion-mnist"], "train", "fashion", "--out", "run")
    mistake(3, ["no.txt", "--set data="], "train", "chars", "--set", "data=no.txt", "--out", "run")
    mistake(4, ["\"cuda:7\" is not available", "--device cpu"], "train", "spirals", "--device", "cuda:7", "--out", "run")
    mistake(4, ["no device called", "ingot devices"], "train", "spirals", "--device", "gpu", "--out", "run")
    mistake(2, ["1600 samples", "--batch"], "train", "spirals", "--batch", "100000", "--out", "run")
    mistake(5, ["training does not fit", "of 6.0 MiB", "makes it fit", "ingot plan chars"], "train", "chars", *small[:-1], 256, "--memory", "6MiB", "--device", "cpu:1", "--out", "x")
    mistake(2, ["not an amount of memory", "8GiB"], "train", "spirals", "--memory", "much", "--out", "run")
    mistake(2, ["no setting \"widht\"", "Did you mean width"], "train", "spirals", "--set", "widht=3", "--out", "run")
    mistake(2, ["must be an integer"], "train", "spirals", "--set", "width=wide", "--out", "run")
    mistake(2, ["no schedule", "onecycle"], "train", "spirals", "--set", "schedule=none", "--out", "x")
    mistake(2, ["context of at least 2"], "train", "chars", *small, "--set", "context=1", "--out", "x")
    mistake(2, ["nothing to train"], "train", "spirals", "--freeze", "*", "--out", "x")
    mistake(3, ["no trained network", "ingot train"], "predict", "nowhere", "a.png")
    mistake(2, ["no command \"trian\"", "Did you mean train", "doctor"], "trian", "spirals")
    mistake(2, ["the program has no option --trian", "--help"], "--trian")
    mistake(2, ["train needs a recipe", "ingot recipes"], "train")
    mistake(2, ["no option --epoch.", "Did you mean --epochs"], "train", "spirals", "--epoch", 3)
    mistake(2, ["\"the\"", "between quotes"], "generate", "chars", "--prompt", "In", "the", "beginning")
    mistake(2, ["--epochs must be an integer of at least 1, not \"0\""], "train", "spirals", "--epochs", 0)
    mistake(2, ["--batch must be an integer", "\"1.5\""], "plan", "spirals", "--batch", 1.5)
    mistake(2, ["--lr must be a number above 0"], "train", "spirals", "--lr", "nan")
    mistake(2, ["--temperature must be a number of at least 0"], "generate", "chars", "--temperature", -1)
    mistake(2, ["--steps needs a value"], "profile", "spirals", "--steps")
    mistake(2, ["--gpu and --memory do not go together"], "plan", "spirals", "--gpu", "h200", "--memory", "8GiB")
    mistake(2, ["no rates for \"h2\"", "h200"], "explain", "spirals", "--rates", "h2")
    mistake(2, ["dropout is 1.5", "below 1"], "train", "spirals", "--set", "dropout=1.5", "--out", "run")
    mistake(2, ["vocabulary's 100", "256"], "train", "chars", *small, "--set", "vocabulary=100", "--out", "x")
    (home / "short.txt").write_text("the cat")
    mistake(3, ["too short", "context"], "train", "chars", "--set", "data=short.txt", "--out", "run")
    mistake(3, ["Did you mean out/here"], "eval", "here")
    (home / "empty").mkdir()
    mistake(3, ["no folders of images", "empty/cat/1.jpg"], "train", "images", "--set", "data=empty", "--out", "run")
    for i in range(12):
        (home / "broken/a").mkdir(parents=True, exist_ok=True)
        (home / f"broken/a/{i}.png").write_text("no image")
    mistake(6, ["an image cannot be read", ".png", "Remove that file from broken"], "train", "images", "--set", "data=broken", "--batch", 2, "--quiet", "--out", "x")
    (home / "data/mnist").mkdir(parents=True)
    mistake(6, ["data/mnist is incomplete or damaged", "tools/setup.sh --data mnist"], "train", "digits", "--out", "run")
    mistake(6, ["words.txt is not a network"], "eval", "words.txt")
    header = b'{"__metadata__": {"ingot.recipe": "{}"}}'  # and no ingot.name
    (home / "half.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    mistake(6, ["half.safetensors is not a network"], "eval", "half.safetensors")
    mistake(6, ["words.txt cannot be read as weights"], "train", "spirals", "--from", "words.txt", "--out", "x")
    mistake(6, ["no format that inspect reads", "npz"], "inspect", "words.txt")
    mistake(2, ["\"nothing\" in it", "--only"], "inspect", "run/model.safetensors", "--only", "nothing")
    mistake(7, ["checkpoints in run are of a run with other settings: width 64 -> 99", "run/recipe.json --resume", "--accept-changes"], "train", "spirals", "--set", "width=99", "--resume", "--out", "run")
    # A training that has gone wrong keeps the last checkpoint that is of use.
    mistake(1, ["loss is not finite", "--lr"], "train", "spirals", "--lr", "1e9", "--set", "optimizer=sgd", "--epochs", 3, "--quiet", "--out", "wild")
    check(not list((home / "wild/checkpoints").glob("*.safetensors")), "a checkpoint of nothing but nan was kept")
    (home / "bad.json").write_text('{"task": ')
    mistake(2, ["bad.json is not a recipe"], "train", "bad.json", "--out", "x")
    data = bytearray((home / "pics/model.safetensors").read_bytes())
    (home / "whole-pics").mkdir()
    (home / "whole-pics/model.safetensors").write_bytes(data)
    (home / "pics/model.safetensors").write_bytes(data[: len(data) // 2])
    mistake(6, ["damaged", "--resume"], "predict", "pics", "photos/bright/0.png")
    # A damaged checkpoint: the one before it is taken, and it says so.
    newest = sorted((home / "whole/checkpoints").glob("*.safetensors"))[-1]
    newest.write_bytes(newest.read_bytes()[:100])
    _, err = run(*long, "--out", "whole", "--resume", cwd=home)
    check("damaged" in err or "none of" in err or newest.name in err, "a damaged checkpoint was not reported:", err)

    # What it costs, without data or a GPU.
    out, _ = run("plan", "fashion", "--json", cwd=home)
    plan = json.loads(out)
    parts = sum(plan[k] for k in ("parameters", "converted_parameters", "optimizer", "data", "batches", "activations", "gradients", "workspace"))
    check(parts == plan["peak"] and plan["data"] == 70000 * 792, plan)  # the data is not here, its size is known
    check(plan["activations"] > 0 and plan["gradients"] > 0 and plan["workspace"] >= 0, plan)
    double = json.loads(run("plan", "fashion", "--batch", 256, "--json", cwd=home)[0])
    check(1.5 * plan["activations"] < double["activations"] < 2.5 * plan["activations"], plan, double)
    for limit, remedy in ((["--memory", "60MiB"], "--batch"), (["--memory", "72MiB"], "--amp bf16"), (["--amp", "--memory", "64MiB"], "accumulate=")):
        out, _ = run("plan", "fashion", *limit, cwd=home, code=5)
        check("does not fit" in out and f"{remedy}" in out.splitlines()[-1], limit, remedy, out)
    out, _ = run("plan", "chars", "--set", "layers=12", "--set", "context=512", "--batch", 1, "--amp", "--memory", "100MiB", cwd=home, code=5)
    check("--set recompute=1 makes it fit" in out and "h.0-11.mlp.c_fc" in out and len(out.splitlines()) < 40, out)
    run("plan", "gpt2", "--gpu", "abacus", cwd=home, code=2)
    # What cannot help is not advised: the data set alone is larger than the limit.
    out, _ = run("plan", "fashion", "--memory", "30MiB", cwd=home, code=5)
    check("the data set alone takes 52.9 MiB" in out and "neither a smaller batch" in out, out)
    enough = re.search(r"--memory (\d+MiB) would be enough", out)[1]
    run("plan", "fashion", "--memory", enough, cwd=home)
    tight = json.loads(run("plan", "fashion", "--memory", "30MiB", "--json", cwd=home, code=5)[0])
    check(tight["fits"] is False and tight["limit"] == 30 << 20 and "data set" in tight["remedy"], tight)
    check(plan["fits"] is True and plan["limit"] > plan["peak"] and all(isinstance(v, int) for v in plan["activations_by_layer"].values()), plan)
    # Every command that says something says it as JSON too.
    check(json.loads(run("explain", "fashion", "--json", cwd=home)[0])["launches"] > 5, "explain --json")
    check({"spirals", "gpt2"} <= {r["name"] for r in json.loads(run("recipes", "--json", cwd=home)[0])}, "recipes --json")
    check(json.loads(run("recipes", "spirals", "--json", cwd=home)[0])["epochs"] == 60, "recipes spirals --json")
    devices = json.loads(run("devices", "--json", cwd=home)[0])
    check(len(devices["devices"]) > 1 or "driver" in devices["no_gpu"] or "CUDA" in devices["no_gpu"], devices)
    result = json.loads(run("train", "spirals", "--epochs", 2, "--json", "--out", "as-json", cwd=home)[0])
    check(result["steps"] == 20 and result["epochs"] == 2 and (home / result["report"]).exists(), result)
    check("ingot/src" not in run("explain", "fashion", "--kernels", cwd=home)[0], "explain names lines of Ingot's own")
    # A short run's report has its true curves: every step, and the top of the one-cycle rate.
    points = [json.loads(l) for l in (home / "run/metrics.jsonl").read_text().splitlines()]
    check(sum("loss" in p for p in points) == 600 and max(p["lr"] for p in points if "lr" in p) > 0.019, len(points))
    # What its network is for, and no more.
    check("for ingot eval\n" in run("train", "spirals", "--epochs", 1, "--out", "for-what", cwd=home)[0], "points are not for predict")
    # A network of NaNs says so.
    broken = bytearray((home / "whole-pics/model.safetensors").read_bytes())
    size = int.from_bytes(broken[:8], "little")
    broken[8 + size:] = b"\xff" * (len(broken) - 8 - size)
    (home / "nans.safetensors").write_bytes(broken)
    _, err = run("predict", "nans.safetensors", "photos/bright/0.png", cwd=home, code=None)
    check("not finite" in err or "damaged" in err, err)
    # Which kernel runs a library call, and on request what refused it before.
    out, _ = run("explain", "chars", "--kernels", cwd=home)
    check("matmul+bias [" in out and "not [" not in out, out)
    out, _ = run("explain", "chars", "--why", cwd=home)
    check(re.search(r"matmul\S* \[packed\]\n +not \[few rows\]: there are too many rows and columns", out), out)
    choices = json.loads(run("explain", "chars", "--json", cwd=home)[0])["choices"]
    check(any(c["kernel"] == "packed" and c["refused"][0].startswith("few rows: ") for c in choices), choices)
    check("--why" in run("explain", "--help", cwd=home)[0], "--why in explain --help")
    out, _ = run("explain", "fashion", cwd=home)
    check("generated kernels" in out and "Conv2d" in out, out)
    out, _ = run("bench", "spirals", "--seconds", 0.2, "--json", cwd=home)
    check(json.loads(out)[0]["per_second"] > 0, out)
print("ok")
