# A small server for a team: docker build -t whytube . && docker run -p 8000:8000 -v whytube:/data whytube
# It prints an address with its token; -e WHYTUBE_TOKEN=... chooses one.
FROM python:3.11-slim
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
# --build-arg PIP_EXTRA_INDEX_URL=... names an index of torch without CUDA, which is a tenth of the size.
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir '.[web]'
RUN useradd --create-home --uid 10001 whytube && mkdir /data && chown whytube /data
USER whytube
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["whytube", "serve", "--host", "0.0.0.0", "--port", "8000", "--store", "/data"]
