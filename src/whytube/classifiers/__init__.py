"""What is explained: video classifiers that give logits and the features behind them."""

from whytube.classifiers.base import Features, VideoClassifier
from whytube.classifiers.c3d_resnet import C3DResNet
from whytube.classifiers.i3d import I3D

__all__ = ["I3D", "C3DResNet", "Features", "VideoClassifier"]
