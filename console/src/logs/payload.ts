// How are bytes shown? As hexadecimal digits, and as text where they are one.

/** Rows of sixteen bytes: where they begin, their digits, and their letters. */
export function hexRows(bytes: Uint8Array): string {
  const rows = [];
  for (let start = 0; start < bytes.length; start += 16) {
    const row = bytes.subarray(start, start + 16);
    const digits = hexOf(row, " ");
    const letters = Array.from(row, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".",
    );
    const place = start.toString(16).padStart(4, "0");
    rows.push(`${place}  ${digits.padEnd(47)}  ${letters.join("")}`);
  }
  return rows.join("\n");
}

/** The digits of bytes, two for each. */
export function hexOf(bytes: Uint8Array, separator = ""): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(separator);
}

/** The text of bytes in UTF-8, unless they are none or contain control characters. */
export function decodedText(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    // eslint-disable-next-line no-control-regex -- control characters are what it looks for
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The bytes of a base64 text. */
export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
