"""A customer's endpoint: verifies each post with the library of Standard Webhooks.

Verified posts are answered 204, others 400. Each line on standard output is one JSON object:
{"event": "listening", "port": ...} once it listens, then {"event": "posted", ...} for each POST. It
ends with its standard input.
"""

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError


def print_event(event, **details):
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


class Endpoint(BaseHTTPRequestHandler):
    """Accepts posts with the signature of the secret."""

    protocol_version = "HTTP/1.1"
    webhook = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            body = self.webhook.verify(body, dict(self.headers))
            status, why = 204, None
        except WebhookVerificationError as refused:
            body, status, why = None, 400, str(refused)
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()
        print_event("posted", id=self.headers["webhook-id"], status=status, why=why, body=body)

    def log_message(self, *_):
        """Writes no log: standard output has one line per post."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secret", required=True)
    Endpoint.webhook = Webhook(parser.parse_args().secret)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print_event("listening", port=server.server_address[1])
    sys.stdin.read()


if __name__ == "__main__":
    main()
