// Into how many messages is a text divided, and in which alphabet (3GPP TS 23.038, TS 23.040)? As the
// service does it.

/** The default alphabet of GSM, without the escape. */
const basic =
  "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
  "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";

/** The characters that take an escape before them. */
const extension = "\f^{}\\[~]|€";

/** The most parts of a text. */
export const partsMax = 255;

/** How a text is sent. */
export interface SmsSize {
  alphabet: "GSM 7 bit" | "UCS-2";
  /** Septets of GSM 7 bit, or UTF-16 units. */
  units: number;
  parts: number;
  /** What the last part still takes. */
  left: number;
}

/** The size of a text. */
export function sizeOf(text: string): SmsSize {
  const characters = Array.from(text);
  const isGsm = characters.every((one) => basic.includes(one) || extension.includes(one));
  const [alphabet, whole, part] = isGsm
    ? (["GSM 7 bit", 160, 153] as const)
    : (["UCS-2", 70, 67] as const);
  const sizes = characters.map((one) => (isGsm ? (extension.includes(one) ? 2 : 1) : one.length));
  const units = sizes.reduce((sum, size) => sum + size, 0);
  if (units <= whole) return { alphabet, units, parts: 1, left: whole - units };
  let [parts, used] = [1, 0];
  for (const size of sizes) {
    // No part ends within an escape or a surrogate pair.
    if (used + size > part) [parts, used] = [parts + 1, 0];
    used += size;
  }
  return { alphabet, units, parts, left: part - used };
}
