#!/usr/bin/env python3
"""Checks environment variables from outside: docs/environment.md is what the table gives, and what is misspelt or nonsense is
reported once.

usage: environment.py PAGE_PROGRAM SOURCE_DIR [--write]
"""
import os
import pathlib
import subprocess
import sys
import unittest

PROGRAM, SOURCE = sys.argv[1:3]
DOCUMENT = pathlib.Path(SOURCE) / "docs/environment.md"


def page(**variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")}
    done = subprocess.run([PROGRAM], env=clean | variables, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


class Environment(unittest.TestCase):
    def test_document_is_what_the_table_gives(self):
        self.assertEqual(DOCUMENT.read_text(), page()[0], f"run {__file__} {PROGRAM} {SOURCE} --write")

    def test_known_variables_are_not_reported(self):
        known = [line.split("`")[1] for line in page()[0].splitlines() if line.startswith("| `INGOT_")]
        self.assertGreater(len(known), 20)
        of_tests = ["INGOT_TEST_DEVICE", "INGOT_BENCH", "INGOT_EMULATOR_CACHE", "INGOT_RANDOM_SEED", "INGOT_SANITIZED"]
        self.assertEqual(page(**dict.fromkeys(known + of_tests, "1"))[1], "")

    def test_a_misspelt_one_is_reported_once_with_the_nearest(self):
        for wrong, right in (("INGOT_FUSED", "INGOT_FUSE"), ("INGOT_NUM_THREAD", "INGOT_NUM_THREADS"), ("INGOT_SIMT", "INGOT_SIMD")):
            self.assertEqual(page(**{wrong: "0"})[1], f"[ingot] {wrong} is set, but there is no such variable; the nearest is {right}\n")

    def test_others_are_none_of_our_business(self):
        self.assertEqual(page(OMP_NUM_THREADS="1", INGOT="x")[1], "")


if __name__ == "__main__":
    if sys.argv[3:] == ["--write"]:
        DOCUMENT.write_text(page()[0])
    else:
        unittest.main(argv=sys.argv[:1])
