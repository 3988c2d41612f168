"""Settings: every environment variable Docent reads, its default and what it may be."""

import logging
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corsheaders.defaults import default_headers
from django.core.management.utils import get_random_secret_key
from environs import Env, EnvError
from marshmallow.validate import Length, OneOf, Range

from agents.llm.requests import Choice
from agents.names import ENRICHMENT, INSTANCES, MODEL_ASKERS, Role, Route
from assistant import appearance
from assistant.environment import (
    WITHOUT_ENV_FILE,
    broker_url,
    check_networks,
    check_sentry_dsn,
    choices,
    explained,
    format_rules,
    header_value,
    http_address,
    mail_server,
    opening_hours,
    origins,
    postgres_options,
    profile,
    refuse,
    refuse_hosts_with_more,
    refuse_no_route,
    refuse_unreachable_staff,
    resolved,
    sender,
    signing_key,
)
from assistant.local import shared_servers
from assistant.local.paths import state_folder
from assistant.logs import FORMATS, to_stderr
from knowledge.identifiers import LOCAL_MODEL
from knowledge.providers import Provider, from_environment, parse_model_name

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = state_folder()

env = Env(eager=False)
if WITHOUT_ENV_FILE not in os.environ:
    env.read_env(str(BASE_DIR / ".env"), recurse=False)

