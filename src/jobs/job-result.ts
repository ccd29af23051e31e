import type { ToolContext, ToolResult } from '../tools/tool.ts';
import type { OverCeiling } from './ceilings.ts';
import { readOutput, type JobOutput } from './job-output.ts';
import { cleanLongOutput, cutMiddle } from './output-text.ts';
import type { JobOutcome } from './start-or-attach.ts';

/** Most characters of output the model is shown; the rest is stored. */
export const MAX_OUTPUT_CHARACTERS = 30_000;

/** What the model is told about a job: its output, and as last line how it ended. */
export async function jobResult(outcome: JobOutcome, context: Pick<ToolContext, 'spill'>): Promise<ToolResult> {
  const { exit, folder, caps } = outcome;
  const shown = await oneAtATime(async () => {
    const output = folder === undefined ? NO_OUTPUT : readOutput(folder, caps, exit.totalBytes || undefined);
    return fit(await wholeText(output), context);
  });
  const body = shown.text === '' ? '(no output)' : shown.text;
  const text = [body, ...notes(outcome), ending(outcome)].join('\n');
  const facts = { exitCode: exit.exitCode ?? undefined, spilledTo: shown.spilledTo };
  const isStopped = exit.timedOut || exit.interrupted || exit.cancelled || exit.outputCapped;
  const isError = isStopped || exit.overCeiling !== undefined || exit.notStarted !== undefined;
  return { text, isError, facts };
}

const NO_OUTPUT: JobOutput = { head: Buffer.alloc(0), tail: Buffer.alloc(0), totalBytes: 0 };

// A flood takes a hundred megabytes on its way to text: many that end together must not take them all at once.
let lastTurn: Promise<unknown> = Promise.resolve();

function oneAtATime<Result>(work: () => Promise<Result>): Promise<Result> {
  const turn = lastTurn.then(work);
  lastTurn = turn.catch(() => {
    // Whoever asked for it hears of it; the next one has nothing to do with it.
  });
  return turn;
}

async function wholeText({ head, tail, totalBytes }: JobOutput): Promise<string> {
  const leftOut = totalBytes - head.length - tail.length;
  if (leftOut <= 0) return (await cleanLongOutput(Buffer.concat([head, tail]))).trimEnd();
  const note = `[${leftOut} bytes of ${totalBytes} were not kept]`;
  return `${await cleanLongOutput(head)}\n${note}\n${await cleanLongOutput(tail)}`.trimEnd();
}

async function fit(
  whole: string,
  { spill }: Pick<ToolContext, 'spill'>,
): Promise<{ text: string; spilledTo?: string }> {
  const ends = cutMiddle(whole, MAX_OUTPUT_CHARACTERS);
  if (!ends) return { text: whole };
  const spilledTo = await spill(whole);
  const note = `[${ends.cut} characters cut here; the whole output is in ${spilledTo}]`;
  return { text: `${ends.head}\n${note}\n${ends.tail}`, spilledTo };
}

/** Last line of the result of a command that was cancelled. */
export const CANCELLED_JOB = 'cancelled; the whole process tree was killed; effects unknown';

function notes({ exit, caps }: JobOutcome): readonly string[] {
  const found: string[] = [];
  if (exit.outputCapped) found.push(`killed: it wrote more than ${caps.flowBytes} bytes of output`);
  if (exit.outOfMemory) {
    found.push('this machine ran out of memory meanwhile: the kernel killed processes, probably of this command');
  }
  if (exit.problem) found.push(`trouble: ${exit.problem}`);
  if (exit.movedAside.length > 0) {
    found.push(`removed, because commands may not create them: ${exit.movedAside.join(', ')}`);
  }
  return found;
}

function ending({ exit, timeoutMs }: JobOutcome): string {
  if (exit.notStarted !== undefined) return `not started: ${exit.notStarted}`;
  if (exit.cancelled) return CANCELLED_JOB;
  if (exit.interrupted) return 'interrupted; effects unknown; the output above is what was written so far';
  if (exit.overCeiling) return `ended: ${excess(exit.overCeiling)}; the whole process tree was killed`;
  if (exit.timedOut) return `timed out after ${timeoutMs / 1000} s; the whole process tree was killed`;
  if (exit.signal !== null && exit.exitCode === null) return `killed by signal ${exit.signal}`;
  if (exit.signal !== null) return `exit code: ${exit.exitCode} (killed by signal ${exit.signal})`;
  return `exit code: ${exit.exitCode}`;
}

function excess({ of, limit }: OverCeiling): string {
  if (of === 'processes') return `it had more than ${limit} processes (limits.commandProcesses)`;
  return `it used more than ${inBinaryUnits(limit)} of memory (limits.commandMemoryBytes)`;
}

function inBinaryUnits(bytes: number): string {
  const [size, unit] = bytes < 1024 ** 3 ? [bytes / 1024 ** 2, 'MiB'] : [bytes / 1024 ** 3, 'GiB'];
  return `${Number(size.toFixed(1))} ${unit}`;
}
