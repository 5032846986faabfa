"""How does Schemathesis send bodies that are not JSON, and which values depend on others?"""

import re
import uuid
from xml.sax.saxutils import escape

import schemathesis

KEY = re.compile(r"[!-~]{1,255}")
ZONE = re.compile(r"[A-Za-z0-9_+/-]+")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z?")


@schemathesis.serializer(
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "text/csv",
)
def lines(_context, value):
    return str(value).encode("utf-8", errors="replace")


@schemathesis.serializer("application/xml", "text/xml")
def definition(_context, value):
    """Any text becomes the name of an object; other values are no definition."""
    if not isinstance(value, str) or value.startswith("<LWM2M>"):
        return str(value).encode("utf-8", errors="replace")
    printable = "".join(character for character in value if character.isprintable())
    name = " ".join(printable.split())[:60].strip() or "Nameless"
    number = 33000 + len(name) % 20
    text = (
        f"<LWM2M><Object><Name>{escape(name)}</Name><ObjectID>{number}</ObjectID>"
        "<MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>"
        '<Resources><Item ID="0"><Name>It</Name><Operations>R</Operations>'
        "<MultipleInstances>Single</MultipleInstances><Mandatory>Optional</Mandatory>"
        "<Type>Float</Type></Item></Resources></Object></LWM2M>"
    )
    return text.encode("utf-8")


def schedule(body):
    """Replaces times and zones that have the right form."""
    times = {"start": "2026-01-01T00:00:00.000", "end": "2999-01-01T00:00:00.000"}
    for name, time in times.items():
        if TIME.fullmatch(str(body.get(name))):
            body[name] = time
    daily = body.get("daily")
    if isinstance(daily, dict) and ZONE.fullmatch(str(daily.get("zone"))):
        daily["zone"] = "Europe/Zurich"


@schemathesis.hook
def before_call(_context, case, _kwargs):
    """A request must not be sent before a time that lies before its expiry: one in the past does. With
    such a time it does not wake the device.

    Nor does a schedule have no due time left, and no schema lists the time zones.

    A create that is repeated with its idempotency key is answered as before although what it made
    was deleted: each create has a key of its own.

    The credentials of a client are in the header here, so they are not in the body as well.
    """
    if isinstance(case.body, dict) and TIME.fullmatch(str(case.body.get("notBefore"))):
        case.body["notBefore"] = "2026-01-01T00:00:00.000"
        if case.body.get("wakeUp") == "SMS":
            del case.body["wakeUp"]
    if "/schedules" in case.path and isinstance(case.body, dict):
        schedule(case.body)
    if case.path.endswith("/oauth/token") and isinstance(case.body, dict):
        for name in ("client_id", "client_secret"):
            if isinstance(case.body.get(name), str):
                del case.body[name]
    key = (case.headers or {}).get("Idempotency-Key")
    if "/actions/" not in case.path and KEY.fullmatch(str(key)):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
