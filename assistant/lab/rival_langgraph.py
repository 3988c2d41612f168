"""Rival of the turn: ten idle nodes in LangGraph, its PostgreSQL checkpointer at its safest.

Run by a Python that has langgraph and langgraph-checkpoint-postgres, with a request on its
standard input; prints its figures as JSON. Every checkpoint is written before the next node runs.
"""

import json
import statistics
import sys
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import TypedDict

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

# mypy: ignore-errors

NODES = 10
PROCESSES = 2  # as many as Docent's workers
THREADS = (1, 4, 10)  # in each of them; the best counts


class State(TypedDict, total=False):
    """What goes from node to node."""

    text: str
    last: str


def pool(address: str, size: int) -> ConnectionPool:
    """Return connections as the documentation of the checkpointer wants them."""
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return ConnectionPool(address, min_size=size, max_size=size, kwargs=options)


def chain(saver: PostgresSaver):
    """Return a graph of nodes one after another."""
    graph, before = StateGraph(State), START
    for number in range(NODES):
        name = f"agent {number}"
        graph.add_node(name, lambda _, name=name: {"last": name})
        graph.add_edge(before, name)
        before = name
    graph.add_edge(before, END)
    return graph.compile(checkpointer=saver)


def turn(graph) -> None:
    """Run the graph once, in a thread of its own."""
    thread = {"configurable": {"thread_id": str(uuid.uuid4())}}
    graph.invoke({"text": "?"}, thread, durability="sync")


def single(address: str, rounds: int) -> float:
    """Return the median seconds of one turn at a time."""
    with pool(address, 1) as connections:
        graph = chain(PostgresSaver(connections))
        turn(graph)
        seconds = []
        for _ in range(rounds):
            begin = time.perf_counter()
            turn(graph)
            seconds.append(time.perf_counter() - begin)
        return statistics.median(seconds)


def crowd(address: str, count: int, threads: int) -> tuple[float, float]:
    """Run turns in several threads of this process; return when they began and ended."""
    with pool(address, threads) as connections:
        graph = chain(PostgresSaver(connections))
        with ThreadPoolExecutor(threads) as executor:
            list(executor.map(turn, [graph] * threads))
            begin = time.monotonic()
            list(executor.map(turn, [graph] * count))
            return begin, time.monotonic()


def crowds(address: str, count: int, threads: int) -> float:
    """Return how many turns a second all processes do together."""
    share = count // PROCESSES
    with ProcessPoolExecutor(PROCESSES) as executor:
        spans = list(
            executor.map(crowd, [address] * PROCESSES, [share] * PROCESSES, [threads] * PROCESSES)
        )
    seconds = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return share * PROCESSES / seconds


def main() -> None:
    """Answer the request."""
    request = json.load(sys.stdin)
    address, count = request["address"], request["at_once"]
    with pool(address, 1) as connections:
        PostgresSaver(connections).setup()
    alone = single(address, request["rounds"])
    best = max(crowds(address, count, threads) for threads in THREADS)
    sys.stdout.write(json.dumps({"ms": round(alone * 1000, 2), "turns_per_s": round(best, 2)}))


if __name__ == "__main__":
    main()
