"""Collections and receipts, listed."""

from django.db.models import QuerySet
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.permissions import IsAdminUser

from knowledge.models import Collection, Receipt
from knowledge.serializers.collections import CollectionSerializer, ReceiptSerializer
from knowledge.sizes import sized


class CollectionsView(ListAPIView[Collection]):
    """The collections with their sizes."""

    permission_classes = (IsAdminUser,)
    serializer_class = CollectionSerializer

    def get_queryset(self) -> QuerySet[Collection]:
        """All of them."""
        return sized(Collection.objects.all())


class ReceiptsView(ListAPIView[Receipt]):
    """Receipts of what was deleted, the latest first."""

    permission_classes = (IsAdminUser,)
    serializer_class = ReceiptSerializer
    queryset = Receipt.objects.all()


class ReceiptView(RetrieveAPIView[Receipt]):
    """One receipt."""

    permission_classes = (IsAdminUser,)
    serializer_class = ReceiptSerializer
    queryset = Receipt.objects.all()
