"""A small ResNet on CIFAR-10 (or on synthetic images of the same shape)."""
import argparse
import os

import numpy as np

import ingot as torch
import ingot.nn as nn
import ingot.nn.functional as F
import ingot.optim as optim
from ingot.utils.data import DataLoader, Dataset


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, blocks, width=8, num_classes=10):
        super().__init__()
        self.in_planes = width
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self._make_layer(width, blocks[0], stride=1)
        self.layer2 = self._make_layer(2 * width, blocks[1], stride=2)
        self.layer3 = self._make_layer(4 * width, blocks[2], stride=2)
        self.linear = nn.Linear(4 * width, num_classes)

    def _make_layer(self, planes, num_blocks, stride):
        layers = []
        for s in [stride] + [1] * (num_blocks - 1):
            layers.append(BasicBlock(self.in_planes, planes, s))
            self.in_planes = planes * BasicBlock.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        out = F.avg_pool2d(out, out.size(3))
        out = out.view(out.size(0), -1)
        return self.linear(out)


class Images(Dataset):
    """CIFAR's binary files, or noise around ten patterns."""

    def __init__(self, folder=None, n=512):
        if folder:
            names = sorted(f for f in os.listdir(folder) if f.startswith("data_batch") and f.endswith(".bin"))
            raw = np.concatenate([np.fromfile(os.path.join(folder, f), np.uint8).reshape(-1, 3073) for f in names])
            self.labels = raw[:, 0].astype(np.int64)
            self.images = raw[:, 1:].reshape(-1, 3, 32, 32)
        else:
            rng = np.random.default_rng(0)
            self.labels = rng.integers(0, 10, n)
            patterns = rng.uniform(0, 255, (10, 3, 32, 32))
            self.images = np.clip(patterns[self.labels] + 40 * rng.standard_normal((n, 3, 32, 32)), 0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return (self.images[i].astype(np.float32) / 255 - 0.5) / 0.25, int(self.labels[i])


def run(model, steps=20, device="cpu", data=None, batch_size=16):
    loader = DataLoader(Images(data), batch_size=batch_size, num_workers=0)
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=200)
    losses, correct, total = [], 0, 0
    model.train()
    while len(losses) < steps:
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
            if len(losses) == steps:
                break
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy while training {correct / total:.3f}")
    return losses


def make_model(dropout=True):
    return ResNet([1, 1, 1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="a folder with CIFAR-10's binary files")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(0)
    run(make_model(), args.steps, args.device, args.data)
