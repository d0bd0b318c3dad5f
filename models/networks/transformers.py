"""Encoders and decoders of transformers as exporters write them: reshapes, transposes, two
products around a softmax.  Written out here, so that nothing but PyTorch is wanted."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """Heads side by side; with `past`, keys and values of earlier tokens come first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.head).permute(0, 2, 1, 3)

    def forward(self, x, source=None, mask=None, past=None):
        source = x if source is None else source
        q, k, v = self.split(self.query(x)), self.split(self.key(source)), None
        v = self.split(self.value(source))
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head)
        if mask is not None:
            scores = scores + mask
        mixed = torch.softmax(scores, -1) @ v
        batch, _, length, _ = mixed.shape
        mixed = mixed.permute(0, 2, 1, 3).reshape(batch, length, self.heads * self.head)
        return self.out(mixed), torch.stack((k, v))


class TanhGelu(nn.Module):
    """GPT-2's: as its authors wrote it, seven operators."""

    def forward(self, x: Tensor) -> Tensor:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class Mlp(nn.Sequential):
    def __init__(self, width: int, inner: int, activation: nn.Module) -> None:
        super().__init__(nn.Linear(width, inner), activation, nn.Linear(inner, width))


class RmsNorm(nn.Module):
    """T5's: no mean, no bias, spelled out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Layer(nn.Module):
    """Norms before (GPT-2, Whisper, T5) or behind (BERT) what they are of; with `crosses` it
    also looks at an encoder's output."""

    def __init__(self, width, heads, activation, before=True, norm=nn.LayerNorm, crosses=False):
        super().__init__()
        self.before = before
        self.attention = Attention(width, heads)
        self.cross = Attention(width, heads) if crosses else None
        self.mlp = Mlp(width, 4 * width, activation)
        self.norms = nn.ModuleList(norm(width) for _ in range(3 if crosses else 2))

    def forward(self, x, mask=None, past=None, source=None):
        if not self.before:
            x = self.norms[0](x + self.attention(x, mask=mask)[0])
            return self.norms[1](x + self.mlp(x)), None
        mixed, present = self.attention(self.norms[0](x), mask=mask, past=past)
        x = x + mixed
        if self.cross is not None:
            x = x + self.cross(self.norms[2](x), source=source)[0]
        return x + self.mlp(self.norms[1](x)), present


class Bert(nn.Module):
    """BERT's encoder and pooler; the mask is the tokens', as the tokenizer gives it."""

    def __init__(self, width=768, heads=12, layers=12, words=30522, longest=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(longest, width)
        self.kinds = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            Layer(width, heads, nn.GELU(), before=False) for _ in range(layers)
        )
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, attention_mask: Tensor, kinds: Tensor):
        positions = torch.arange(ids.shape[1]).unsqueeze(0)
        x = self.norm(self.words(ids) + self.positions(positions) + self.kinds(kinds))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x, _ = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2(nn.Module):
    """One step of GPT-2's decoder with its cache: new tokens, and the keys and values of old
    ones.  With `beams`, the cache is reordered first and the best continuations are chosen."""

    def __init__(self, width=768, heads=12, layers=12, words=50257, longest=1024, beams=0):
        super().__init__()
        self.beams = beams
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(Layer(width, heads, TanhGelu()) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def step(self, ids: Tensor, past: Tensor):
        new, old = ids.shape[1], past.shape[4]
        positions = torch.arange(old, old + new)
        x = self.words(ids) + self.positions(positions)
        seen = torch.ones(new, old + new, dtype=torch.bool).tril(old)
        mask = torch.where(seen, 0.0, -1e4)
        presents = []
        for k, layer in enumerate(self.layers):
            x, present = layer(x, mask, past[k])
            presents.append(present)
        return self.norm(x) @ self.words.weight.T, torch.stack(presents)

    def forward(self, ids: Tensor, past: Tensor, order=None, scores=None):
        if not self.beams:
            return self.step(ids, past)
        logits, present = self.step(ids, past.index_select(2, order))
        total = torch.log_softmax(logits[:, -1], -1) + scores[:, None]
        best, index = torch.topk(total.reshape(-1), self.beams)
        words = self.words.weight.shape[0]
        return best, torch.div(index, words, rounding_mode="floor"), index % words, present


class WhisperEncoder(nn.Module):
    """Two convolutions over a spectrogram, and the layers."""

    def __init__(self, width=384, heads=6, layers=4, mels=80, length=1500):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads, nn.GELU()) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, spectrogram: Tensor) -> Tensor:
        act = nn.functional.gelu
        x = act(self.conv2(act(self.conv1(spectrogram)))).permute(0, 2, 1) + self.positions
        for layer in self.layers:
            x, _ = layer(x)
        return self.norm(x)


class T5(nn.Module):
    """Encoder and one pass of the decoder, with T5's relative positions."""

    def __init__(self, width=512, heads=8, layers=6, words=32128, buckets=32):
        super().__init__()
        self.buckets = buckets
        self.words = nn.Embedding(words, width)
        self.bias, self.back_bias = (nn.Embedding(buckets, heads) for _ in range(2))

        def stack(crosses: bool) -> nn.ModuleList:
            return nn.ModuleList(
                Layer(width, heads, nn.ReLU(), norm=RmsNorm, crosses=crosses)
                for _ in range(layers)
            )

        self.encoder, self.decoder = stack(False), stack(True)
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(2))

    def bucket(self, length: int, both_ways: bool) -> Tensor:
        """Of each pair of positions: near ones have one each, far ones share."""
        at = torch.arange(length)
        back = at[:, None] - at[None, :]
        n = self.buckets // 2 if both_ways else self.buckets
        ahead = (back < 0).to(torch.long) * n if both_ways else torch.zeros_like(back)
        far = back.abs() if both_ways else back.clamp(min=0)
        exact = n // 2
        log = torch.log(far.clamp(min=1).float() / exact) / math.log(128 / exact)
        large = (exact + (log * (n - exact)).to(torch.long)).clamp(max=n - 1)
        return ahead + torch.where(far < exact, far, large)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        x = self.words(ids)
        bias = self.bias(self.bucket(ids.shape[1], True)).permute(2, 0, 1).unsqueeze(0)
        for layer in self.encoder:
            x, _ = layer(x, bias)
        source = self.norms[0](x)
        y = self.words(target)
        length = target.shape[1]
        back = self.back_bias(self.bucket(length, False)).permute(2, 0, 1).unsqueeze(0)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mask = back + torch.where(later, -1e4, 0.0)
        for layer in self.decoder:
            y, _ = layer(y, mask, source=source)
        return self.norms[1](y) @ self.words.weight.T
