"""A DCGAN: a generator of images and a discriminator that learn from each other."""
import argparse

import numpy as np

import ingot as torch
import ingot.nn as nn
import ingot.optim as optim

nz, ngf, ndf, nc = 16, 8, 8, 1


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False),
            nn.Tanh())

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid())

    def forward(self, input):
        return self.main(input)


class GAN(nn.Module):
    """Both networks, so that one state_dict holds them."""

    def __init__(self):
        super().__init__()
        self.netG, self.netD = Generator(), Discriminator()


def images(batch, rng):
    """Bright squares on dark ground, [-1, 1]."""
    x = -np.ones((batch, nc, 16, 16), np.float32)
    for i, (r, c) in enumerate(rng.integers(1, 9, (batch, 2))):
        x[i, :, r:r + 6, c:c + 6] = 1
    return x


def run(model, steps=15, device="cpu", data=None, batch=16):
    rng = np.random.default_rng(0)
    netG, netD = model.netG.to(device), model.netD.to(device)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
    real_label, fake_label = 1.0, 0.0
    losses = []
    for _ in range(steps):
        # the discriminator: real images, then generated ones
        netD.zero_grad()
        real = torch.from_numpy(images(batch, rng)).to(device)
        label = torch.full((batch,), real_label, dtype=torch.float, device=device)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        noise = torch.from_numpy(rng.standard_normal((batch, nz, 1, 1)).astype(np.float32)).to(device)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()
        # the generator: its images should be classified as real
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        losses += [errD.item(), errG.item()]
    print(f"discriminator {losses[0]:.4f} -> {losses[-2]:.4f}, generator {losses[1]:.4f} -> {losses[-1]:.4f}")
    return losses


def make_model(dropout=True):
    model = GAN()
    model.apply(weights_init)
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.manual_seed(0)
    run(make_model(), args.steps, args.device)
