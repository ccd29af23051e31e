import type { Transcript } from './transcript.ts';

/** Text of the transcripts kept in memory by one process. */
const CACHE_BYTES = 64 * 1024 * 1024;

export interface OpenOptions {
  /** Make a missing file instead of failing. */
  readonly create?: boolean;
}

/**
 * Transcripts that were read a moment ago, least recently used out first, so that a turn reads only what is new and
 * memory does not grow with the number of agents. The one asked for last always stays. An activity may go on using a
 * transcript that fell out: correctness never rests on sharing an instance.
 */
export class TranscriptCache {
  readonly #openFile: (file: string, options: OpenOptions) => Promise<Transcript>;
  readonly #maxBytes: number;
  /** Oldest use first. */
  readonly #byFile = new Map<string, Promise<Transcript>>();
  readonly #loaded = new Map<string, Transcript>();

  constructor(openFile: (file: string, options: OpenOptions) => Promise<Transcript>, maxBytes = CACHE_BYTES) {
    this.#openFile = openFile;
    this.#maxBytes = maxBytes;
  }

  /** Bytes of transcript text held now. */
  get bytes(): number {
    let sum = 0;
    for (const transcript of this.#loaded.values()) sum += transcript.bytes;
    return sum;
  }

  get files(): string[] {
    return [...this.#byFile.keys()];
  }

  /** The up-to-date transcript; all activities of the process that ask for the file share it. */
  async open(file: string, options: OpenOptions = {}): Promise<Transcript> {
    const known = this.#byFile.get(file);
    const opening = known ?? this.#load(file, options);
    this.#byFile.delete(file);
    this.#byFile.set(file, opening);
    try {
      const transcript = await opening;
      if (known !== undefined) await transcript.refresh();
      return transcript;
    } catch (error) {
      this.#drop(file, opening);
      throw error;
    } finally {
      this.#evict();
    }
  }

  async #load(file: string, options: OpenOptions): Promise<Transcript> {
    const transcript = await this.#openFile(file, options);
    this.#loaded.set(file, transcript);
    return transcript;
  }

  #evict(): void {
    for (const file of this.#byFile.keys()) {
      if (this.bytes <= this.#maxBytes || this.#byFile.size <= 1) return;
      this.#byFile.delete(file);
      this.#loaded.delete(file);
    }
  }

  #drop(file: string, opening: Promise<Transcript>): void {
    if (this.#byFile.get(file) !== opening) return;
    this.#byFile.delete(file);
    this.#loaded.delete(file);
  }
}
