"""The networks: how each is made, and what it is given.

A row is a class of bench/networks.py, and two functions: one makes the module, of the
inputs where its weights depend on them, one makes the inputs of a generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torchvision
from torch import Tensor, nn

from models.networks import convolutions, detectors, transformers

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True)
class Network:
    kind: str
    module: Callable[[Inputs], nn.Module]
    inputs: Callable[[torch.Generator], Inputs]
    half: bool = False  # weights and inputs are float16
    # "static": QuantizeLinear and DequantizeLinear around what computes; "dynamic": scales of
    # activations are computed in each run, DynamicQuantizeLinear before products of integers
    quantized: str = ""


def image(size: int, channels: int = 3, batch: int = 1):
    """Smooth in part, as pictures are, in 0 to 1."""

    def make(rng: torch.Generator) -> Inputs:
        coarse = torch.rand(batch, channels, size // 16, size // 16, generator=rng)
        smooth = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
        return (0.8 * smooth + 0.2 * torch.rand(smooth.shape, generator=rng),)

    return make


def picture(size: int):
    """Without a batch, as torchvision's detectors take it."""
    return lambda rng: (image(size)(rng)[0][0],)


def words(batch: int, length: int, n: int, rng: torch.Generator) -> Tensor:
    return torch.randint(0, n, (batch, length), generator=rng)


def bert(length: int):
    def make(rng: torch.Generator) -> Inputs:
        mask = (torch.arange(length) < length - length // 8).long().unsqueeze(0)
        return words(1, length, 30522, rng), mask, torch.zeros(1, length, dtype=torch.long)

    return make


def gpt2(batch: int, new: int, old: int, beams: bool = False):
    def make(rng: torch.Generator) -> Inputs:
        past = torch.randn(12, 2, batch, 12, old, 64, generator=rng)
        ids = words(batch, new, 50257, rng)
        if not beams:
            return ids, past
        order = torch.randint(0, batch, (batch,), generator=rng)
        return ids, past, order, torch.randn(batch, generator=rng)

    return make


def vision(name: str):
    return lambda inputs: settled(getattr(torchvision.models, name)(weights=None), inputs)


def settled(model: nn.Module, inputs: Inputs) -> nn.Module:
    with torch.random.fork_rng():
        detectors.settle(model, inputs[0])
    return model


def vit(_: Inputs) -> nn.Module:
    """torchvision leaves its last layer at zero."""
    model = torchvision.models.vit_b_16(weights=None)
    nn.init.normal_(model.heads.head.weight, std=0.02)
    return model


def found(name: str, std: float, mean: float, **size):
    return lambda inputs: detectors.detector(name, std, mean, size, inputs[0])


SMALL = {"min_size": 320, "max_size": 512}
DENSE, MOBILE, SILU = "dense", "mobile", "silu"
TRANSFORMER, DETECTOR, QUANTIZED, HALF = "transformer", "detector", "quantized", "half"

NETWORKS = {
    "resnet18": Network(DENSE, vision("resnet18"), image(224)),
    "resnet50": Network(DENSE, vision("resnet50"), image(224)),
    "vgg11": Network(DENSE, vision("vgg11"), image(224)),
    "sar_drn": Network(DENSE, lambda _: convolutions.SarDrn(), image(256, 1)),
    "rednet50": Network(DENSE, lambda x: settled(convolutions.RedNet50(), x), image(224)),
    "mobilenet_v2": Network(MOBILE, vision("mobilenet_v2"), image(224)),
    "mobilenet_v3": Network(MOBILE, vision("mobilenet_v3_large"), image(224)),
    "shufflenet_v2": Network(MOBILE, vision("shufflenet_v2_x1_0"), image(224)),
    "efficientnet_b0": Network(SILU, vision("efficientnet_b0"), image(224)),
    "yolo": Network(SILU, lambda x: settled(convolutions.Yolo(), x), image(320)),
    "bert": Network(TRANSFORMER, lambda _: transformers.Bert(), bert(128)),
    "gpt2": Network(TRANSFORMER, lambda _: transformers.Gpt2(), gpt2(1, 1, 128)),
    "gpt2_prompt": Network(TRANSFORMER, lambda _: transformers.Gpt2(), gpt2(1, 64, 0)),
    "gpt2_beams": Network(
        TRANSFORMER, lambda _: transformers.Gpt2(beams=4), gpt2(4, 1, 64, beams=True)
    ),
    "vit_b_16": Network(TRANSFORMER, vit, image(224)),
    "swin_t": Network(TRANSFORMER, vision("swin_t"), image(224)),
    "t5": Network(
        TRANSFORMER,
        lambda _: transformers.T5(),
        lambda rng: (words(1, 64, 32128, rng), words(1, 16, 32128, rng)),
    ),
    "whisper_encoder": Network(
        TRANSFORMER,
        lambda _: transformers.WhisperEncoder(),
        lambda rng: (torch.randn(1, 80, 3000, generator=rng),),
    ),
    "ssd300": Network(DETECTOR, found("ssd300_vgg16", 2.0, -2.0), picture(300)),
    "ssdlite320": Network(
        DETECTOR, found("ssdlite320_mobilenet_v3_large", 2.0, -2.0), picture(320)
    ),
    "retinanet": Network(
        DETECTOR, found("retinanet_resnet50_fpn", 1.0, -6.0, **SMALL), picture(320)
    ),
    "fcos": Network(DETECTOR, found("fcos_resnet50_fpn", 1.0, -4.0, **SMALL), picture(320)),
    "fasterrcnn": Network(
        DETECTOR, found("fasterrcnn_resnet50_fpn", 2.0, 0.0, **SMALL), picture(320)
    ),
    "fasterrcnn_mobilenet": Network(
        DETECTOR, found("fasterrcnn_mobilenet_v3_large_320_fpn", 2.0, 0.0), picture(320)
    ),
    "maskrcnn": Network(
        DETECTOR, found("maskrcnn_resnet50_fpn", 2.0, 0.0, **SMALL), picture(320)
    ),
    "resnet18_qdq": Network(QUANTIZED, vision("resnet18"), image(224), quantized="static"),
    "mobilenet_v2_qdq": Network(
        QUANTIZED, vision("mobilenet_v2"), image(224), quantized="static"
    ),
    "bert_qdq": Network(
        QUANTIZED, lambda _: transformers.Bert(), bert(128), quantized="static"
    ),
    "bert_dynamic": Network(
        QUANTIZED, lambda _: transformers.Bert(), bert(128), quantized="dynamic"
    ),
    "gpt2_dynamic": Network(
        QUANTIZED, lambda _: transformers.Gpt2(), gpt2(1, 1, 128), quantized="dynamic"
    ),
    "mobilenet_v2_dynamic": Network(
        QUANTIZED, vision("mobilenet_v2"), image(224), quantized="dynamic"
    ),
    "resnet18_f16": Network(HALF, vision("resnet18"), image(224), half=True),
    "mobilenet_v2_f16": Network(HALF, vision("mobilenet_v2"), image(224), half=True),
    "bert_f16": Network(HALF, lambda _: transformers.Bert(), bert(128), half=True),
}
