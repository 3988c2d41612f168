"""Classifier: says of which kind documents are."""

from agents.analysis.specialist import declare
from agents.names import Role

work = declare(Role.CLASSIFIER)
