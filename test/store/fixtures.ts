import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'vite';
import { onTestFinished } from 'vitest';
import { NO_USAGE } from '../../src/protocol.ts';
import type { Usage } from '../../src/protocol.ts';
import { newTranscriptStem, rootTranscriptFile } from '../../src/store/layout.ts';
import { recordId } from '../../src/store/records.ts';
import type { AgentMeta, TranscriptRecord } from '../../src/store/records.ts';
import type { RecordDraft } from '../../src/store/transcript.ts';

export const RUN_ID = 'fix-the-parser-ab12cd';
export const CHILD_ID = '0123456789ab';
export const STARTED = new Date('2026-11-30T17:49:36.000Z');
export const STEM = newTranscriptStem(RUN_ID, STARTED);
export const ROOT = { runId: RUN_ID, agentId: RUN_ID, transcript: STEM };
export const CHILD = { ...ROOT, agentId: CHILD_ID };

/** A fresh folder that goes away with the test. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'errand-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function tokens(inputTokens: number, outputTokens: number): Usage {
  return { ...NO_USAGE, inputTokens, outputTokens, requests: 1, costUsd: null };
}

export interface Where {
  readonly agentId?: string;
  readonly epoch?: number;
  readonly branch?: string;
  readonly turn?: number;
  readonly parent?: string | null;
}

export function idOf({ agentId = RUN_ID, epoch = 0, branch = '', turn = 0 }: Where, slot: string): string {
  return recordId({ agentId, epoch, branch, turn }, slot);
}

export function session(where: Where & { runId?: string } = {}): RecordDraft {
  const { runId = RUN_ID, agentId = RUN_ID } = where;
  const isRoot = runId === agentId;
  return {
    id: idOf(where, 'meta'),
    type: 'session_meta',
    errandVersion: '0.1.0',
    runId,
    agentId,
    epoch: where.epoch ?? 0,
    branch: where.branch ?? '',
    ...(!isRoot && { parentAgent: { agentId: runId, callId: 't1.0' } }),
    depth: isRoot ? 0 : 1,
    hops: 2,
    agentType: 'general-purpose',
    description: 'fix the parser',
    workspace: '/somewhere',
    model: 'claude-test',
    objects: { policy: 'a', agentType: 'b', systemPrompt: 'c', toolSchemas: 'd' },
    limits: { maxTurns: 200, timeoutMs: 3_600_000, outageMs: 86_400_000 },
    promptSha256: 'e',
    clusterId: 'cluster',
    namespace: 'default',
    workflowId: isRoot ? runId : `${runId}/${agentId}`,
    workflowRunId: 'run-1',
    trace: { traceId: '1'.repeat(32), spanId: '2'.repeat(16) },
  };
}

export function user(where: Where, text = 'please'): RecordDraft {
  const { turn = 1, parent } = where;
  const content = [{ type: 'text', text }];
  return { id: idOf({ ...where, turn }, 'user'), type: 'message', role: 'user', turn, content, ...given(parent) };
}

export function reply(where: Where, text = 'done'): RecordDraft {
  const { turn = 1, parent } = where;
  return {
    id: idOf({ ...where, turn }, 'reply'),
    type: 'message',
    role: 'assistant',
    turn,
    content: [{ type: 'text', text }],
    stop: 'end_turn',
    messageId: 'msg_1',
    model: 'claude-test',
    calls: [],
    ...given(parent),
  };
}

export function event(where: Where, name: string, data: Readonly<Record<string, unknown>> = {}): RecordDraft {
  return { id: idOf(where, name), type: 'event', turn: where.turn ?? 0, name, data, ...given(where.parent) };
}

export function attempt(
  where: Where,
  number: number,
  more: { run?: string; activityAttempt?: number } = {},
): RecordDraft {
  return {
    id: idOf({ ...where, turn: where.turn ?? 1 }, `attempt.${number}`),
    type: 'attempt',
    turn: where.turn ?? 1,
    attempt: number,
    model: 'claude-test',
    maxTokens: 1000,
    inputTokensMax: 500,
    requestSha256: 'f',
    workflowRunId: more.run ?? 'run-1',
    activityAttempt: more.activityAttempt ?? 1,
    writer: 'w',
  };
}

export function usage(
  where: Where,
  number: number,
  spent: { settled?: boolean; usage?: Usage; slot?: string } = {},
): RecordDraft {
  const { settled = true } = spent;
  return {
    id: idOf({ ...where, turn: where.turn ?? 1 }, spent.slot ?? `usage.${number}`),
    type: 'usage',
    turn: where.turn ?? 1,
    attempt: number,
    settled,
    outcome: settled ? 'complete' : 'cut',
    usage: spent.usage ?? tokens(100, 10),
  };
}

export function end(where: Where & { status?: 'completed' | 'failed' } = {}, own = tokens(100, 10)): RecordDraft {
  const { epoch = 0, status = 'completed' } = where;
  return {
    id: idOf(where, 'end'),
    type: 'end',
    epoch,
    status,
    turns: 1,
    usage: { own, subtree: own },
    error: 'because',
  };
}

/** Records as one writer would have stored them, without a file. */
export function toRecords(drafts: readonly RecordDraft[]): TranscriptRecord[] {
  return drafts.map((draft, i) => ({
    v: 1,
    at: '2026-11-30T17:49:36.000Z',
    ...draft,
    parent: draft.parent === undefined ? (drafts[i - 1]?.id ?? null) : draft.parent,
  }));
}

export function toText(drafts: readonly RecordDraft[]): string {
  return toRecords(drafts)
    .map((record) => `${JSON.stringify(record)}\n`)
    .join('');
}

export function meta(more: Partial<AgentMeta> = {}): AgentMeta {
  return {
    v: 1,
    agentId: RUN_ID,
    parentAgentId: null,
    runId: RUN_ID,
    callId: null,
    workflowId: RUN_ID,
    agentType: 'general-purpose',
    description: 'fix the parser',
    depth: 0,
    traceId: '1'.repeat(32),
    spanId: '2'.repeat(16),
    status: 'completed',
    startedAt: STARTED.toISOString(),
    endedAt: STARTED.toISOString(),
    turns: 1,
    usage: { own: tokens(100, 10), subtree: tokens(100, 10) },
    error: null,
    ...more,
  };
}

/** A run whose only file is its root transcript; answers its stem. */
export async function writeRun(home: string, runId: string, started: Date): Promise<string> {
  const stem = newTranscriptStem(runId, started);
  await putFile(rootTranscriptFile(home, stem), toText([session({ runId, agentId: runId })]));
  return stem;
}

export async function putFile(file: string, content: string | Buffer): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, content);
}

/** Bundles a script of `scripts/` for plain Node, so that a test can run it as a process of its own. */
export async function bundleScript(name: string, outDir: string): Promise<string> {
  const entry = fileURLToPath(new URL(`scripts/${name}.ts`, import.meta.url));
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      target: 'node20',
      ssr: entry,
      outDir,
      emptyOutDir: false,
      rollupOptions: { output: { entryFileNames: '[name].mjs' } },
    },
  });
  return join(outDir, `${name}.mjs`);
}

export const run = promisify(execFile);

function given(parent: string | null | undefined): { parent?: string | null } {
  return parent === undefined ? {} : { parent };
}
