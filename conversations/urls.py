"""URLs of the conversations: the chat page, chat and turns, OpenAI's API and MCP."""

from django.urls import path, re_path
from django.views.i18n import set_language

from conversations import (
    api,
    conversation_api,
    conversation_events,
    feedback_api,
    handover_api,
    mcp_http,
    openai_api,
    page,
    stream,
    user_api,
    widget,
)

urlpatterns = [
    path("", page.start, name="start"),
    path("c/<str:name>/", page.conversation, name="talk"),
    path("c/<str:name>/forget/", page.forget_talk, name="forget-talk"),
    path("turns/<uuid:turn_id>/stop/", page.stop, name="stop-turn"),
    path("turns/<uuid:turn_id>/rate/", page.rate_turn, name="rate-turn"),
    path("turns/<uuid:turn_id>/cited/<str:marker>/", page.cited, name="cited"),
    path("language/", set_language, name="language"),
    path("widget/<str:key>/", widget.frame, name="widget"),
    path("api/chat/", api.ChatView.as_view(), name="chat"),
    path("api/admin/handovers/", handover_api.HandoversView.as_view(), name="handovers"),
    path(
        "api/admin/handovers/<int:handover_id>/",
        handover_api.HandoverView.as_view(),
        name="handover",
    ),
    path("api/conversations/", conversation_api.ConversationsView.as_view(), name="conversations"),
    path(
        "api/conversations/<str:name>/",
        conversation_api.ConversationView.as_view(),
        name="conversation",
    ),
    path(
        "api/conversations/<str:name>/messages/",
        conversation_api.MessagesView.as_view(),
        name="conversation-messages",
    ),
    path(
        "api/conversations/<str:name>/events/",
        conversation_events.ConversationEventsView.as_view(),
        name="conversation-events",
    ),
    path("api/users/<path:user_id>/", user_api.UserView.as_view(), name="user"),
    path("api/turns/<uuid:turn_id>/", api.TurnView.as_view(), name="turn"),
    path("api/turns/<uuid:turn_id>/trace/", api.TraceView.as_view(), name="turn-trace"),
    path("api/turns/<uuid:turn_id>/events/", stream.EventsView.as_view(), name="turn-events"),
    path(
        "api/turns/<uuid:turn_id>/feedback/",
        feedback_api.TurnFeedbackView.as_view(),
        name="turn-feedback",
    ),
    path("api/admin/feedback/", feedback_api.FeedbackListView.as_view(), name="feedback"),
    path("api/turns/<uuid:turn_id>/cancel/", api.CancelView.as_view(), name="turn-cancel"),
    path("v1/models", openai_api.ModelsView.as_view(), name="openai-models"),
    path("v1/models/<path:name>", openai_api.ModelView.as_view(), name="openai-model"),
    path("v1/chat/completions", openai_api.CompletionsView.as_view(), name="openai-completions"),
    path("v1/embeddings", openai_api.EmbeddingsView.as_view(), name="openai-embeddings"),
    re_path(r"^mcp/?\Z", mcp_http.AdmissionView.as_view(), name="mcp"),
]
