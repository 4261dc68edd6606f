"""The page in the browser: `whytube serve`. Nobody but cli/serve.py imports it.

One asyncio process answers requests. It runs no network and no codec: those run in child processes.

settings.py        what the operator chose: model, folders, limits, token
app.py             the application: routers, pages, start and end
guard.py           every request: Host, Origin, token, body size, headers of the answer
messages.py        bodies and answers; the OpenAPI description is made of them
api_*.py           the routes
events.py          progress as server-sent events
store.py           videos and results: SQLite and files; store_jobs.py the jobs, store_database.py the connection
intake.py          a file becomes a video: uploads, examples, the operator's folder
children.py        short-lived child processes with limits; decoding.py and drawing.py run in them
board.py           the queue, and how far each running job is
pool.py            worker processes: dispatch, cancel, restart; worker.py runs in them
work.py            the kinds of jobs; asking.py answers them, in a worker
static/            the pages

Only what runs in child processes imports torch or a codec: decoding.py, drawing.py, worker.py, asking.py.
"""
