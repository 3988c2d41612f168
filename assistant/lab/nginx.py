"""Nginx: a proxy in front of a Docent for the time of a measurement, with its usual buffering."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assistant.lab.rehearsal import free_port
from assistant.lab.web_stack import HOST

# As docs/operating.md has it, and compressing all that comes.
CONFIGURATION = """
daemon off;
pid {folder}/pid;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  gzip on;
  gzip_proxied any;
  gzip_min_length 0;
  gzip_types text/event-stream application/json;
  server {{
    listen {host}:{port};
    location / {{
      proxy_pass http://{host}:{web};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_read_timeout 300s;
    }}
  }}
}}
"""


@contextmanager
def nginx(program: str, web: int) -> Iterator[int]:
    """Run nginx in front of a port; yield its own."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="docent-nginx-") as name:
        folder = Path(name)
        text = CONFIGURATION.format(folder=folder, host=HOST, port=port, web=web)
        (folder / "nginx.conf").write_text(text)
        command = [program, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
        with subprocess.Popen(command) as process:  # noqa: S603 what the operator named
            try:
                yield port
            finally:
                process.terminate()
