import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { omit } from './json.ts';
import type { Message, Usage } from './wire.ts';
import { NO_USAGE } from './wire.ts';

export type Outcome = 'open' | 'complete' | 'cut' | 'refused' | 'error';

/** One request to POST /v1/messages: noted when it arrives (`open`) and again when it ends. */
export interface LedgerEntry {
  readonly n: number;
  readonly at: string;
  readonly endedAt?: string;
  readonly scenario: string;
  /** The marker in the agent's prompt, as written, at most 200 characters. */
  readonly agentMarker: string;
  readonly turn: number;
  readonly model: string;
  /** sha256 of the canonical JSON of {messages, system, tools}. */
  readonly requestSha256: string;
  /** As received; only in memory, and only if the simulator keeps messages. */
  readonly messages?: readonly Message[];
  readonly outcome: Outcome;
  readonly status: number;
  readonly stopReason: string | null;
  /** What was served: output counts what was sent, also when the stream was cut. */
  readonly usage: Usage;
  readonly errorType?: string;
  /** Why the request was refused. */
  readonly problem?: string;
}

export type Arrival = Omit<LedgerEntry, 'n' | 'at' | 'endedAt' | 'outcome' | 'status' | 'stopReason' | 'usage'>;
export type Ending = Pick<LedgerEntry, 'outcome' | 'status'> &
  Partial<Pick<LedgerEntry, 'stopReason' | 'usage' | 'errorType' | 'problem'>>;

export interface Ledger {
  /** Notes an arrival; call the returned function once, when the request has ended. */
  open(arrival: Arrival): (ending: Ending) => void;
  entries(): LedgerEntry[];
}

/** With a file, each arrival and each ending is one appended line; a file that is there is gone on with. */
export function createLedger(file: string | undefined): Ledger {
  const entries = file === undefined ? [] : readLedgerFile(file);
  const write = (entry: LedgerEntry): void => {
    if (file !== undefined) appendLine(file, entry);
  };
  return {
    entries: () => [...entries],
    open(arrival) {
      const index = entries.length;
      const entry: LedgerEntry = { n: index + 1, at: now(), ...arrival, ...OPEN };
      entries.push(entry);
      write(entry);
      return (ending) => {
        const ended: LedgerEntry = { ...entry, ...ending, endedAt: now() };
        entries[index] = ended;
        write(ended);
      };
    },
  };
}

/** One entry a request, the latest state of each; lines that cannot be parsed (a torn last one) are skipped. */
export function readLedgerFile(file: string): LedgerEntry[] {
  if (!existsSync(file)) return [];
  const byNumber = new Map<number, LedgerEntry>();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const entry = parseLine(line);
    if (entry) byNumber.set(entry.n, entry);
  }
  return [...byNumber.values()].sort((a, b) => a.n - b.n);
}

const OPEN = { outcome: 'open', status: 0, stopReason: null, usage: NO_USAGE } as const;

function appendLine(file: string, entry: LedgerEntry): void {
  appendFileSync(file, `${JSON.stringify(omit(entry, 'messages'))}\n`, { mode: 0o600 });
}

function parseLine(line: string): LedgerEntry | undefined {
  try {
    return JSON.parse(line) as LedgerEntry;
  } catch {
    return undefined;
  }
}

function now(): string {
  return new Date().toISOString();
}
