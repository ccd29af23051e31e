import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type Anthropic from '@anthropic-ai/sdk';
import { textOf } from './requests.ts';

type Input = Readonly<Record<string, string>>;

/** What a workspace's tools answer; enough of each to play the scenarios for real. */
export interface Bench {
  readonly client: Anthropic;
  readonly workspace: string;
  /** A tool that answers with an error, and its text. */
  readonly refuse?: string;
  readonly refusal?: string;
  readonly onCall?: (name: string) => void;
}

const NAMES = ['read', 'write', 'edit', 'glob', 'grep', 'bash', 'todo_write', 'task'];
const TOOLS: Anthropic.Tool[] = NAMES.map((name) => ({ name, input_schema: { type: 'object' } }));

/** A loop without any durability: asks, runs the calls, asks again; sub-agents inline. */
export async function runMiniAgent(bench: Bench, prompt: string): Promise<string> {
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: prompt }];
  for (;;) {
    const request = { model: 'sim-1', max_tokens: 8000, tools: TOOLS, messages };
    const reply = await bench.client.messages.stream(request).finalMessage();
    const calls = reply.content.filter((block) => block.type === 'tool_use');
    if (calls.length === 0) return textOf(reply);
    messages.push({ role: 'assistant', content: reply.content as Anthropic.ContentBlockParam[] });
    const results: Anthropic.ToolResultBlockParam[] = [];
    for (const call of calls) results.push(await answer(bench, call));
    messages.push({ role: 'user', content: results });
  }
}

async function answer(bench: Bench, call: Anthropic.ToolUseBlock): Promise<Anthropic.ToolResultBlockParam> {
  bench.onCall?.(call.name);
  try {
    const content = await runTool(bench, call.name, call.input as Input);
    return { type: 'tool_result', tool_use_id: call.id, content };
  } catch (error) {
    return { type: 'tool_result', tool_use_id: call.id, content: String(error), is_error: true };
  }
}

async function runTool(bench: Bench, name: string, input: Input): Promise<string> {
  const path = join(bench.workspace, input.file_path ?? '');
  if (name === bench.refuse) throw new Error(bench.refusal);
  switch (name) {
    case 'read':
      return numbered(readFileSync(path, 'utf8'));
    case 'write':
      writeFileSync(path, input.content ?? '');
      return `Wrote ${path}`;
    case 'edit':
      return edit(path, input.old_string ?? '', input.new_string ?? '');
    case 'glob':
      return sources(bench.workspace)
        .filter((file) => !input.pattern?.includes('csv') || file.includes('csv'))
        .join('\n');
    case 'grep':
      return grep(bench.workspace, new RegExp(input.pattern ?? ''));
    case 'bash':
      return bash(bench.workspace, input.command ?? '');
    case 'task':
      return `[Agent: ${input.description}]\n${await runMiniAgent(bench, input.prompt ?? '')}`;
    case 'todo_write':
      return 'ok';
    default:
      throw new Error(`There is no tool ${name}`);
  }
}

function numbered(text: string): string {
  return text
    .split('\n')
    .map((line, index) => `${String(index + 1).padStart(6)}\t${line}`)
    .join('\n');
}

function edit(path: string, before: string, after: string): string {
  const text = readFileSync(path, 'utf8');
  if (text.split(before).length !== 2) throw new Error(`"${before}" is not there exactly once`);
  writeFileSync(
    path,
    text.replace(before, () => after),
  );
  return `Edited ${path}`;
}

function sources(workspace: string): string[] {
  return ['src', 'test', 'bin'].flatMap((folder) => list(workspace, folder));
}

function list(workspace: string, folder: string): string[] {
  const output = execFileSync('ls', [folder], { cwd: workspace, encoding: 'utf8' });
  return output
    .trim()
    .split('\n')
    .map((file) => `${folder}/${file}`);
}

function grep(workspace: string, pattern: RegExp): string {
  const lines = sources(workspace).flatMap((file) =>
    readFileSync(join(workspace, file), 'utf8')
      .split('\n')
      .map((line, index) => ({ line, place: `${file}:${index + 1}:` })),
  );
  return lines
    .filter(({ line }) => pattern.test(line))
    .map(({ line, place }) => place + line)
    .join('\n');
}

function bash(cwd: string, command: string): string {
  const script = `(${command}) 2>&1; printf '\\nexit code: %d\\n' $?`;
  const env = { ...process.env, NODE_OPTIONS: '' };
  return execFileSync('bash', ['-c', script], { cwd, env, encoding: 'utf8' });
}
