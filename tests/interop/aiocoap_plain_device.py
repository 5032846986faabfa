"""A device on aiocoap that speaks plain CoAP: serves a few resources and posts what it measures.

Each line on standard output is one JSON object {"event": ...}, the first of which says the port;
each line on standard input is one command:

  post TOPIC BYTES      posts a text of so many bytes
  quit                  ends (as does the end of the input)
"""

import argparse
import asyncio

import aiocoap
from aiocoap import Code, ContentFormat, Message, resource

from aiocoap_device import Readable, Slow, PrintingResource, commands, print_event

BYTES = bytes(range(256))


class Bytes(PrintingResource):
    """Answers with bytes in a binary format."""

    async def render_get(self, request):
        return Message(payload=BYTES, content_format=ContentFormat.OCTETSTREAM)


class Bare(PrintingResource):
    """Answers with text without a content format."""

    async def render_get(self, request):
        return Message(payload=b"bare")


class Stored(PrintingResource):
    """Stores a text, which can be replaced, extended, reversed and removed."""

    def __init__(self, path):
        super().__init__(path)
        self.text = None

    def answer(self, code, text):
        return Message(code=code, payload=text, content_format=ContentFormat.TEXT)

    async def render_get(self, request):
        if self.text is None:
            return Message(code=Code.NOT_FOUND)
        return self.answer(Code.CONTENT, self.text)

    async def render_put(self, request):
        is_new = self.text is None
        self.text = request.payload
        return Message(code=Code.CREATED if is_new else Code.CHANGED)

    async def render_patch(self, request):
        self.text += request.payload
        return Message(code=Code.CHANGED)

    async def render_post(self, request):
        return self.answer(Code.CHANGED, request.payload[::-1])

    async def render_delete(self, request):
        self.text = None
        return Message(code=Code.DELETED)


def site():
    served = resource.Site()
    for entry in (
        Readable("/name", "Meter Works"),
        Slow("/slow", "at last"),
        Bytes("/bytes"),
        Bare("/bare"),
        Stored("/kept"),
    ):
        served.add_resource(entry.path.strip("/").split("/"), entry)
    return served


async def post(context, server, topic, length):
    text = "".join(f"{number:07}\n" for number in range(length // 8 + 1))[:length]
    message = Message(code=Code.POST, uri=server, payload=text.encode())
    message.opt.uri_query = ["t=" + topic]
    answer = await context.request(message).response
    print_event("posted", code=answer.code.dotted, topic=topic)


async def live(options):
    context = await aiocoap.Context.create_server_context(
        site(), bind=(options.bind, options.port), transports=["udp6"]
    )
    print_event("serving", port=options.port)
    async for command in commands():
        words = command.split()
        if words[0] == "post":
            await post(context, options.server, words[1], int(words[2]))
        elif words[0] == "quit":
            break
        else:
            print_event("unknown", command=command)
    await context.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="coap://host:port")
    parser.add_argument("--bind", required=True, help="the device's own address")
    parser.add_argument("--port", required=True, type=int, help="where it serves")
    asyncio.run(live(parser.parse_args()))


if __name__ == "__main__":
    main()
