import { crashPoint } from '../crash-points.ts';
import { ChangeTakenError, hashFile, replaceFile, sha256, StaleFileError } from '../tools/atomic-write.ts';
import { removeTemporariesOf } from '../tools/temporary-files.ts';
import type { FileChange, ToolResult } from '../tools/tool.ts';
import type { CallJournal, FileIntent } from './journal.ts';
import { StaleAttemptError } from './running-calls.ts';

export interface FileEffect {
  readonly journal: CallJournal;
  readonly roots: readonly string[];
  /** Computes the change from what is there now. */
  prepare(): Promise<FileChange>;
  /** Asked right before anything is written; throws when the call is no longer this attempt's. */
  confirm(): Promise<void>;
}

/**
 * Makes a file change at most once. The intent says what the file is before and after, so an attempt after a crash can
 * tell from the file alone whether the change was made; where it is neither, nothing is overwritten and the model is
 * told. The order matters: this attempt holds the call before it takes the earlier one's temporary file away, and only
 * then looks; the other way round an attempt that was stopped right before its rename could still make it.
 */
export async function changeFile(effect: FileEffect): Promise<ToolResult> {
  const earlier = await effect.journal.readIntent();
  const recovered = earlier && (await recover(earlier, effect));
  if (recovered) return recovered;
  const change = await effect.prepare();
  const intent = toIntent(change);
  await effect.confirm();
  await effect.journal.writeIntent(intent);
  return apply(change, intent, effect);
}

/**
 * The answer for a change that may not be made any more, where an earlier attempt has made it. Undefined: nothing was
 * done, and nothing will be.
 */
export async function madeBefore(journal: CallJournal): Promise<ToolResult | undefined> {
  const intent = await journal.readIntent();
  // Wherever it is: it was inside the roots of then, and is only looked at.
  return intent && outcomeOf(intent, ['/']);
}

async function recover(intent: FileIntent, { journal, roots }: FileEffect): Promise<ToolResult | undefined> {
  await removeTemporariesOf(journal.folder, intent.path, roots);
  return outcomeOf(intent, roots);
}

// Undefined: the file is still as it was before, so the change was not made.
async function outcomeOf(intent: FileIntent, roots: readonly string[]): Promise<ToolResult | undefined> {
  const now = await hashFile(intent.path, roots);
  if (now === intent.postSha256) return intent.result;
  return now === intent.preSha256 ? undefined : conflict(intent);
}

async function apply(
  change: FileChange,
  intent: FileIntent,
  { journal, roots, confirm }: FileEffect,
): Promise<ToolResult> {
  try {
    crashPoint('effect.before');
    await replaceFile(change, roots, { call: journal.folder, confirm });
    crashPoint('effect.after');
    return change.result;
  } catch (error) {
    if (error instanceof ChangeTakenError) throw new StaleAttemptError('A newer attempt has taken this call over.');
    if (!(error instanceof StaleFileError)) throw error;
    // Another attempt of this very call may have been faster; then the file is as it should be.
    const now = await hashFile(change.path, roots);
    return now === intent.postSha256 ? change.result : conflict(intent);
  }
}

function toIntent({ path, preSha256, content, result }: FileChange): FileIntent {
  return { path, preSha256, postSha256: sha256(content), result };
}

function conflict({ path }: FileIntent): ToolResult {
  const text =
    `Conflict: ${path} was changed by someone else while this call was being made, so it was not overwritten. ` +
    'Whether this change was in place for a moment is not known. Read the file again before you decide what to do.';
  return { text, isError: true };
}
