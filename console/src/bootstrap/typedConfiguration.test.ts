import { expect, test } from "vitest";

import { configurationOf, objectsText } from "./typedConfiguration";

const typedAs = (texts: Record<string, string>) => (name: string) => texts[name];

const server = (place: number, shortId: string) => ({
  [`shortId-${place}`]: shortId,
  [`lifetime-${place}`]: "86400",
  [`binding-${place}`]: "U",
  [`security-${place}`]: "PSK",
});

test("a configuration has its servers in their order, and values if there are some", () => {
  const typed = typedAs({
    ...server(0, "1111"),
    ...server(2, "2222"),
    "uri-2": "coap://second.example",
    objects: '{"/3/0/15": "Europe/Berlin"}',
  });
  expect(configurationOf([0, 2], typed)).toEqual({
    body: {
      servers: [
        { shortId: 1111, lifetime: 86400, binding: "U", security: "PSK" },
        {
          shortId: 2222,
          uri: "coap://second.example",
          lifetime: 86400,
          binding: "U",
          security: "PSK",
        },
      ],
      objects: { "/3/0/15": "Europe/Berlin" },
    },
  });
  expect(configurationOf([0], typedAs(server(0, "1")))).not.toHaveProperty("body.objects");
});

test("what the form does not have of a server stays, and a URI that was cleared is gone", () => {
  const was = {
    shortId: 1111,
    uri: "coap://second.example",
    lifetime: 60,
    binding: "U",
    security: "PSK",
    another: "property",
  } as const;
  expect(configurationOf([0], typedAs(server(0, "2222")), [was])).toEqual({
    body: {
      servers: [
        { shortId: 2222, lifetime: 86400, binding: "U", security: "PSK", another: "property" },
      ],
    },
  });
});

test("an account has a certificate and a key only while its security is a certificate", () => {
  const certified = { "certificate-0": "a certificate", "key-0": "***" };
  const x509 = { ...server(0, "1111"), ...certified, "security-0": "X509" };
  const was = {
    shortId: 1111,
    lifetime: 86_400,
    binding: "U",
    security: "X509",
    certificate: "another certificate",
    key: "***",
  } as const;
  expect(configurationOf([0], typedAs(x509), [was])).toMatchObject({
    body: { servers: [{ security: "X509", certificate: "a certificate", key: "***" }] },
  });
  const psk = configurationOf([0], typedAs({ ...server(0, "1111"), ...certified }), [was]);
  expect(psk).not.toHaveProperty("body.servers.0.certificate");
  expect(psk).not.toHaveProperty("body.servers.0.key");
});

test("values that are no JSON object are a fault", () => {
  for (const objects of ["/3/0/15", "[1]", "null", "1", '{"a":}']) {
    expect(configurationOf([], typedAs({ objects })), objects).toHaveProperty("fault");
  }
});

test("values are shown as they were typed", () => {
  expect(objectsText({ objects: { "/1/1/13": 2 } })).toBe('{\n  "/1/1/13": 2\n}');
  expect(objectsText({ objects: {} })).toBe("");
  expect(objectsText({})).toBe("");
});
