import { UnexpectedResult, toMarker } from '../../src/simulator/index.ts';
import type { Call, CallResult, Play, Step, View } from '../../src/simulator/index.ts';

/** Name of the scenario that plays the job. */
export const JOB_SCENARIO = 'sweep';
export const LAST_WORDS = 'everything is done';

/** Small enough that the root continues as new a few times. */
export const HISTORY_EVENTS = 60;

type Role = 'root' | 'middle' | 'leaf' | 'below';

/** Calls of one turn. One whose outcome is not known is looked into before the next phase. */
type Phase = readonly Call[];

/** Files the job starts from. */
export const START_FILES: Readonly<Record<string, string>> = Object.fromEntries(
  ['root', 'middle', 'leaf', 'below'].map((role) => [`src/${role}.txt`, `${role} one\n${role} two\n`]),
);

/** What the root puts on its list in its first turn, and never again: it has to come through each continue-as-new. */
export const TODOS = [{ content: 'all parts', status: 'in_progress' }];

/** Prints more than the model is shown, so that its whole output is stored beside the transcript. */
const FLOOD = 'seq 20000';
export const FLOOD_OUTPUT = Array.from({ length: 20_000 }, (_, index) => String(index + 1)).join('\n');

/** A job whose name begins so never ends by itself: a command of its leaf goes on until somebody cancels it. */
export const ENDLESS = 'endless';
const WAIT = 'sleep 600; echo waited in vain';

/** Every line that a shell command of the job adds to a file, once each. */
export const MARKS: readonly { readonly file: string; readonly line: string }[] = [
  ...['root-1', 'root-2', 'middle-1', 'leaf-1', 'leaf-2', 'below-1'].map((line) => ({
    file: `effects-${line.replace(/-.*/, '')}.log`,
    line,
  })),
];

export function jobPrompt(job: string, role: Role = 'root'): string {
  return `Do the ${role} part. ${toMarker(JOB_SCENARIO, { job, role })}`;
}

/**
 * Plays an agent of the job: every kind of call, two levels of children. A pure reading of the conversation, so an agent
 * that is asked again gives the same answer. The only news it accepts are unknown effects of a command: then it looks
 * and does what is missing, as a careful model would.
 */
export const jobScenario: Play = (view) => {
  const phases = phasesOf(view.args.role as Role, view.args.job ?? '');
  const { phase, unknown } = replay(view);
  const calls = unknown.length > 0 ? unknown.map(toRepair) : phases[phase];
  const fault = { delayMs: 60, betweenMs: 8 };
  if (calls === undefined) return { text: view.args.role === 'root' ? LAST_WORDS : `${view.args.role} is done`, fault };
  return { text: `Phase ${phase}.`, calls, fault } satisfies Step;
};

export function isUnknown({ isError, text }: Pick<CallResult, 'isError' | 'text'>): boolean {
  return isError && text.includes('effects unknown');
}

function phasesOf(role: Role, job: string): readonly Phase[] {
  const file = `src/${role}.txt`;
  switch (role) {
    case 'root':
      return [
        [{ name: 'todo_write', input: { todos: TODOS } }, glob(), grep('root'), read(file)],
        [edit(file, 'root one', 'root first'), mark('root-1')],
        [task('look after the middle', job, 'middle'), task('look after the leaf', job, 'leaf')],
        [write('out/report.txt', 'all parts\nare in\n'), read('out/report.txt')],
        [mark('root-2'), read('src/middle.txt')],
        [edit(file, 'root two', 'root second'), grep('second')],
      ];
    case 'middle':
      return [
        [read(file)],
        [edit(file, 'middle one', 'middle first'), mark('middle-1')],
        [task('look after what is below', job, 'below')],
        [write('out/middle.txt', 'middle\n')],
      ];
    case 'leaf':
      return [
        [grep('leaf'), read(file)],
        [mark('leaf-1')],
        ...(job.startsWith(ENDLESS) ? [[{ name: 'bash', input: { command: WAIT, timeout_ms: 900_000 } }]] : []),
        [edit(file, 'leaf two', 'leaf second')],
        [mark('leaf-2'), write('out/deep/leaf.txt', 'leaf\n')],
        [{ name: 'bash', input: { command: FLOOD } }],
      ];
    case 'below':
      return [
        [read(file), glob()],
        [mark('below-1'), edit(file, 'below one', 'below first')],
      ];
  }
}

interface Progress {
  readonly phase: number;
  readonly unknown: readonly CallResult[];
}

/** A turn whose results are all known, first time or after a look, brings the work a phase on. */
function replay(view: View): Progress {
  let progress: Progress = { phase: 0, unknown: [] };
  for (const results of resultsByTurn(view)) {
    const unknown = results.filter((result) => isUnknown(result) && result.name === 'bash');
    const wrong = results.find((result) => result.isError && !unknown.includes(result));
    if (wrong) throw new UnexpectedResult('no error', `${wrong.name} gave the error "${wrong.text.slice(0, 400)}"`);
    progress = { phase: progress.phase + (unknown.length === 0 ? 1 : 0), unknown };
  }
  return progress;
}

function resultsByTurn({ messages, results }: View): CallResult[][] {
  const byId = new Map(results.map((result) => [result.toolUseId, result]));
  return messages.flatMap(({ role, content }) => {
    if (role !== 'user' || typeof content === 'string') return [];
    const found = content.flatMap((block) => byId.get(String(block.tool_use_id)) ?? []);
    return found.length > 0 ? [found] : [];
  });
}

/** Before and after the effect there is time to be killed in. */
function mark(line: string): Call {
  const file = `effects-${line.replace(/-.*/, '')}.log`;
  return { name: 'bash', input: { command: `sleep 0.15; echo ${line} >> ${file}; sleep 0.15; echo made` } };
}

function toRepair({ input }: CallResult): Call {
  const { command } = input as { command: string };
  const [, line, file] = /echo (\S+) >> (\S+?)(?:;|$)/.exec(command) ?? [];
  if (line === undefined || file === undefined) return { name: 'bash', input };
  return { name: 'bash', input: { command: `grep -qx ${line} ${file} || echo ${line} >> ${file}` } };
}

function glob(): Call {
  return { name: 'glob', input: { pattern: 'src/*.txt' } };
}

function grep(pattern: string): Call {
  return { name: 'grep', input: { pattern, path: 'src' } };
}

function read(file: string): Call {
  return { name: 'read', input: { file_path: file } };
}

function edit(file: string, from: string, to: string): Call {
  return { name: 'edit', input: { file_path: file, old_string: from, new_string: to } };
}

function write(file: string, content: string): Call {
  return { name: 'write', input: { file_path: file, content } };
}

function task(description: string, job: string, role: Role): Call {
  return { name: 'task', input: { description, prompt: jobPrompt(job, role) } };
}
