"""A convolutional network on MNIST (or on synthetic digits of the same shape)."""
import argparse
import gzip
import os

import numpy as np

import ingot as torch
import ingot.nn as nn
import ingot.nn.functional as F
import ingot.optim as optim
from ingot.optim.lr_scheduler import StepLR
from ingot.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 12 * 12, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


def read_idx(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        data = f.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(dims)


def load(folder, n=1024):
    """Images [n, 1, 28, 28] and labels, as arrays."""
    if folder:
        names = {f.split(".")[0].replace("-idx", ".idx").split(".")[0]: os.path.join(folder, f) for f in sorted(os.listdir(folder))}
        images = read_idx(next(p for k, p in names.items() if k.startswith("train-images")))
        labels = read_idx(next(p for k, p in names.items() if k.startswith("train-labels")))
        images = images[:, None].astype(np.float32) / 255
    else:
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 10, n)
        patterns = rng.standard_normal((10, 1, 28, 28))
        images = (patterns[labels] + rng.standard_normal((n, 1, 28, 28))).astype(np.float32) * 0.5
    return (images - 0.1307) / 0.3081, labels.astype(np.int64)


def train(model, device, loader, optimizer, steps):
    model.train()
    losses = []
    while len(losses) < steps:
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            output = model(data)
            loss = F.nll_loss(output, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    return losses


@torch.no_grad()
def accuracy(model, device, loader):
    model.eval()
    right = total = 0
    for data, target in loader:
        pred = model(data.to(device)).argmax(dim=1)
        right += pred.eq(target.to(device)).sum().item()
        total += len(target)
    return right / total


def run(model, steps=30, device="cpu", data=None, batch_size=32):
    images, labels = load(data)
    dataset = TensorDataset(torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels))
    loader = DataLoader(dataset, batch_size=batch_size)
    model = model.to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=0.3)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = train(model, device, loader, optimizer, steps)
    scheduler.step()
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy(model, device, loader):.3f}")
    return losses


def make_model(dropout=True):
    model = Net()
    if not dropout:
        model.dropout1.p = 0.0
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="a folder with MNIST's files")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(1)
    run(make_model(), args.steps, args.device, args.data)
