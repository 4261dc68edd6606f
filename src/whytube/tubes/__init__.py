"""Boxes through time: Tube, areas and overlap, boxes of grid cells, masking."""

from whytube.tubes.boxes import box_areas, cell_boxes, region_iou, tube_iou
from whytube.tubes.masking import FILLS, box_masks, erase, tube_mask
from whytube.tubes.tube import Tube, enclosing_tube, random_tube

__all__ = [
    "FILLS",
    "Tube",
    "box_areas",
    "box_masks",
    "cell_boxes",
    "enclosing_tube",
    "erase",
    "random_tube",
    "region_iou",
    "tube_iou",
    "tube_mask",
]
