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
  header: Header;
}

/** What names the columns of a CSV file, and belongs before each of its parts: its bytes and its lines. */
export interface Header {
  end: number;
  lines: number;
}

/** The parts of a file. The header of a CSV file is in none of them; a file without more has no part. */
export async function* partsOf(file: Blob, isCsv: boolean): AsyncGenerator<Part, void> {
  const scan = new Scan(isCsv);
  for (let at = 0; at < file.size; at += stepBytes) {
    const bytes = new Uint8Array(await file.slice(at, at + stepBytes).arrayBuffer());
    yield* scan.take(bytes, at);
  }
  yield* scan.end(file.size);
}

const lineFeed = 0x0a;
const quote = 0x22;

class Scan {
  private from = 0;
  private lines = 0;
  private linesBefore = 0;
  /** A line that ends within quotes goes on in the next one. */
  private isQuoted = false;
  /** None until its end was seen. */
  private header: Header | undefined;

  constructor(private readonly isCsv: boolean) {
    this.header = isCsv ? undefined : { end: 0, lines: 0 };
  }

  *take(bytes: Uint8Array, at: number): Generator<Part, void> {
    for (const [index, byte] of bytes.entries()) {
      if (this.isCsv && byte === quote) this.isQuoted = !this.isQuoted;
      if (byte !== lineFeed) continue;
      this.lines += 1;
      if (this.isQuoted) continue;
      const to = at + index + 1;
      if (this.header === undefined) {
        this.header = { end: to, lines: this.lines };
        this.begin(to);
      } else if (this.lines - this.linesBefore >= linesMax) {
        yield* this.end(to);
        this.begin(to);
      }
    }
  }

  /** The part that ends here, if there is one. */
  *end(to: number): Generator<Part, void> {
    const { from, linesBefore, header } = this;
    if (header !== undefined && from < to) yield { from, to, linesBefore, header };
  }

  private begin(from: number): void {
    [this.from, this.linesBefore] = [from, this.lines];
  }
}
