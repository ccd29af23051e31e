import { sep } from 'node:path';
import type { z } from 'zod';
import { crashPoint } from '../crash-points.ts';
import type { JobCeilings } from '../jobs/ceilings.ts';
import { hasJob } from '../jobs/job-folder.ts';
import { jobResult } from '../jobs/job-result.ts';
import { startOrAttach, type AttachOptions } from '../jobs/start-or-attach.ts';
import { decideAll, decisionText } from '../policy/decide.ts';
import type { SandboxPlan } from '../sandbox/plan.ts';
import { headOf, tailOf } from '../store/text.ts';
import { visibleText } from '../tools/text.ts';
import { isReadable } from '../tools/read-access.ts';
import { ToolError, type Tool, type ToolContext, type ToolResult } from '../tools/tool.ts';
import { changeFile, madeBefore } from './file-effect.ts';
import type { CallJournal, ClaimOwner } from './journal.ts';
import { runAlone, StaleAttemptError } from './running-calls.ts';

export { StaleAttemptError } from './running-calls.ts';

/** One call to be run, by one attempt of its activity. */
export interface CallRun {
  readonly tool: Tool;
  /** Validated input. */
  readonly input: z.output<Tool['schema']>;
  readonly context: ToolContext;
  readonly journal: CallJournal;
  readonly owner: ClaimOwner;
  /** Asks the server whether this is the attempt it waits for. */
  mayAct(): Promise<boolean>;
  /** Right before something is written: throws if the process slept meanwhile and the call is another attempt's now. */
  confirmAwake?(): Promise<void>;
  /** Folders no tool may touch, ERRAND_HOME first of all. */
  readonly forbiddenPaths?: readonly string[];
  /** How commands are contained; needed for tools that run as jobs. */
  readonly planSandbox?: () => Promise<SandboxPlan>;
  /** What a command may take. */
  readonly ceilings?: JobCeilings;
  /** Throws while the store cannot take a result. A job goes on meanwhile; the waiting for it must not look like work. */
  checkStore?(): Promise<void>;
  readonly jobs?: Pick<AttachOptions, 'pollMs' | 'supervisorPath'>;
}

/**
 * Runs a call and keeps its result; however often and by however many attempts it is called, the effect happens at most
 * once and the result is the same. News for the model (a denial, a ToolError, a conflict) is a result too. Trouble of
 * the machine is thrown, so that the activity is tried again; an aborted signal rejects with its reason.
 */
export function runCall(run: CallRun): Promise<ToolResult> {
  return runAlone(run.journal.folder, run.context.signal, () => runOnce(run));
}

/** Most UTF-8 bytes of a kept result: what a tool lets through beyond its own limits is cut here. */
export const MAX_KEPT_BYTES = 128 * 1024;

async function runOnce(run: CallRun): Promise<ToolResult> {
  const kept = await run.journal.kept();
  if (kept) return kept;
  run.context.signal.throwIfAborted();
  const result = await answer(run);
  const capped = await withinCap(result, run.context);
  await run.confirmAwake?.();
  crashPoint('keep.before');
  const first = await (run.tool.effect === 'none' ? run.journal.keepMemo(capped) : run.journal.keep(capped));
  crashPoint('keep.after');
  return first;
}

async function answer(run: CallRun): Promise<ToolResult> {
  try {
    const denial = await findDenial(run);
    if (!denial) return await act(run);
    return (run.tool.effect === 'file' ? await madeBefore(run.journal) : undefined) ?? denial;
  } catch (error) {
    if (error instanceof ToolError) return { text: error.message, isError: true };
    throw error;
  }
}

// What has begun was allowed when it began; its outcome is owed to the model.
async function findDenial({
  tool,
  input,
  context,
  journal,
  forbiddenPaths = [],
}: CallRun): Promise<ToolResult | undefined> {
  if (tool.effect === 'job' && hasJob(journal.folder)) return undefined;
  const wanted = await tool.actions(input, context);
  const actions = wanted.filter((action) => !isReadable(context, action));
  const hidden = actions.find(({ path }) => path !== undefined && forbiddenPaths.some((top) => isWithin(path, top)));
  if (hidden) return denial(`Denied: ${hidden.path} belongs to errand itself. Do not repeat this call.`);
  if (actions.length === 0 && wanted.length > 0) return undefined;
  const decision = decideAll(context.policy, actions);
  if (decision.verdict === 'allow') return undefined;
  if (decision.verdict === 'deny') return denial(decisionText(decision));
  return denial(
    `Denied: the rule ${decision.rule} (${decision.owner}) requires approval, and no approval can be given in this ` +
      'run. Do not repeat this call; find another way or report what is missing.',
  );
}

async function act(run: CallRun): Promise<ToolResult> {
  const { tool, input, context, journal } = run;
  switch (tool.effect) {
    case 'none':
      return tool.execute(input, context);
    case 'file':
      await claim(run);
      return changeFile({
        journal,
        roots: context.policy.roots,
        prepare: () => tool.prepare(input, context),
        confirm: () => confirm(run),
      });
    case 'job':
      return runJob(run, { command: tool.command(input), timeoutMs: tool.timeoutMs(input) });
    case 'workflow':
      throw new Error(`${tool.name} is handled by the workflow; it must not reach an activity.`);
  }
}

async function runJob(
  { context, journal, planSandbox, ceilings, jobs, mayAct, checkStore }: CallRun,
  { command, timeoutMs }: { command: string; timeoutMs: number },
): Promise<ToolResult> {
  if (!planSandbox) throw new Error('A job tool needs planSandbox.');
  // A command may run for hours: the question is cheap beside it, and an attempt that slept must not start one.
  if (!hasJob(journal.folder)) await requireCurrent(mayAct);
  const outcome = await startOrAttach(
    { folder: journal.folder, command, cwd: context.workspace, timeoutMs, sandbox: await planSandbox(), ceilings },
    { ...jobs, signal: context.signal, check: checkStore, onProgress: (line) => context.progress(line) },
  );
  return jobResult(outcome, context);
}

async function claim({ journal, owner, mayAct }: CallRun): Promise<void> {
  crashPoint('claim.before');
  const { fresh } = await journal.claim(owner);
  crashPoint('claim.after');
  if (fresh || (await journal.holds(owner))) return;
  await requireCurrent(mayAct);
  await journal.takeOver(owner);
}

async function confirm({ journal, owner, context, confirmAwake }: CallRun): Promise<void> {
  context.signal.throwIfAborted();
  await confirmAwake?.();
  if (!(await journal.holds(owner))) throw new StaleAttemptError('A newer attempt has taken this call over.');
  // The seal keeps an answer for a call whose attempt was given up for lost.
  if (await journal.kept()) throw new StaleAttemptError('This call has been answered already.');
}

async function requireCurrent(mayAct: () => Promise<boolean>): Promise<void> {
  if (!(await mayAct())) throw new StaleAttemptError('The server does not wait for this attempt: nothing was done.');
}

async function withinCap(result: ToolResult, { spill }: ToolContext): Promise<ToolResult> {
  const text = visibleText(result.text);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_KEPT_BYTES) return { ...result, text };
  const spilledTo = await spill(text);
  const half = MAX_KEPT_BYTES / 2 - 512;
  const note = `[${bytes - 2 * half} bytes cut here; the whole result is in ${spilledTo}]`;
  const facts = { ...result.facts, spilledTo };
  return { ...result, text: `${headOf(text, half)}\n${note}\n${tailOf(text, half)}`, facts };
}

function denial(text: string): ToolResult {
  return { text, isError: true };
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder + sep);
}
