"""Writes unicode.inc: the ranges of letters (L*) and numbers (N*) of Unicode, for the GPT-2 tokenizer.

usage: unicode.py > unicode.inc
"""
import sys
import unicodedata


def ranges(kind):
    result = []
    for c in range(sys.maxunicode + 1):
        if unicodedata.category(chr(c))[0] != kind:
            continue
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


print(f"// Made by unicode.py from Unicode {unicodedata.unidata_version}.")
for name, kind in (("kLetters", "L"), ("kNumbers", "N")):
    print(f"constexpr Range {name}[] = {{")
    line = "   "
    for low, high in ranges(kind):
        item = f" {{{low:#x}, {high:#x}}},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")
