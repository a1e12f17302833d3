#!/usr/bin/env python3
"""PyTorch's DataLoader over the same folder and transforms as ingot-bench-loader: loader_torch.py FOLDER [WORKERS] [EPOCHS].

Decoding and transforms are torchvision's over Pillow. Needs torch, torchvision and pillow; of torchvision only the Python part is used, so a
wheel whose compiled part does not load here will do.
"""
import importlib.util
import json
import pathlib
import sys
import time

import torch

compiled = next(pathlib.Path(importlib.util.find_spec("torchvision").submodule_search_locations[0]).glob("_C*.so"), None)
try:
    torch.ops.load_library(compiled)
except (OSError, TypeError):  # declare the two operators that its import looks at
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchvision import datasets, transforms


def main():
    folder = sys.argv[1]
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), batch_size=64, shuffle=True, num_workers=workers,
                                         persistent_workers=workers > 0)
    for _ in range(epochs):
        start, images = time.perf_counter(), 0
        for x, _ in loader:
            images += x.shape[0]
        seconds = time.perf_counter() - start
        print(json.dumps({"images": images, "seconds": round(seconds, 4), "images_per_second": round(images / seconds, 1)}), flush=True)


main()