# Servers: absent, the embedded ones of the state folder.
IS_EMBEDDED = not os.environ.get("DATABASE_URL")
DATABASE_URL: str = env.str("DATABASE_URL", "") or shared_servers.postgres_url()
REDIS_URL: str = env.str("REDIS_URL", "") or shared_servers.redis_url()
SECRET_KEY: str = env.str("SECRET_KEY", "")
DEBUG: bool = env.bool("DEBUG", False)
PUBLIC_URL: str = env.str("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
HSTS_SECONDS: int = env.int("HSTS_SECONDS", 30 * 86400, validate=Range(min=0))
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
_cors_origins: list[str] = env.list("CORS_ORIGINS", [])
# Whose X-Forwarded-For is believed: addresses and networks.
TRUSTED_PROXIES: list[str] = env.list("TRUSTED_PROXIES", ["127.0.0.1", "::1"])
START_PAGE: str = env.str(
    "START_PAGE",
    "staff" if os.environ.get("DATABASE_URL") else "open",
    validate=OneOf(["open", "staff"]),
)

# What the assistant is for.
DOMAIN_NAME: str = env.str("DOMAIN_NAME", "")
DOMAIN_SCOPE: str = env.str("DOMAIN_SCOPE", "")
SUPPORT_CONTACT: str = env.str("SUPPORT_CONTACT", "")
ROUTES: list[str] = env.list(
    "ROUTES",
    [Route.DOCUMENTATION.value],
    subcast=str,
    validate=Length(min=1, error="must name at least one route"),
)
GUARDRAILS_STRICTNESS: str = env.str(
    "GUARDRAILS_STRICTNESS", "medium", validate=OneOf(["low", "medium", "high"])
)

# The turn.
_counts = Range(min=1)
_unit = Range(min=0, max=1)
TURN_DEADLINE_SECONDS: int = env.int("TURN_DEADLINE_SECONDS", 120, validate=Range(min=5))
ANALYSIS_DEADLINE_SECONDS: int = env.int("ANALYSIS_DEADLINE_SECONDS", 600, validate=Range(min=30))
MAX_PROCESS_COUNT: int = env.int("MAX_PROCESS_COUNT", 60, validate=Range(min=10))
MAX_QUESTION_LENGTH: int = env.int("MAX_QUESTION_LENGTH", 8000, validate=_counts)
MAX_TURNS: int = env.int("MAX_TURNS", 500, validate=_counts)
MAX_TURNS_PER_KEY: int = env.int("MAX_TURNS_PER_KEY", 20, validate=_counts)
# Of requests in a minute, and of logins in a quarter of an hour; 0 sets none.
MAX_REQUESTS_PER_KEY: int = env.int("MAX_REQUESTS_PER_KEY", 600, validate=Range(min=0))
MAX_REQUESTS_PER_ADDRESS: int = env.int("MAX_REQUESTS_PER_ADDRESS", 1200, validate=Range(min=0))
MAX_CONNECTIONS: int = env.int("MAX_CONNECTIONS", 1000, validate=Range(min=10))
MAX_CONNECTIONS_PER_ADDRESS: int = env.int(
    "MAX_CONNECTIONS_PER_ADDRESS", 200, validate=Range(min=1)
)
MAX_FAILED_LOGINS: int = env.int("MAX_FAILED_LOGINS", 10, validate=Range(min=0))
PARALLEL_INTAKE: bool = env.bool("PARALLEL_INTAKE", True)
TRANSLATE_ENGLISH: str = env.str(
    "TRANSLATE_ENGLISH", "correct", validate=OneOf(["correct", "skip"])
)
MAX_SEARCH_ITERATIONS: int = env.int("MAX_SEARCH_ITERATIONS", 2, validate=_counts)
MAX_CLARIFICATION_ROUNDS: int = env.int("MAX_CLARIFICATION_ROUNDS", 3, validate=_counts)
MAX_QUALITY_RETRIES: int = env.int("MAX_QUALITY_RETRIES", 2, validate=Range(min=0))
QUALITY_SCORE_THRESHOLD: float = env.float("QUALITY_SCORE_THRESHOLD", 0.7, validate=_unit)
_percent = Range(min=0, max=100)
ANALYSIS_SIMPLE: int = env.int("ANALYSIS_SIMPLE", 30, validate=_percent)
ANALYSIS_THOROUGH: int = env.int("ANALYSIS_THOROUGH", 70, validate=_percent)
ANALYSIS_BUDGET: float = env.float("ANALYSIS_BUDGET", 0, validate=Range(min=0))
ANALYSIS_TOKENS: int = env.int("ANALYSIS_TOKENS", 500_000, validate=Range(min=0))
ROLE_CONCURRENCY: dict[Role, int] = {
    role: env.int(role.concurrency_setting, INSTANCES[role], validate=Range(min=1, max=256))
    for role in Role
}

# Search.
SEARCH_RESULTS_LIMIT: int = env.int("SEARCH_RESULTS_LIMIT", 8, validate=_counts)
SEARCH_FETCH_K: int = env.int("SEARCH_FETCH_K", 24, validate=_counts)
SEARCH_RERANK: int = env.int("SEARCH_RERANK", 6, validate=Range(min=0, max=100))
SEARCH_CONFIDENCE_THRESHOLD: float = env.float("SEARCH_CONFIDENCE_THRESHOLD", 0.35, validate=_unit)
# Who sets a threshold does not want others found.
CALIBRATES_BY_ITSELF: bool = not env.str("SEARCH_CONFIDENCE_THRESHOLD", "")
SEARCH_MIN_HITS: int = env.int("SEARCH_MIN_HITS", 1, validate=_counts)
MMR_LAMBDA: float = env.float("MMR_LAMBDA", 0.7, validate=_unit)
MAX_CONTEXT_LENGTH: int = env.int("MAX_CONTEXT_LENGTH", 8000, validate=Range(min=500))
SEARCH_EXPANSION: str = env.str(
    "SEARCH_EXPANSION", "off", validate=OneOf(["off", "expand", "hyde", "both"])
)

# Documents.
EMBEDDING_MODEL: str = env.str("EMBEDDING_MODEL", LOCAL_MODEL, validate=Length(min=1, max=100))
CROSS_LINGUAL: bool = env.str("CROSS_LINGUAL", "off", validate=OneOf(["on", "off"])) == "on"
EMBEDDING_WINDOW: int = env.int("EMBEDDING_WINDOW", 512, validate=Range(min=64))
MAX_UPLOAD_BYTES: int = env.int("MAX_UPLOAD_BYTES", 20 * 1024 * 1024, validate=_counts)
KEEP_VERSIONS: int = env.int("KEEP_VERSIONS", 20, validate=_counts)
PARSE_SECONDS: int = env.int("PARSE_SECONDS", 60, validate=_counts)
PARSE_MEMORY_MB: int = env.int("PARSE_MEMORY_MB", 1024, validate=Range(min=256))
PARSE_MAX_PAGES: int = env.int("PARSE_MAX_PAGES", 2000, validate=_counts)
PARSE_MAX_ROWS: int = env.int("PARSE_MAX_ROWS", 20_000, validate=_counts)
PARSE_MAX_EXPANDED_BYTES: int = env.int(
    "PARSE_MAX_EXPANDED_BYTES", 100 * 1024 * 1024, validate=_counts
)
_format_rules: list[str] = env.list("INGEST_AS", [])
ZIP_MAX_FILES: int = env.int("ZIP_MAX_FILES", 2000, validate=_counts)
FETCH_SECONDS: int = env.int("FETCH_SECONDS", 30, validate=_counts)
FETCH_MAX_PAGES: int = env.int("FETCH_MAX_PAGES", 2000, validate=_counts)
GIT_SECONDS: int = env.int("GIT_SECONDS", 300, validate=_counts)
GIT_MAX_BYTES: int = env.int("GIT_MAX_BYTES", 500 * 1024 * 1024, validate=Range(min=1024))
GIT_TOKENS: dict[str, str] = env.dict("GIT_TOKENS", {}, subcast_values=str)
FETCH_PRIVATE_HOSTS: list[str] = env.list("FETCH_PRIVATE_HOSTS", [])

# Language models. Without one, every role works by its own rules.
MODEL_PROFILE: str = profile(env)
MODELS: dict[str, Choice] = choices(env, MODEL_PROFILE)
# Whom another GEN_MODEL, as assistants may have one, leaves as they are.
OWN_MODEL_ASKERS: frozenset[str] = frozenset(
    asker for asker in MODEL_ASKERS if env.str(f"{asker.upper()}_MODEL", "")
)
# GEN_MODEL alone doesn't say that every document may be paid for.
DESCRIBE_ON_REQUEST: bool = bool(MODELS[ENRICHMENT].model) and not env.str("ENRICHMENT_MODEL", "")
PROMPTS_DIR: str = env.str("PROMPTS_DIR", "")
DAILY_BUDGET: float = env.float("DAILY_BUDGET", 0, validate=Range(min=0))
DAILY_BUDGET_PER_KEY: float = env.float("DAILY_BUDGET_PER_KEY", 0, validate=Range(min=0))
DAILY_TOKENS: int = env.int("DAILY_TOKENS", 0, validate=Range(min=0))
DAILY_TOKENS_PER_KEY: int = env.int("DAILY_TOKENS_PER_KEY", 0, validate=Range(min=0))
CACHE_MODEL_SECONDS: int = env.int("CACHE_MODEL_SECONDS", 3600, validate=Range(min=0))
CACHE_TRANSLATION_SECONDS: int = env.int("CACHE_TRANSLATION_SECONDS", 86400, validate=Range(min=0))
CACHE_QUALITY_SECONDS: int = env.int("CACHE_QUALITY_SECONDS", 3600, validate=Range(min=0))
CACHE_SEARCH_SECONDS: int = env.int("CACHE_SEARCH_SECONDS", 300, validate=Range(min=0))
KNOWLEDGE_GRAPH: bool = env.bool("KNOWLEDGE_GRAPH", False)

# Conversations.
HISTORY_MESSAGES: int = env.int("HISTORY_MESSAGES", 12, validate=Range(min=2))
HISTORY_TOKENS: int = env.int("HISTORY_TOKENS", 2000, validate=Range(min=200))
# Since anything happened in one; 0: they are kept.
CONVERSATION_TTL_DAYS: int = env.int("CONVERSATION_TTL_DAYS", 0, validate=Range(min=0, max=36_500))

# Billing. The class itself is looked at once there are models, in `agents.billing.apps`.
BILLING_SYSTEM: str = env.str("BILLING_SYSTEM", "agents.billing.own_tables.OwnTables")
BILLING_API_URL: str = env.str("BILLING_API_URL", "")
BILLING_API_KEY: str = env.str("BILLING_API_KEY", "")
# Handing over to a person.
HANDOVER: bool = env.bool("HANDOVER", False)
HANDOVER_WEBHOOK: str = env.str("HANDOVER_WEBHOOK", "")
_webhook_secret: str = env.str("HANDOVER_WEBHOOK_SECRET", "")
HANDOVER_EMAIL: list[str] = env.list("HANDOVER_EMAIL", [])
_opening_hours: str = env.str("OPENING_HOURS", "")
EMAIL_URL: str = env.str("EMAIL_URL", "")
DEFAULT_FROM_EMAIL: str = env.str("EMAIL_FROM", f"docent@{urlsplit(PUBLIC_URL).hostname}")

# Observability.
LOG_LEVEL: int = env.log_level("LOG_LEVEL", logging.WARNING)
LOG_FORMAT: str = env.str("LOG_FORMAT", "line", validate=OneOf(FORMATS))
_collector: str = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "")
_collector_of_traces: str = env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
env.str("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", validate=OneOf(["http/protobuf"]))
OTEL_CAPTURE_CONTENT: bool = env.bool("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", False)
SENTRY_DSN: str = env.str("SENTRY_DSN", "")

