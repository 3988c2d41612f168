"""Figures: what a bench measured, as a table for people."""

from typing import Any

from rich.table import Table

from assistant.lab import bench_hops

Figures = dict[str, Any]

# Whose vectors a level compares.
COMPARED = {"semantic": "chunk", "summary": "document"}


def of_hops(figures: Figures, options: dict[str, Any]) -> Table:
    """Return what durability costs."""
    idle, loaded = figures["idle"], figures["loaded"]
    table = Table(
        "", "durable turn", "bare hops", "ratio", title=f"{bench_hops.HOPS} hops, ten agents"
    )
    table.add_row("one turn", f"{idle['ms']} ms", f"{idle['bare_ms']} ms", f"{idle['ratio']}")
    table.add_row(
        f"{options['at_once']} at once",
        f"{loaded['turns_per_s']} turns/s",
        f"{loaded['bare_turns_per_s']} turns/s",
        f"{loaded['ratio']}",
    )
    if theirs := figures.get("langgraph"):
        table.add_section()
        table.add_row("LangGraph, ten nodes, one turn", f"{theirs['ms']} ms", "", "")
        times = f"Docent does {theirs['docent_times_its_turns_per_s']} times as many"
        table.add_row("LangGraph, many", f"{theirs['turns_per_s']} turns/s", "", times)
    return table


def of_search(figures: Figures, _: dict[str, Any]) -> Table:
    """Return how fast passages are found, and what the indexes miss."""
    table = Table("", "p50 ms", "p95 ms", "recall@10", title=f"{figures['chunks']:,} chunks")
    for level, took in figures["levels"].items():
        found = figures["recall"].get(COMPARED.get(level, ""), "")
        table.add_row(level, str(took["p50"]), str(took["p95"]), str(found))
    table.add_section()
    table.add_row("fused", str(figures["fused"]["p50"]), str(figures["fused"]["p95"]), "")
    if beside := figures.get("langchain"):
        name = f"LangChain hybrid, {beside['ratio_to_fused']} times fused"
        table.add_row(name, str(beside["p50"]), str(beside["p95"]), "")
    table.add_section()
    table.add_row("exact search", str(figures["exact_ms"]), "", "1.0")
    table.add_row("embedding a question", str(figures["embedding_ms"]), "", "")
    table.add_row("counting to a million", str(figures["counting_ms"]), "", "")
    return table


def of_ingest(figures: Figures, _: dict[str, Any]) -> Table:
    """Return how fast a folder becomes searchable, stage by stage."""
    title = f"{figures['documents']} documents, {figures['chunks']} chunks, {figures['model']}"
    table = Table("", "seconds", "chunks/s", "", title=title)
    for name, stage in figures["stages"].items():
        table.add_row(name, str(stage["seconds"]), "", f"{stage['share']:.0%}")
    table.add_section()
    for name in ("first", "unchanged"):
        run = figures[name]
        faster = f"{run['times_faster']} times faster" if "times_faster" in run else ""
        table.add_row(f"{name} run", str(run["seconds"]), str(run["chunks_per_s"]), faster)
    if theirs := figures.get("langchain"):
        table.add_section()
        rows = (("first", "first"), ("unchanged", "again"))
        for name, key in rows:
            ratio = f"Docent is {theirs[f'times_faster_{name}']} times faster"
            table.add_row(f"LangChain, {name} run", f"{theirs[key]:.3f}", "", ratio)
    table.add_section()
    encoder = figures["encoder"]
    table.add_row("encoder", "", str(encoder["passages_per_s"]), f"{encoder['ratio']} times fp32")
    return table


def of_answer(figures: Figures, _: dict[str, Any]) -> Table:
    """Return how long a question waited, and what it cost to ask it again."""
    waiting, again = figures["waiting"], figures["repeated"]
    table = Table("", "", title=f"calls of {figures['seconds']} s")
    table.add_row("first token", f"{waiting['first_token_s']} s")
    table.add_row("first token, in calls", str(waiting["first_token_in_calls"]))
    table.add_row("end", f"{waiting['end_s']} s")
    table.add_row("sum of its calls", f"{waiting['sum_of_calls_s']} s")
    table.add_row("calls", ", ".join(waiting["calls"]))
    table.add_row("under way at once", ", ".join(waiting["at_once"]))
    for name in ("first", "second"):
        told = again[name]
        table.add_section()
        table.add_row(f"{told['questions']} questions, {name} time", f"{told['ms_each']} ms each")
        table.add_row("calls of models", str(told["calls_of_models"]))
        table.add_row("replies used again", str(told["from_cache"]))
    return table


def of_inflight(figures: Figures, _: dict[str, Any]) -> Table:
    """Return how many turns at once fared, against the time their models took."""
    title = f"{figures['turns']} turns at once, {figures['latency']} s a call"
    table = Table("", "", title=title)
    rows = {
        "steps of a role at once": f"{figures['concurrency']} in {figures['copies']} processes",
        "all turns": f"{figures['seconds']} s, {figures['ratio']} times the ideal",
        "a turn alone": f"{figures['alone_seconds']} s, {figures['stages']} calls in a row",
        "half of the turns": f"{figures['p50_seconds']} s",
        "19 of 20 turns": f"{figures['p95_seconds']} s",
        "memory of everything": f"{figures['megabytes']} MB",
        "connections to PostgreSQL": figures["connections"],
        "lost turns": figures["lost"],
        "calls": f"{figures['calls_made']} made, {figures['calls_meant']} meant",
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table
