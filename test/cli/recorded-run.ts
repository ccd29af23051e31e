import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { NO_USAGE, type Usage } from '../../src/protocol.ts';
import { newTranscriptStem, transcriptFile } from '../../src/store/layout.ts';

/** Writes the transcripts of a run, record by record, as a worker would. */
export class RecordedRun {
  readonly home: string;
  readonly runId: string;
  readonly stem: string;
  readonly #tips = new Map<string, string>();
  #nowMs = Date.parse('2026-11-30T12:00:00Z');

  constructor(home: string, runId: string, startedAt = new Date('2026-11-30T12:00:00Z')) {
    this.home = home;
    this.runId = runId;
    this.stem = newTranscriptStem(runId, startedAt);
    this.#nowMs = startedAt.getTime();
  }

  file(agentId = this.runId): string {
    return transcriptFile(this.home, { runId: this.runId, agentId, transcript: this.stem });
  }

  start(fields: Record<string, unknown> = {}, agentId = this.runId): void {
    const isRoot = agentId === this.runId;
    this.append(agentId, 'session_meta', {
      errandVersion: '0.1.0',
      runId: this.runId,
      agentId,
      epoch: 0,
      branch: '',
      ...(!isRoot && { parentAgent: { agentId: this.runId, callId: 't1.0' } }),
      depth: isRoot ? 0 : 1,
      hops: 2,
      agentType: isRoot ? 'root' : 'explore',
      description: isRoot ? 'Do the job' : 'find the cause',
      workspace: '/workspace',
      model: 'sim-1',
      objects: { policy: '', agentType: '', systemPrompt: '', toolSchemas: '' },
      promptSha256: '',
      clusterId: 'c',
      namespace: 'default',
      workflowId: isRoot ? this.runId : `${this.runId}/${agentId}`,
      workflowRunId: 'w',
      trace: { traceId: '0'.repeat(32), spanId: '0'.repeat(16) },
      ...fields,
    });
  }

  reply(turn: number, text: string, calls: readonly Record<string, unknown>[] = [], agentId = this.runId): void {
    const blocks = calls.map(({ callId }) => ({
      type: 'tool_use',
      id: `toolu_${String(callId)}`,
      name: 'read',
      input: {},
    }));
    const content = [...(text === '' ? [] : [{ type: 'text', text }]), ...blocks];
    this.append(agentId, 'message', {
      role: 'assistant',
      turn,
      content,
      stop: 'end_turn',
      messageId: 'm',
      model: 'sim-1',
      calls,
    });
  }

  seal(
    turn: number,
    results: readonly { callId: string; text: string; isError?: boolean }[],
    more: Record<string, unknown> = {},
    agentId = this.runId,
  ): void {
    const blocks = results.map(({ callId, text, isError }) => ({
      type: 'tool_result',
      tool_use_id: `toolu_${callId}`,
      content: text,
      ...(isError && { is_error: true }),
    }));
    const sealed = results.map(({ callId, isError = false }) => ({ callId, isError, fingerprint: 'f', streak: 1 }));
    const texts = (more['texts'] as string[] | undefined) ?? [];
    const content = [...blocks, ...texts.map((text) => ({ type: 'text', text }))];
    this.append(agentId, 'message', {
      role: 'user',
      turn,
      content,
      ...(sealed.length > 0 && { results: sealed }),
      ...more,
    });
  }

  usage(turn: number, attempt: number, fields: Record<string, unknown> = {}, agentId = this.runId): void {
    const usage: Usage = { ...NO_USAGE, inputTokens: 100, outputTokens: 20, requests: 1 };
    this.append(agentId, 'usage', { turn, attempt, settled: true, outcome: 'complete', usage, ...fields });
  }

  end(status: string, turns: number, fields: Record<string, unknown> = {}, agentId = this.runId): void {
    const usage: Usage = { ...NO_USAGE, inputTokens: 100, outputTokens: 20, requests: 1 };
    this.append(agentId, 'end', { epoch: 0, status, turns, usage: { own: usage, subtree: usage }, ...fields });
  }

  append(agentId: string, type: string, fields: Record<string, unknown>): void {
    const count = this.#tips.size + 1;
    const id = `${agentId}:0::${String(fields['turn'] ?? 0)}:${type}${count}${this.#nowMs}`;
    this.#nowMs += 100;
    const at = new Date(this.#nowMs).toISOString();
    const record = { v: 1, id, parent: this.#tips.get(agentId) ?? null, at, type, ...fields };
    this.#tips.set(agentId, id);
    this.raw(`${JSON.stringify(record)}\n`, agentId);
  }

  raw(text: string, agentId = this.runId): void {
    const file = this.file(agentId);
    mkdirSync(dirname(file), { recursive: true });
    appendFileSync(file, text);
  }
}