try:
    env.seal()
    KNOWN_NAMES = frozenset({"STATE_DIR", *env.dump()})
    DATABASES = {"default": postgres_options(DATABASE_URL)}
    CELERY_BROKER_URL = broker_url(REDIS_URL)
    try:
        PROVIDERS: dict[str, Provider] = from_environment(os.environ)
        MODELS = resolved(MODELS, PROVIDERS, os.environ)
    except ValueError as error:
        refuse(*str(error).split(": ", 1))
    if (
        EMBEDDING_MODEL != LOCAL_MODEL
        and parse_model_name(EMBEDDING_MODEL, PROVIDERS)[1] not in PROVIDERS
    ):
        _known = ", ".join(PROVIDERS)
        refuse("EMBEDDING_MODEL", f"must be {LOCAL_MODEL} or model@provider; known are {_known}")
    BILLING_API_URL = http_address("BILLING_API_URL", BILLING_API_URL)
    OPENING_HOURS = opening_hours(_opening_hours)
    INGEST_AS = format_rules(_format_rules)
    _mail = mail_server(EMAIL_URL)
    HANDOVER_WEBHOOK_KEY = signing_key(_webhook_secret)
    refuse_unreachable_staff(HANDOVER_WEBHOOK, HANDOVER_EMAIL, EMAIL_URL)
    CORS_ORIGINS = origins(_cors_origins)
    check_networks("TRUSTED_PROXIES", TRUSTED_PROXIES)
    http_address("OTEL_EXPORTER_OTLP_ENDPOINT", _collector)
    http_address("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", _collector_of_traces)
    check_sentry_dsn(SENTRY_DSN)
    refuse_no_route(ROUTES)
    refuse_hosts_with_more("ALLOWED_HOSTS", ALLOWED_HOSTS)
    refuse_hosts_with_more("FETCH_PRIVATE_HOSTS", FETCH_PRIVATE_HOSTS)
    header_value("BILLING_API_KEY", BILLING_API_KEY)
    sender(DEFAULT_FROM_EMAIL)
    PUBLIC_URL = http_address("PUBLIC_URL", PUBLIC_URL)
