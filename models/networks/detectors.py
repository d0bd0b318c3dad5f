"""torchvision's detectors, with weights that find something.

Weights are drawn, so normalizations are told what they see, and the last layers that
score are scaled until some scores pass the thresholds.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchvision.models import detection


def settle(backbone: nn.Module, images: Tensor) -> None:
    """Sets what BatchNormalization keeps to what it sees of `images`, and of their mirrors."""
    norms = [m for m in backbone.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    backbone.train()
    with torch.no_grad():
        backbone(torch.cat((images, images.flip(-1))))
    backbone.eval()


class Detector(nn.Module):
    """One image in; what it finds as a flat tuple, in the order of torchvision's names."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor):
        return tuple(self.model([image])[0].values())


def spread(model: nn.Module, layers: list[nn.Module], image: Tensor, std: float, mean: float):
    """Scales what scores, layer after layer, until its outputs are N(mean, std)."""
    for layer in layers:
        seen: list[Tensor] = []
        hook = layer.register_forward_hook(lambda _m, _i, out, seen=seen: seen.append(out))
        with torch.no_grad():
            model([image])
            hook.remove()
            values = torch.cat([out.flatten() for out in seen])
            scale = std / values.std()
            layer.weight.mul_(scale)
            layer.bias.mul_(scale).add_(mean - values.mean() * scale)


def scoring(model: nn.Module) -> list[nn.Module]:
    """Its last layers that score, in the order in which they are computed."""
    found = []
    for name, module in model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if last in ("cls_logits", "cls_score") and isinstance(module, nn.Conv2d | nn.Linear):
            found.append(module)
    if not found:  # SSD: one for each level
        head = model.head.classification_head.module_list
        found = [m if isinstance(m, nn.Conv2d) else m[-1] for m in head]
    return found


def detector(name: str, std: float, mean: float, size: dict, image: Tensor) -> Detector:
    model = getattr(detection, name)(weights=None, weights_backbone=None, **size).eval()
    settle(model.backbone, model.transform([image])[0].tensors)
    spread(model, scoring(model), image, std, mean)
    return Detector(model)
