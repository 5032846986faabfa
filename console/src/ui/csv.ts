// How is a table written for spreadsheets (RFC 4180)?

/** A CSV text of rows. A text that a spreadsheet would compute begins with an apostrophe. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map(field).join(",") + "\r\n").join("");
}

function field(text: string): string {
  const isFormula = /^[=@\t\r]|^[+-](?![\d.])/.test(text);
  const plain = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** Has the browser save a CSV text as a file. */
export function saveAs(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  // The browser reads it after the click.
  window.setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
