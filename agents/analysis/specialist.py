"""Specialist: works out one part of an analysis with the tools of its role."""

from agents.contract import Agent, View, Writes, agent
from agents.names import Role


class Assignment(View):
    """What a specialist reads: nothing yet."""


def declare(role: Role) -> Agent[Assignment]:
    """Declare the agent of a specialist. Its work needs a model, which is not asked yet."""

    @agent(role, reads=Assignment, writes=("agent_outputs",))
    def work(_: Assignment) -> Writes:
        return {"agent_outputs": {role: {"problem": "no model"}}}

    return work
