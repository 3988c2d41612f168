"""URLs of the conversations: the start page, chat and turns."""

from django.urls import path

from conversations import start, stream, views

urlpatterns = [
    path("", start.page, name="start"),
    path("api/chat/", views.ChatView.as_view(), name="chat"),
    path("api/turns/<uuid:turn_id>/", views.TurnView.as_view(), name="turn"),
    path("api/turns/<uuid:turn_id>/trace/", views.TraceView.as_view(), name="turn-trace"),
    path("api/turns/<uuid:turn_id>/events/", stream.EventsView.as_view(), name="turn-events"),
    path("api/turns/<uuid:turn_id>/cancel/", views.CancelView.as_view(), name="turn-cancel"),
]
