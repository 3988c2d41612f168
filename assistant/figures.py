"""Figures: what a bench measured, as a table for people."""

from typing import Any

from rich.table import Table

from agents.bench import bare

Figures = dict[str, Any]

# Whose vectors a level compares.
COMPARED = {"semantic": "chunk", "hierarchical": "section", "summary": "document"}


def of_hops(figures: Figures, options: dict[str, Any]) -> Table:
    """Return what durability costs."""
    idle, loaded = figures["idle"], figures["loaded"]
    table = Table("", "durable turn", "bare hops", "ratio", title=f"{bare.HOPS} hops, ten agents")
    table.add_row("one turn", f"{idle['ms']} ms", f"{idle['bare_ms']} ms", f"{idle['ratio']}")
    table.add_row(
        f"{options['at_once']} at once",
        f"{loaded['turns_per_s']} turns/s",
        f"{loaded['bare_turns_per_s']} turns/s",
        f"{loaded['ratio']}",
    )
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
