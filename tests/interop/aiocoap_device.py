"""A LwM2M device on aiocoap: registers, serves a few resources, prints its requests.

It registers from the socket on which it serves, as LwM2M devices do. Each line on standard output
is one JSON object {"event": ...}; each line on standard input is one command:

  update        sends a registration update
  deregister    sends a de-registration
  send VALUE    sends a measured number and its unit (LwM2M Send, SenML JSON with a base name)
  quit          ends (as does the end of the input)
"""

import argparse
import asyncio
import json
import sys

import aiocoap
from aiocoap import Code, ContentFormat, Message, resource

LINKS = '</>;rt="oma.lwm2m",</1/0>,</3/0>,</3303/0>;ver=1.1'
TIME = "1367491215"
# Longer than the 0.1 s after which aiocoap acknowledges first and answers separately.
SLOW_S = 0.4
SENML_JSON = ContentFormat(110)


def print_event(event, **details):
    print(json.dumps({"event": event, **details}), flush=True)


class PrintingResource(resource.Resource):
    """A resource that prints every request before it answers."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    async def render(self, request):
        accept = request.opt.accept
        content_format = request.opt.content_format
        print_event(
            "received",
            method=str(request.code),
            path=self.path,
            payload=request.payload.decode("utf-8", "replace"),
            contentFormat=None if content_format is None else int(content_format),
            accept=None if accept is None else int(accept),
        )
        return await super().render(request)


class Readable(PrintingResource):
    """Answers with a text."""

    def __init__(self, path, text):
        super().__init__(path)
        self.text = text

    async def render_get(self, request):
        return Message(payload=self.text.encode(), content_format=ContentFormat.TEXT)


class Slow(Readable):
    """Answers in a separate response."""

    async def render_get(self, request):
        await asyncio.sleep(SLOW_S)
        return await super().render_get(request)


class Writable(Readable):
    """Accepts a new text."""

    async def render_put(self, request):
        self.text = request.payload.decode()
        return Message(code=Code.CHANGED)


class Executable(PrintingResource):
    """Counts how often it was executed."""

    def __init__(self, path):
        super().__init__(path)
        self.times = 0

    async def render_post(self, request):
        self.times += 1
        print_event("executed", path=self.path, times=self.times)
        return Message(code=Code.CHANGED)


def site():
    served = resource.Site()
    for entry in (
        Readable("/3/0/0", "Lamp Works"),
        Executable("/3/0/4"),
        Readable("/3/0/13", TIME),
        Writable("/3/0/15", "Europe/Berlin"),
        Readable("/3303/0/5700", "21.5"),
        Slow("/3303/0/5701", "Cel"),
    ):
        served.add_resource(entry.path.strip("/").split("/"), entry)
    return served


class Registrar:
    """The device's side of its registration."""

    def __init__(self, context, options):
        self.context = context
        self.options = options
        self.location = None

    async def ask(self, code, path, query=(), payload=b"", content_format=None):
        message = Message(code=code, uri=self.options.server, payload=payload)
        message.opt.uri_path = path
        message.opt.uri_query = query
        message.opt.content_format = content_format
        return await self.context.request(message).response

    async def register(self):
        query = [
            "lwm2m=" + self.options.version,
            "ep=" + self.options.endpoint,
            "lt=" + str(self.options.lifetime),
            "b=U",
        ]
        if self.options.queue_mode:
            query.append("Q")
        links = LINKS.encode()
        answer = await self.ask(Code.POST, ["rd"], query, links, ContentFormat.LINKFORMAT)
        self.location = list(answer.opt.location_path)
        print_event("registered", code=answer.code.dotted, location=self.location)

    async def update(self):
        answer = await self.ask(Code.POST, self.location)
        print_event("updated", code=answer.code.dotted)

    async def send(self, value):
        pack = [
            {"bn": "/3303/0/", "n": "5700", "v": float(value)},
            {"n": "5701", "vs": "Cel"},
        ]
        payload = json.dumps(pack).encode()
        answer = await self.ask(Code.POST, ["dp"], (), payload, SENML_JSON)
        print_event("sent", code=answer.code.dotted)

    async def deregister(self):
        answer = await self.ask(Code.DELETE, self.location)
        print_event("deregistered", code=answer.code.dotted)


async def commands():
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


async def live(options):
    context = await aiocoap.Context.create_server_context(
        site(), bind=(options.bind, 0), transports=["udp6"]
    )
    registrar = Registrar(context, options)
    await registrar.register()
    async for command in commands():
        if command == "update":
            await registrar.update()
        elif command.startswith("send "):
            await registrar.send(command.removeprefix("send "))
        elif command == "deregister":
            await registrar.deregister()
        elif command == "quit":
            break
        else:
            print_event("unknown", command=command)
    await context.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, help="coap://host:port")
    parser.add_argument("--bind", required=True, help="the device's own address")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--lifetime", type=int, default=300)
    parser.add_argument("--version", default="1.1")
    parser.add_argument("--queue-mode", action="store_true")
    asyncio.run(live(parser.parse_args()))


if __name__ == "__main__":
    main()
