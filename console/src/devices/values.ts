// How is a value entered, and which text does the API take for it?

/** How the value of a type is entered. */
export function inputOf(type: string): { hint: string; attributes: Record<string, string> } {
  switch (type) {
    case "integer":
    case "unsigned_integer":
      return { hint: "a whole number", attributes: { inputMode: "numeric" } };
    case "float":
      return { hint: "a number", attributes: { inputMode: "decimal" } };
    case "time":
      return { hint: "in your time zone", attributes: { type: "datetime-local", step: "1" } };
    case "opaque":
      return { hint: "a file", attributes: { type: "file" } };
    case "objlnk":
    case "objlink":
      return { hint: "object:instance", attributes: { placeholder: "3303:0" } };
    default:
      return { hint: "a text", attributes: {} };
  }
}

/** The text of an entered value, or what is wrong with it. */
export async function dataOf(
  type: string,
  entered: FormDataEntryValue,
): Promise<{ text: string } | { fault: string }> {
  if (typeof entered !== "string") {
    if (entered.size === 0) return { fault: "Choose a file." };
    return { text: base64(new Uint8Array(await entered.arrayBuffer())) };
  }
  const text = type === "string" ? entered : entered.trim();
  switch (type) {
    case "integer":
      return when(/^[+-]?\d+$/.test(text), text, "Enter a whole number, such as -5.");
    case "unsigned_integer":
      return when(/^\d+$/.test(text), text, "Enter a whole number from 0 on.");
    case "float":
      return when(
        text !== "" && Number.isFinite(Number(text)),
        text,
        "Enter a number, such as 21.5.",
      );
    case "time": {
      const time = new Date(text);
      if (Number.isNaN(time.getTime())) return { fault: "Enter a date and a time." };
      return { text: time.toISOString() };
    }
    case "objlnk":
    case "objlink":
      return when(
        /^\d{1,5}:\d{1,5}$/.test(text),
        text,
        "Enter an object and an instance, such as 3303:0.",
      );
    default:
      return { text };
  }
}

function when(isValid: boolean, text: string, fault: string): { text: string } | { fault: string } {
  return isValid ? { text } : { fault };
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
