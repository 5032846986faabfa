"""A device on aiocoap that posts data over DTLS, which tinydtls speaks for it (DTLSSocket).

Each argument after the key is the length of a text that it posts. Each line on standard output is one
JSON object {"event": "posted", ...}.
"""

import argparse
import asyncio

import aiocoap
from aiocoap import Code, Message

from aiocoap_device import print_event


async def live(options):
    context = await aiocoap.Context.create_client_context(transports=["tinydtls"])
    psk = {"psk": {"ascii": options.key}, "client-identity": {"ascii": options.identity}}
    context.client_credentials.load_from_dict({f"{options.server}/*": {"dtls": psk}})
    for length in options.length:
        message = Message(
            code=Code.POST, uri=f"{options.server}/?t=flow", payload=b"7" * length
        )
        answer = await context.request(message).response
        print_event("posted", code=answer.code.dotted)
    await context.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", help="coaps://host:port")
    parser.add_argument("identity")
    parser.add_argument("key")
    parser.add_argument("length", type=int, nargs="+")
    asyncio.run(live(parser.parse_args()))


if __name__ == "__main__":
    main()
