"""From a question to regions: propose tubes, mask them, classify again, rank them.

question.py  Question and Regions: what all methods take and give
verify.py    mask, classify again, rank, keep k
grad_cam.py  regions without words, for any classifier
"""
