"""Many videos: list them, explain them shard by shard on Ray or in this process, keep answers as Parquet, ask on.

listing.py   the videos of a folder, a glob, a manifest or an object store
output.py    the folder of the answers: what is asked, which videos, what is done
tables.py    columns of the tables; answers that go to the disk as they come, and appear whole
work.py      what a worker does with a shard of videos
run.py       all shards, on Ray Data or one after the other
query.py     questions over the answers, with DuckDB
"""
