"""ASGI: the web process."""

import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")

# WhiteNoise hands out small files from memory or disk; that they are read at once is no matter.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

application = get_asgi_application()
