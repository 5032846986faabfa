// How is a large file imported? In parts, each a request of its own, cut between two lines: so there is
// progress, and an import that is stopped has ended after a part.

/** Lines of a part. */
const linesMax = 2_000;

/** Bytes that are looked at in one go. */
const stepBytes = 1_048_576;

/** A part of a file: its bytes, and the lines before it. */
export interface Part {
  from: number;
  to: number;
  linesBefore: number;
}

/** The parts of a file; the first line of a CSV file, which names the columns, is in none. */
export async function* partsOf(file: Blob, isCsv: boolean): AsyncGenerator<Part, void> {
  const scan = new Scan(isCsv);
  for (let at = 0; at < file.size; at += stepBytes) {
    const bytes = new Uint8Array(await file.slice(at, at + stepBytes).arrayBuffer());
    yield* scan.take(bytes, at);
  }
  if (scan.from < file.size) yield { ...scan.begun(), to: file.size };
}

/** Where the line that names the columns ends. */
export async function headerEnd(file: Blob): Promise<number> {
  const bytes = new Uint8Array(await file.slice(0, stepBytes).arrayBuffer());
  const end = bytes.indexOf(lineFeed);
  return end === -1 ? Math.min(file.size, stepBytes) : end + 1;
}

const lineFeed = 0x0a;
const quote = 0x22;

class Scan {
  from = 0;
  private lines = 0;
  private linesBefore = 0;
  /** A line that ends within quotes goes on in the next one. */
  private isQuoted = false;
  private hasHeader: boolean;

  constructor(private readonly isCsv: boolean) {
    this.hasHeader = isCsv;
  }

  begun(): Omit<Part, "to"> {
    return { from: this.from, linesBefore: this.linesBefore };
  }

  *take(bytes: Uint8Array, at: number): Generator<Part, void> {
    for (const [index, byte] of bytes.entries()) {
      if (this.isCsv && byte === quote) this.isQuoted = !this.isQuoted;
      if (byte !== lineFeed) continue;
      this.lines += 1;
      if (this.isQuoted) continue;
      const to = at + index + 1;
      if (this.hasHeader) {
        this.hasHeader = false;
        this.begin(to);
      } else if (this.lines - this.linesBefore >= linesMax) {
        yield { ...this.begun(), to };
        this.begin(to);
      }
    }
  }

  private begin(from: number): void {
    [this.from, this.linesBefore] = [from, this.lines];
  }
}
