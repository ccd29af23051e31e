import { blocksOf } from '../wire.ts';
import type { Block, Message } from '../wire.ts';

/** Consecutive messages of one role, as the API merges them. */
interface Group {
  readonly role: string;
  /** Index of its first message, for messages to the reader. */
  readonly index: number;
  readonly blocks: readonly Block[];
}

/** Every tool_use has exactly one result, in the next user message, before anything else there. */
export function pairingProblem(messages: readonly Message[]): string | undefined {
  const groups = merge(messages);
  return (
    duplicateUseProblem(groups) ??
    firstProblem(groups, (group, index) => unansweredProblem(group, groups[index + 1])) ??
    firstProblem(groups, (group, index) => strayResultProblem(group, groups[index - 1]))
  );
}

function merge(messages: readonly Message[]): Group[] {
  const groups: { role: string; index: number; blocks: Block[] }[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    const last = groups.at(-1);
    if (last?.role === role) last.blocks.push(...blocksOf(content));
    else groups.push({ role, index, blocks: [...blocksOf(content)] });
  }
  return groups;
}

function firstProblem(
  groups: readonly Group[],
  check: (group: Group, index: number) => string | undefined,
): string | undefined {
  for (const [index, group] of groups.entries()) {
    const problem = check(group, index);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function duplicateUseProblem(groups: readonly Group[]): string | undefined {
  const seen = new Set<string>();
  return firstProblem(groups, (group) => {
    for (const id of useIds(group)) {
      if (seen.has(id)) return `messages.${group.index}: \`tool_use\` ids must be unique, but ${id} appears twice`;
      seen.add(id);
    }
    return undefined;
  });
}

function unansweredProblem(group: Group, next: Group | undefined): string | undefined {
  const answered = new Set(next?.role === 'user' ? leadingResultIds(next) : []);
  const open = useIds(group).filter((id) => !answered.has(id));
  if (open.length === 0) return undefined;
  return (
    `messages.${group.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
    `${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block at the start of the next message.`
  );
}

function strayResultProblem(group: Group, previous: Group | undefined): string | undefined {
  const asked = new Set(previous?.role === 'assistant' ? useIds(previous) : []);
  const seen = new Set<string>();
  for (const id of resultIds(group.blocks)) {
    if (!asked.has(id)) {
      return (
        `messages.${group.index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
        'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
      );
    }
    if (seen.has(id)) return `messages.${group.index}: each tool_use must have a single result, but ${id} has several`;
    seen.add(id);
  }
  return undefined;
}

function useIds(group: Group): string[] {
  return group.blocks.filter((block) => block.type === 'tool_use').map((block) => String(block.id));
}

function resultIds(blocks: readonly Block[]): string[] {
  return blocks.filter((block) => block.type === 'tool_result').map((block) => String(block.tool_use_id));
}

/** Results after other blocks do not count as an answer. */
function leadingResultIds(group: Group): string[] {
  const end = group.blocks.findIndex((block) => block.type !== 'tool_result');
  return resultIds(end < 0 ? group.blocks : group.blocks.slice(0, end));
}
