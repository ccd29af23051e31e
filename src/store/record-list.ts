import { HeadTracker } from './chain.ts';
import type { Line } from './lines.ts';
import { isKnownType, parseRecord } from './parse.ts';
import { RECORD_VERSION } from './records.ts';
import type { TranscriptRecord } from './records.ts';

/** What a reader passed over (`lines`, `bytes`) or kept without knowing it (`newer`: later version or unknown type). */
export interface Skipped {
  readonly lines: number;
  readonly bytes: number;
  readonly newer: number;
}

/** Records as they come out of a file, in its order; the first one with an id wins. */
export class RecordList {
  readonly records: TranscriptRecord[] = [];
  readonly #byId = new Map<string, TranscriptRecord>();
  #head = new HeadTracker();
  #skipped: Skipped = { lines: 0, bytes: 0, newer: 0 };

  get skipped(): Skipped {
    return this.#skipped;
  }

  get tip(): string | null {
    return this.#head.head?.id ?? null;
  }

  get(id: string): TranscriptRecord | undefined {
    return this.#byId.get(id);
  }

  /** Takes a whole line in. Empty lines are what the repair of a tail leaves behind; they count as nothing. */
  addLine(line: Line): void {
    if (line.bytes === 0) return;
    const record = line.text && parseRecord(line.text);
    if (record === undefined) this.#skip(line.bytes);
    else this.add(record);
  }

  add(record: TranscriptRecord): void {
    if (this.#byId.has(record.id)) return;
    this.#byId.set(record.id, record);
    this.records.push(record);
    this.#head.add(record);
    if (record.v > RECORD_VERSION || !isKnownType(record.type)) {
      this.#skipped = { ...this.#skipped, newer: this.#skipped.newer + 1 };
    }
  }

  clear(): void {
    this.records.length = 0;
    this.#byId.clear();
    this.#head = new HeadTracker();
    this.#skipped = { lines: 0, bytes: 0, newer: 0 };
  }

  #skip(bytes: number): void {
    this.#skipped = { ...this.#skipped, lines: this.#skipped.lines + 1, bytes: this.#skipped.bytes + bytes };
  }
}