except EnvError as error:
    sys.exit(f"Docent cannot start: a setting is wrong. {explained(error)}")

if not SECRET_KEY:
    # Kept beside the data, so that sessions outlive a restart.
    _file = STATE_DIR / "secret_key"
    if not _file.exists():
        _file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _file.touch(mode=0o600)
        _file.write_text(get_random_secret_key())
    SECRET_KEY = _file.read_text()

INSTALLED_APPS = [
    "unfold",
    # Finds no admin modules: they take half a second, and `assistant.urls` alone needs them.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "corsheaders",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knowledge",
    "agents.billing",
    "agents",
    "conversations",
    "assistant",
]
MIDDLEWARE = [
    "corsheaders.middleware.CorsMiddleware",
    "assistant.api.ErrorShape",
    "django.middleware.security.SecurityMiddleware",
    "assistant.policy.Policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "conversations.limits.AddressLimit",
    "assistant.logs.Correlated",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "assistant.api.SlashForPages",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "conversations.widget.Widget",
]
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before those of the apps: what Unfold has there is another.
        "DIRS": [BASE_DIR / "assistant" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = ["conversations.limits.LimitedLogin"]
ROOT_URLCONF = "assistant.urls"
ASGI_APPLICATION = "assistant.asgi.application"
# Imported by the processes that need them, at the first use: the client of the providers takes a
# second and 40 MB, the Model Context Protocol another and 20 MB, ONNX Runtime 25 MB.
MODEL_TRANSPORT = "agents.llm.client.send"
MCP_SERVER = "conversations.mcp_server.respond"
EMBEDDING_ENDPOINT = "knowledge.embedding.endpoint.Endpoint"
EMBEDDING_RUNTIME = "knowledge.embedding.runtime.Runtime"
MULTILINGUAL_RUNTIME = "knowledge.embedding.runtime.MultilingualRuntime"
# Where ended turns are told to; it needs packages of its own.
TRACES = "agents.trace.telemetry.Telemetry" if _collector or _collector_of_traces else ""
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", "English"),
    ("de", "German"),
    ("es", "Spanish"),
    ("fr", "French"),
    ("pl", "Polish"),
    ("cs", "Czech"),
    ("ru", "Russian"),
    ("zh-hans", "Chinese"),
]
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"  # not below the address of a frame, as what is relative would be
# Finds static files where they are installed: nothing to collect before the first start.
WHITENOISE_USE_FINDERS = True
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
# Pages elsewhere ask with a key alone: no browser is let send its cookies along.
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_ALL_ORIGINS = CORS_ORIGINS == ["*"]
CORS_ALLOWED_ORIGINS = [] if CORS_ALLOW_ALL_ORIGINS else CORS_ORIGINS
CORS_URLS_REGEX = r"^/(api|v1|mcp)(/|$)"
CORS_ALLOW_HEADERS = [
    *default_headers,
    *("idempotency-key", "last-event-id", "cache-control"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"),
]
CORS_EXPOSE_HEADERS = ["Retry-After", "Mcp-Session-Id"]
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_UPLOAD_BYTES
IS_HTTPS = urlsplit(PUBLIC_URL).scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_HSTS_SECONDS = HSTS_SECONDS if IS_HTTPS else 0
# What looks after the processes asks them and no proxy.
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
# Hosts below ours, and lists in browsers, are not ours to speak for.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
LOGIN_URL, LOGIN_REDIRECT_URL = "admin:login", "admin:index"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "conversations.authentication.KeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["knowledge.api.access.ScopePermission"],
    "DEFAULT_THROTTLE_CLASSES": ["conversations.limits.KeyThrottle"],
    "DEFAULT_PAGINATION_CLASS": "knowledge.api.sent.Pages",
    "DEFAULT_SCHEMA_CLASS": "assistant.openapi.Schema",
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "assistant.api.explain",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": None}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",  # the first in which a type may be null, as in our shapes
    "TITLE": "Docent",
    "DESCRIPTION": "Answers from your own documents, with checked citations.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # What is sent and what is answered differ in what may be left out.
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "ConversationStatus": "conversations.models.Conversation.Status",
        "HandoverReason": "conversations.models.Handover.Why",
        "IngestStatus": "knowledge.models.Ingest.Status",
        "JobKind": "knowledge.models.Ingest.Kind",
        "ItemKind": "knowledge.models.Item.Kind",
        "SourceKind": "knowledge.models.Source.Kind",
        "ItemStatus": "knowledge.models.Item.Status",
        "QueueState": "agents.trace.queues.State",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "assistant.openapi_examples.add_examples",
    ],
    # From our own server: no page of ours loads anything from elsewhere.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
UNFOLD = appearance.UNFOLD

EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.scheme == "smtps", _mail.scheme == "smtp+tls"
EMAIL_TIMEOUT = 10

# Celery: the reasons are in docs/architecture.md, "Redis is a doorbell".
CELERY_RESULT_BACKEND = None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 2,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.5,
}
CELERY_BROKER_POOL_ACQUIRE_TIMEOUT = 5
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 600,
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    "priority_steps": [0],
    "socket_timeout": 10,
    "socket_connect_timeout": 2,
    "health_check_interval": 10,
    "retry_on_timeout": True,
    "client_name": "docent",
}

LOGGING = to_stderr(LOG_LEVEL, LOG_FORMAT)
