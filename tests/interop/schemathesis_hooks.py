"""How does Schemathesis send the bodies of imports: lines of JSON, and CSV?"""

import schemathesis


@schemathesis.serializer(
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "text/csv",
)
def lines(_context, value):
    return str(value).encode("utf-8", errors="replace")
