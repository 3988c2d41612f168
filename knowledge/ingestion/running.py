"""Running: a job from where it stands to its end."""

import uuid

from knowledge.ingestion.closing import close
from knowledge.ingestion.files import Findings
from knowledge.ingestion.holding import held
from knowledge.ingestion.pipeline import Pipeline, Watch
from knowledge.ingestion.planning import plan_findings
from knowledge.ingestion.report import Report, report
from knowledge.tidying import tidy


def run(ingest_id: uuid.UUID | str, watch: Watch | None = None) -> Report | None:
    """Work on a job until it ends; may be called any number of times, by any number of workers.

    Goes on where an earlier attempt stopped: what is finished is skipped, and every document is
    stored once. Returns None when there is nothing to do: another worker has it, it has ended or
    was cancelled, or it is gone. Files that cannot be read are an outcome and no exception.
    Raises KnowledgeError when it may work another time; the job is then queued again, and failed
    after three attempts without progress.
    """
    with held(ingest_id) as hold:
        if hold is None:
            return None
        pipeline = Pipeline(hold, watch)
        pipeline.work()
        made = close(hold, pipeline.known, pipeline.encoder)
        tidy()
        return made
    return None  # cancelled, or taken over by another worker


def ingest(
    findings: Findings,
    *,
    collection: str,
    keep_missing: bool = False,
    force: bool = False,
    watch: Watch | None = None,
) -> Report:
    """Bring the collection of that name, made when missing, to what the files say, right here.

    A job is made and run to its end in this process. Raises what `plan` and `run` raise.
    """
    job = plan_findings(collection, findings, force=force, keep_missing=keep_missing)
    return run(job.pk, watch) or report(job)
