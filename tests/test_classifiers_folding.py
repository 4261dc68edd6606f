import torch
from torch import nn

from whytube.classifiers.folding import fold_norms


def test_a_folded_pair_answers_the_same():
    torch.manual_seed(0)
    pair = nn.Module()
    pair.conv, pair.norm = nn.Conv3d(2, 3, 1, bias=False), nn.BatchNorm3d(3, eps=0.1)
    with torch.no_grad():
        for tensor in (pair.norm.weight, pair.norm.bias, pair.norm.running_mean):
            tensor.normal_()
        pair.norm.running_var.uniform_(0.5, 2.0)
    pair.eval()
    x = torch.rand(2, 2, 3, 4, 5)
    before = pair.norm(pair.conv(x))
    fold_norms([(pair, "conv", "norm")])
    assert isinstance(pair.norm, nn.Identity)
    torch.testing.assert_close(pair.norm(pair.conv(x)), before)
