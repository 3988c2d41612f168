"""ASGI: the web process."""

import os
import warnings

from django.conf import settings
from django.core.asgi import get_asgi_application

from assistant.bodies import Bounded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")

# WhiteNoise hands out small files from memory or disk; that they are read at once is no matter.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

# Room for five of the largest files, and for what stands between them.
application = Bounded(get_asgi_application(), most=5 * settings.MAX_UPLOAD_BYTES + 1_000_000)
