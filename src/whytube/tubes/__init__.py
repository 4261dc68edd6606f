"""Boxes through time: Tube, overlap, projection from the grid, masking."""

from whytube.tubes.making import center_tube, enclosing_tube, random_tube, tube_from_cells
from whytube.tubes.masking import FILLS, box_masks, erase, tube_mask
from whytube.tubes.overlap import tube_iou, tube_iou_many, tube_iou_on
from whytube.tubes.tube import Tube

__all__ = [
    "FILLS",
    "Tube",
    "box_masks",
    "center_tube",
    "enclosing_tube",
    "erase",
    "random_tube",
    "tube_from_cells",
    "tube_iou",
    "tube_iou_many",
    "tube_iou_on",
    "tube_mask",
]
