"""A character LSTM: learns a text, then writes one."""
import argparse

import numpy as np

import ingot as torch
import ingot.nn as nn

TEXT = ("It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
        "it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was the season of darkness. ") * 20


class CharLSTM(nn.Module):
    def __init__(self, vocabulary, hidden=64, layers=2, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 32)
        self.lstm = nn.LSTM(32, hidden, num_layers=layers, dropout=dropout, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, x, state=None):
        out, state = self.lstm(self.embedding(x), state)
        return self.head(out), state


def encode(text):
    letters = sorted(set(text))
    number = {c: i for i, c in enumerate(letters)}
    return np.array([number[c] for c in text], dtype=np.int64), letters


def batches(data, batch=16, length=24, seed=0):
    rng = np.random.default_rng(seed)
    while True:
        at = rng.integers(0, len(data) - length - 1, batch)
        x = np.stack([data[i:i + length] for i in at])
        y = np.stack([data[i + 1:i + length + 1] for i in at])
        yield torch.from_numpy(x), torch.from_numpy(y)


def run(model, steps=30, device="cpu", data=None):
    text = open(data).read() if data else TEXT
    codes, letters = encode(text)
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    model.train()
    for (x, y), _ in zip(batches(codes), range(steps)):
        x, y = x.to(device), y.to(device)
        logits, _ = model(x)
        loss = criterion(logits.reshape(-1, logits.size(-1)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    return losses


@torch.no_grad()
def write(model, letters, start="It was", n=80, device="cpu"):
    model.eval()
    number = {c: i for i, c in enumerate(letters)}
    x = torch.tensor([[number[c] for c in start]], device=device)
    out, state = start, None
    for _ in range(n):
        logits, state = model(x, state)
        p = torch.softmax(logits[0, -1] / 0.5, dim=-1)
        nxt = torch.multinomial(p, 1)
        out += letters[nxt.item()]
        x = nxt.view(1, 1)
    return out


def make_model(dropout=True, data=None):
    letters = encode(open(data).read() if data else TEXT)[1]
    return CharLSTM(len(letters), dropout=0.1 if dropout else 0.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="a text file")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(1)
    model = make_model(data=args.data)
    run(model, args.steps, args.device, args.data)
    print(write(model, encode(open(args.data).read() if args.data else TEXT)[1], device=args.device))
