"""Makes the files that the tests of data/ read: images as Pillow writes and resizes them, a small byte-pair vocabulary and texts
encoded with it by a reference written here.

usage: make.py FOLDER   (needs numpy, pillow and regex)
"""
import collections
import io
import json
import pathlib
import sys

import numpy
import regex
from PIL import Image

out = pathlib.Path(sys.argv[1])
rng = numpy.random.default_rng(0)

# ---- Images
y, x = numpy.mgrid[0:48, 0:64]
pixels = numpy.stack([x * 4, y * 5, (x + y) * 2 + rng.integers(0, 20, x.shape)], -1).clip(0, 255).astype(numpy.uint8)
image = Image.fromarray(pixels)
image.save(out / "rgb.png")
image.convert("L").save(out / "grey.png")
image.convert("P").save(out / "palette.png")
rgba = numpy.concatenate([pixels, rng.integers(0, 256, (48, 64, 1))], -1).astype(numpy.uint8)
Image.fromarray(rgba).save(out / "rgba.png")
Image.fromarray((pixels[..., 0].astype(numpy.uint16) * 257)).save(out / "deep.png")
image.save(out / "rgb.jpg", quality=90)
image.save(out / "progressive.jpg", quality=90, progressive=True)
image.convert("L").save(out / "grey.jpg", quality=90)
image.convert("CMYK").save(out / "cmyk.jpg", quality=95)


def chw(image):
    a = numpy.asarray(image)
    return a[None] if a.ndim == 2 else a.transpose(2, 0, 1)


truth = {"rgb": chw(image), "grey": chw(image.convert("L")), "palette": chw(image.convert("P").convert("RGB")),
         "jpg": chw(Image.open(out / "rgb.jpg")), "grey_jpg": chw(Image.open(out / "grey.jpg")),
         "down": chw(image.resize((20, 30), Image.BILINEAR)), "up": chw(image.resize((100, 90), Image.BILINEAR)),
         "shorter24": chw(image.resize((32, 24), Image.BILINEAR)), "rotate90": chw(image.crop((0, 0, 48, 48)).rotate(90))}
numpy.savez_compressed(out / "images.npz", **truth)

# ---- A byte-pair vocabulary
WORD = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
alphabet, extra = {}, 256
for b in range(256):
    if b in plain:
        alphabet[b] = chr(b)
    else:
        alphabet[b] = chr(extra)
        extra += 1


def letters(word):
    return tuple(alphabet[b] for b in word.encode())


def join(parts, pair):
    result, i = [], 0
    while i < len(parts):
        if tuple(parts[i:i + 2]) == pair:
            result.append(pair[0] + pair[1])
            i += 2
        else:
            result.append(parts[i])
            i += 1
    return tuple(result)


corpus = ("the quick brown fox jumps over the lazy dog; then the other foxes don't think that they'll be there, they're the ones who've "
          "thought 1234 thoughts about 2024 and 1999.  naïve café über straße 北京 北京市 ") * 3
words = collections.Counter(letters(w) for w in WORD.findall(corpus))
merges = []
for _ in range(120):
    pairs = collections.Counter()
    for w, n in words.items():
        for pair in zip(w, w[1:]):
            pairs[pair] += n
    if not pairs:
        break
    best = max(pairs, key=lambda p: (pairs[p], p))
    merges.append(best)
    words = collections.Counter({join(w, best): n for w, n in words.items()})
vocabulary = {t: i for i, t in enumerate([*alphabet.values(), *dict.fromkeys(a + b for a, b in merges), "<|endoftext|>"])}
ranks = {pair: i for i, pair in enumerate(merges)}


def encode(text):
    tokens = []
    for word in WORD.findall(text):
        parts = letters(word)
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda p: ranks.get(p, 1e9))
            if pair not in ranks:
                break
            parts = join(parts, pair)
        tokens += [vocabulary[p] for p in parts]
    return tokens


texts = ["the quick brown fox", "", " ", "   leading and trailing   ", "tabs\tand\nnew\r\nlines\n\n", "don't they'll we've I'm he'd DON'T it's",
         "1234 5678x9 ½ ٣٤ Ⅷ", "naïve café über straße 北京市 тест עברית हिन्दी", "emoji 😀👍🏽 mixed!?... --- ===", "a\u00a0b\u2003c\u3000d", "x" * 50,
         "the   the\n  the", "<|endoftext|>", "¿qué? «guillemets» “quotes”", "\u200b zero \u0301 marks e\u0301"]
(out / "vocab.json").write_text(json.dumps(vocabulary))
(out / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(m) for m in merges) + "\n")
(out / "encoded.json").write_text(json.dumps([{"text": t, "tokens": encode(t)} for t in texts]))
