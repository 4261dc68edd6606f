"""From a question to regions: propose tubes, predict and mask them, classify again, rank, change the best.

verify.py    Question and Regions, what all methods take and give; the best of given candidates
anytime.py   the search; regions.py: with it, regions without words for any classifier
tracks.py    tubes that can be changed; score.py: what they are ranked by
masked.py    what a classifier says once tubes are masked; response.py: the same predicted
grad_cam.py  tubes through a contrastive Grad-CAM map, proposals that need no training
"""
