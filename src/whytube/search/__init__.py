"""From a question to regions: propose tubes, mask them, classify again, rank them.

masked.py    what a classifier says once tubes are masked, cheaply
verify.py    Question and Regions, what all methods take and give; mask, classify again, rank, keep k
grad_cam.py  regions without words, for any classifier
"""
