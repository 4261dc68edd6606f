"""What is explained: video classifiers that show the features they judge by."""

from whytube.classifiers.base import Features, VideoClassifier
from whytube.classifiers.c3d_resnet import C3DResNet
from whytube.classifiers.catalogue import PRESETS, build_classifier
from whytube.classifiers.checkpoint import Card, load_backbone, load_classifier, read_card, save_classifier
from whytube.classifiers.i3d import I3D

__all__ = [
    "I3D",
    "PRESETS",
    "C3DResNet",
    "Card",
    "Features",
    "VideoClassifier",
    "build_classifier",
    "load_backbone",
    "load_classifier",
    "read_card",
    "save_classifier",
]
