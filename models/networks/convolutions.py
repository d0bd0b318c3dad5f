"""Networks of convolutions that torchvision does not have."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SarDrn(nn.Module):
    """SAR-DRN: seven dilated convolutions, two residuals, one channel in and out."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        sizes = [(1, width, 1), (width, width, 2), (width, width, 3), (width, width, 4)]
        sizes += [(width, width, 3), (width, width, 2), (width, 1, 1)]
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=dilation, dilation=dilation) for a, b, dilation in sizes
        )

    def forward(self, x: Tensor) -> Tensor:
        first = torch.relu(self.convs[0](x))
        y = torch.relu(self.convs[2](torch.relu(self.convs[1](first))))
        fourth = torch.relu(self.convs[3](y + first))
        y = torch.relu(self.convs[5](torch.relu(self.convs[4](fourth))))
        return x - self.convs[6](y + fourth)


class Involution(nn.Module):
    """A kernel for each place, computed of it; what it covers is gathered by Unfold."""

    def __init__(self, channels: int, stride: int, size: int = 7, group: int = 16) -> None:
        super().__init__()
        self.size, self.groups = size, channels // group
        inner = channels // 4
        self.reduce = nn.Sequential(
            nn.Conv2d(channels, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU()
        )
        self.span = nn.Conv2d(inner, size * size * self.groups, 1)
        self.pool = nn.AvgPool2d(stride, stride) if stride > 1 else nn.Identity()
        self.unfold = nn.Unfold(size, 1, (size - 1) // 2, stride)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.span(self.reduce(self.pool(x)))
        batch, _, height, width = weight.shape
        weight = weight.view(batch, self.groups, 1, self.size**2, height, width)
        covered = self.unfold(x).view(batch, self.groups, -1, self.size**2, height, width)
        return (weight * covered).sum(3).view(batch, -1, height, width)


class RedNetBlock(nn.Module):
    def __init__(self, before: int, inner: int, stride: int) -> None:
        super().__init__()
        after = 4 * inner
        self.main = nn.Sequential(
            nn.Conv2d(before, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            Involution(inner, stride),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.skip = nn.Identity()
        if stride > 1 or before != after:
            self.skip = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.main(x) + self.skip(x))


class RedNet50(nn.Module):
    """ResNet-50 with involutions in the place of its 3x3 convolutions."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            Involution(32, 1, 3),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, 1, 1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, before = [], 64
        for stage, n in enumerate((3, 4, 6, 3)):
            for k in range(n):
                inner = 64 << stage
                blocks.append(RedNetBlock(before, inner, 2 if stage and k == 0 else 1))
                before = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def conv(before: int, after: int, size: int = 1, stride: int = 1, groups: int = 1):
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.SiLU(),
    )


class C2f(nn.Module):
    """YOLO's block: one half goes through bottlenecks, each of which is kept."""

    def __init__(self, before: int, after: int, n: int, shortcut: bool) -> None:
        super().__init__()
        self.half, self.shortcut = after // 2, shortcut
        self.first, self.last = conv(before, after), conv((2 + n) * self.half, after)
        self.inner = nn.ModuleList(
            nn.Sequential(conv(self.half, self.half, 3), conv(self.half, self.half, 3))
            for _ in range(n)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.inner:
            y = block(parts[-1])
            parts.append(parts[-1] + y if self.shortcut else y)
        return self.last(torch.cat(parts, 1))


class Sppf(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.last = conv(channels, channels // 2), conv(2 * channels, channels)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """A detector like YOLOv8n with its head: distributions of distances become boxes."""

    def __init__(self, classes: int = 80, bins: int = 16) -> None:
        super().__init__()
        self.bins = bins
        w = (16, 32, 64, 128, 256)
        self.stem = nn.Sequential(conv(3, w[0], 3, 2), conv(w[0], w[1], 3, 2))
        self.p2 = C2f(w[1], w[1], 1, True)
        self.p3 = nn.Sequential(conv(w[1], w[2], 3, 2), C2f(w[2], w[2], 2, True))
        self.p4 = nn.Sequential(conv(w[2], w[3], 3, 2), C2f(w[3], w[3], 2, True))
        self.p5 = nn.Sequential(conv(w[3], w[4], 3, 2), C2f(w[4], w[4], 1, True), Sppf(w[4]))
        self.up = nn.Upsample(scale_factor=2)
        self.n4, self.n3 = C2f(w[4] + w[3], w[3], 1, False), C2f(w[3] + w[2], w[2], 1, False)
        self.d3, self.m4 = conv(w[2], w[2], 3, 2), C2f(w[2] + w[3], w[3], 1, False)
        self.d4, self.m5 = conv(w[3], w[3], 3, 2), C2f(w[3] + w[4], w[4], 1, False)

        def head(before: int, inner: int, after: int) -> nn.Sequential:
            return nn.Sequential(
                conv(before, inner, 3), conv(inner, inner, 3), nn.Conv2d(inner, after, 1)
            )

        self.boxes = nn.ModuleList(head(n, 64, 4 * bins) for n in w[2:])
        self.scores = nn.ModuleList(head(n, 80, classes) for n in w[2:])

    def forward(self, x: Tensor) -> Tensor:
        p3 = self.p3(self.p2(self.stem(x)))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        n4 = self.n4(torch.cat((self.up(p5), p4), 1))
        n3 = self.n3(torch.cat((self.up(n4), p3), 1))
        m4 = self.m4(torch.cat((self.d3(n3), n4), 1))
        m5 = self.m5(torch.cat((self.d4(m4), p5), 1))
        found = []
        for level, (y, boxes, scores) in enumerate(zip((n3, m4, m5), self.boxes, self.scores)):
            height, width = y.shape[2:]
            stride = float(8 << level)
            bins = boxes(y).view(-1, 4, self.bins, height * width)
            far = torch.arange(self.bins, dtype=y.dtype).view(1, 1, -1, 1)
            sides = (torch.softmax(bins, 2) * far).sum(2)
            at_y, at_x = torch.meshgrid(
                torch.arange(height, dtype=y.dtype) + 0.5,
                torch.arange(width, dtype=y.dtype) + 0.5,
                indexing="ij",
            )
            at = torch.stack((at_x, at_y)).view(1, 2, -1)
            low, high = at - sides[:, :2], at + sides[:, 2:]
            box = torch.cat(((low + high) / 2, high - low), 1) * stride
            found.append(torch.cat((box, torch.sigmoid(scores(y).flatten(2))), 1))
        return torch.cat(found, 2)
