"""Leavings: what turns and ingests leave behind in the database, as SQL."""

# What an ingest leaves behind beside documents: receipts, and what was counted for searches.
BESIDE = """
SELECT (SELECT count(*) FROM knowledge_receipt AS receipt WHERE receipt.collection = place.name),
    (SELECT chunks FROM knowledge_census WHERE collection_id = place.id),
    (SELECT report - 'collection' - 'seconds' - 'receipt' FROM knowledge_ingest
        WHERE collection_id = place.id AND status = 'done' ORDER BY created DESC LIMIT 1)
FROM knowledge_collection AS place WHERE name = %s
"""
# Of these messages to models, the one whose reply was journalled first.
FIRST = """
SELECT request #>> '{messages,-1,content}' FROM agents_modelcall
WHERE request #>> '{messages,-1,content}' = ANY(%s) AND outcome = 'ok' ORDER BY created LIMIT 1
"""
# What a turn leaves behind in other tables than its own.
LEFT = """
SELECT (SELECT count(*) FROM conversations_message WHERE turn_id = turn.id AND role = 'user'),
    (SELECT count(*) FROM conversations_message WHERE turn_id = turn.id AND role = 'assistant'),
    (SELECT count(*) FROM knowledge_reliance WHERE turn = turn.id),
    (SELECT count(*) FROM agents_fault WHERE envelope_id = turn.id),
    talk.status || ' ' || clarification_rounds
FROM agents_envelope AS turn JOIN conversations_conversation AS talk ON talk.id = conversation_id
WHERE turn.id = %s
"""
