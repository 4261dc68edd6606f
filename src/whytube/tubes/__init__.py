"""Boxes through time: Tube, areas and overlap, boxes of grid cells, masking, export."""

from whytube.tubes.export import coco, detections
from whytube.tubes.masking import FILLS, PAPERS_FILL, Eraser, box_masks, cell_coverage, erase, erase_boxes, tube_mask
from whytube.tubes.tube import Tube, box_areas, cell_boxes, enclosing_tube, random_tube, region_iou, tube_iou

__all__ = [
    "FILLS",
    "PAPERS_FILL",
    "Eraser",
    "Tube",
    "box_areas",
    "box_masks",
    "cell_boxes",
    "cell_coverage",
    "coco",
    "detections",
    "enclosing_tube",
    "erase",
    "erase_boxes",
    "random_tube",
    "region_iou",
    "tube_iou",
    "tube_mask",
]
