"""Dying: a worker's work on one step, in a process that is killed at a named moment.

`python -m tests.agents.tools.dying DATABASE ADDRESS`, with the moments of tests/e2e/failpoints.
"""

import sys

import django
from django.conf import settings

django.setup()

from agents.contract import REGISTRY, Agent, Contract, View  # noqa: E402
from agents.llm.model import Model  # noqa: E402
from agents.llm.requests import Choice  # noqa: E402
from agents.steps import steps  # noqa: E402
from agents.tools import loop  # noqa: E402
from knowledge.providers import Provider  # noqa: E402
from prompts.prompt import Prompt  # noqa: E402
from prompts.texts import replaced  # noqa: E402
from tests.agents.llm.probe import PROBE  # noqa: E402
from tests.agents.tools.bench import ROLE, laid_out  # noqa: E402


def main() -> None:
    """Do what is ready for the role of the bench, with tools and a model that calls them."""
    database, address = sys.argv[1:]
    settings.DATABASES["default"]["NAME"] = database
    settings.PROVIDERS["scripted"] = Provider("scripted", address, "key")
    settings.MODELS[ROLE] = Choice("fake@scripted", timeout=5.0)
    with replaced("probe", PROBE), laid_out():
        prompt = Prompt("probe", "question", "hour")

        def work(view: View, llm: Model) -> dict[str, object]:
            said = loop.run(llm, prompt, question="Pay it back.", hour="noon")
            return {"response": said.text}

        REGISTRY[ROLE] = Agent(Contract(ROLE, View, ("response",)), model_work=work)
        steps.perform_one_by_one(ROLE, steps.run_agent)


if __name__ == "__main__":
    main()
