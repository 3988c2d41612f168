"""Serializers: what the API takes and gives."""
