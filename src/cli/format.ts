import type { Todo, Usage } from '../protocol.ts';

/** `950`, `12.3k`, `4.1M`. */
export function formatTokens(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_950) return `${(tokens / 1000).toFixed(1)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

export function totalTokens(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

export function formatCost(costUsd: number | null): string {
  return costUsd === null ? 'no price known' : `$${costUsd.toFixed(4)}`;
}

/** `8.2s`, `3m 04s`, `2h 05m`, `3d 4h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${pad(Math.floor(seconds % 60))}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h ${pad(minutes % 60)}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** `3 requests · 1.2k in · 300 out · 12.0k from cache · $0.0123`. */
export function formatUsage(usage: Usage): string {
  const parts = [
    `${usage.requests} request${usage.requests === 1 ? '' : 's'}`,
    `${formatTokens(usage.inputTokens)} in`,
    `${formatTokens(usage.outputTokens)} out`,
    ...(usage.cacheReadTokens > 0 ? [`${formatTokens(usage.cacheReadTokens)} from cache`] : []),
    ...(usage.cacheWriteTokens > 0 ? [`${formatTokens(usage.cacheWriteTokens)} to cache`] : []),
    formatCost(usage.costUsd),
  ];
  return parts.join(' · ');
}

export function formatTurns(turns: number): string {
  return `${turns} turn${turns === 1 ? '' : 's'}`;
}

/** `1 line`, `3 more lines`. */
export function formatLines(lines: number, which = ''): string {
  return [lines, ...(which === '' ? [] : [which]), `line${lines === 1 ? '' : 's'}`].join(' ');
}

/** `1 of 3 done · now: write the report`. */
export function formatTodos(todos: readonly Todo[]): string {
  const done = todos.filter((todo) => todo.status === 'completed').length;
  const current = todos.find((todo) => todo.status === 'in_progress');
  return `${done} of ${todos.length} done${current ? ` · now: ${current.content}` : ''}`;
}

/** Rows of equally wide columns; the last one is left as it is. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>((found, row) => row.map((cell, i) => Math.max(found[i] ?? 0, cell.length)), []);
  const line = (row: readonly string[]) =>
    row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)));
  return rows.map((row) => line(row).join('  ').trimEnd()).join('\n');
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}
