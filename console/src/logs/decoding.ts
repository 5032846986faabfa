// What do bytes mean, in the formats that devices use: JSON, CBOR (RFC 8949) and the TLV of LwM2M?
import { hexOf } from "./payload";

/** Bytes in a format that they are, as people read it. */
export interface Decoded {
  format: "JSON" | "CBOR" | "TLV";
  text: string;
}

/** The formats that bytes can be read in to their end. */
export function decodedAs(bytes: Uint8Array): Decoded[] {
  const readings: [Decoded["format"], (bytes: Uint8Array) => string][] = [
    ["JSON", jsonText],
    ["CBOR", cborText],
    ["TLV", tlvText],
  ];
  if (bytes.length === 0) return [];
  return readings.flatMap(([format, read]) => {
    try {
      return [{ format, text: read(bytes) }];
    } catch {
      return [];
    }
  });
}

function jsonText(bytes: Uint8Array): string {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  if (!/^\s*[[{]/.test(text)) throw new RangeError("any number would be JSON");
  return pretty(JSON.parse(text));
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** Takes bytes from the front. */
class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }

  take(length: number): Uint8Array {
    const taken = this.bytes.subarray(this.at, this.at + length);
    if (taken.length < length) throw new RangeError("the bytes end too early");
    this.at += length;
    return taken;
  }

  /** An unsigned number in network order. */
  number(length: number): number {
    return this.take(length).reduce((sum, byte) => sum * 256 + byte, 0);
  }
}

function cborText(bytes: Uint8Array): string {
  const reader = new Reader(bytes);
  const value = cborItem(reader, 0);
  if (!reader.isAtEnd) throw new RangeError("more bytes follow");
  if (typeof value !== "object" || value === null) throw new RangeError("any byte would be CBOR");
  return pretty(value);
}

/** As deep as an item may be nested. */
const depthMax = 32;

function cborItem(reader: Reader, depth: number): unknown {
  if (depth > depthMax) throw new RangeError("nested too deep");
  const first = reader.number(1);
  const [major, short] = [first >> 5, first & 0x1f];
  if (major === 7) return cborSimple(reader, short);
  const size = cborSize(reader, short);
  const items = () => Array.from({ length: bounded(size) }, () => cborItem(reader, depth + 1));
  switch (major) {
    case 0:
      return size;
    case 1:
      return -1 - size;
    case 2:
      return hexOf(reader.take(size));
    case 3:
      return new TextDecoder("utf-8", { fatal: true }).decode(reader.take(size));
    case 4:
      return items();
    case 5: {
      const pairs = Array.from({ length: bounded(size) }, () => [
        keyText(cborItem(reader, depth + 1)),
        cborItem(reader, depth + 1),
      ]);
      return Object.fromEntries(pairs) as unknown;
    }
    default:
      // A tag says something about the item behind it.
      return cborItem(reader, depth + 1);
  }
}

function keyText(key: unknown): string {
  return typeof key === "string" ? key : JSON.stringify(key);
}

/** A claimed number of items; each takes a byte, and a payload of the log has 64 KiB at most. */
function bounded(size: number): number {
  if (size > 65_536) throw new RangeError("more items than bytes");
  return size;
}

function cborSize(reader: Reader, short: number): number {
  if (short < 24) return short;
  if (short > 27) throw new RangeError("an indefinite or reserved length");
  return reader.number(2 ** (short - 24));
}

function cborSimple(reader: Reader, short: number): unknown {
  switch (short) {
    case 20:
      return false;
    case 21:
      return true;
    case 22:
    case 23:
      return null;
    case 25:
      return half(reader.number(2));
    case 26:
      return view(reader.take(4)).getFloat32(0);
    case 27:
      return view(reader.take(8)).getFloat64(0);
    default:
      throw new RangeError("a reserved value");
  }
}

function half(bits: number): number {
  const [sign, exponent, fraction] = [bits >> 15, (bits >> 10) & 0x1f, bits & 0x3ff];
  const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1_024) * 2 ** (exponent - 15);
  return (sign === 0 ? 1 : -1) * (exponent === 0x1f ? (fraction === 0 ? Infinity : NaN) : size);
}

function view(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

const tlvKinds = ["object instance", "resource instance", "resources", "resource"] as const;

function tlvText(bytes: Uint8Array): string {
  return tlvRows(new Reader(bytes), "").join("\n");
}

/** The entries of a TLV: what each is, its number, and its bytes or the entries within. */
function tlvRows(reader: Reader, indent: string): string[] {
  const rows: string[] = [];
  while (!reader.isAtEnd) {
    const type = reader.number(1);
    const kind = type >> 6;
    const id = reader.number((type & 0x20) === 0 ? 1 : 2);
    const lengthBytes = (type >> 3) & 0b11;
    const value = reader.take(lengthBytes === 0 ? type & 0b111 : reader.number(lengthBytes));
    const head = `${indent}${tlvKinds[kind] ?? ""} ${id}`;
    // Object instances and resources with instances contain entries.
    const isNested = kind === 0 || kind === 2;
    if (isNested) rows.push(head, ...tlvRows(new Reader(value), `${indent}  `));
    else rows.push(`${head}: ${hexOf(value)}`);
  }
  return rows;
}
