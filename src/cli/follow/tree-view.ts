import { colors as pc } from '../colors.ts';
import type { AgentStatus, Todo } from '../../protocol.ts';
import { formatDuration, formatLines, formatTodos, formatTokens, totalTokens } from '../format.ts';
import type { OutputStream } from '../io.ts';
import { cutToWidth, oneLine, wrapToWidth } from '../text.ts';
import { failedWords, retryWords, type AgentEvent, type FollowEvent } from './events.ts';
import type { FollowView } from './view.ts';

/** A tree that is redrawn in place, one line an agent: for a terminal. */
export function createTreeView(output: OutputStream): FollowView {
  const tree = new LiveTree();
  const region = new RedrawnRegion(output);
  const draw = () => region.draw(tree.lines(output.columns ?? 80, (output.rows ?? 24) - 2, Date.now()));
  return {
    show: (event) => tree.take(event),
    tick: draw,
    print: (line) => region.print(line),
    close: () => {
      draw();
      region.leave();
    },
  };
}

interface TreeAgent {
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly description: string;
  readonly agentType: string;
  readonly startedAtMs: number;
  endedAtMs?: number;
  status: AgentStatus | 'running';
  turn: number;
  tokens: number;
  lastStep: string;
  todos: readonly Todo[];
}

/** What the tree shows, kept apart from how it is drawn. */
export class LiveTree {
  readonly #agents = new Map<string, TreeAgent>();
  #waiting = '';

  take(event: FollowEvent): void {
    if (event.type === 'waiting') this.#waiting = event.text;
    else if (event.type === 'started') this.#start(event);
    else update(this.#agents.get(event.agentId), event);
  }

  /** At most `maxLines`; agents that have ended give way first. */
  lines(columns: number, maxLines: number, nowMs: number): readonly string[] {
    const roots = [...this.#agents.values()].filter(({ parentAgentId }) => !this.#agents.has(parentAgentId ?? ''));
    const all = roots.flatMap((agent) => this.#branch(agent, ''));
    // Not cut: its end may say what to do.
    const waiting = this.#waiting === '' ? [] : wrapToWidth(oneLine(this.#waiting, 300), columns - 1);
    const tail = waiting.map((line) => pc.yellow(line));
    const shown = fit(all, Math.max(1, maxLines - tail.length - 1));
    const hidden = all.length - shown.length;
    const more = hidden > 0 ? [pc.dim(`… ${formatLines(hidden, 'more')}; errand show has them all`)] : [];
    return [...shown.map(({ agent, indent }) => agentLine(agent, { indent, columns, nowMs })), ...more, ...tail];
  }

  #start({ agentId, parentAgentId, description, agentType, at }: Extract<AgentEvent, { type: 'started' }>): void {
    if (this.#agents.has(agentId)) return;
    const fresh = { status: 'running', turn: 0, tokens: 0, lastStep: 'starting', todos: [] } as const;
    const name = { description: oneLine(description, 60), agentType: oneLine(agentType, 30) };
    this.#agents.set(agentId, { agentId, parentAgentId, ...name, startedAtMs: Date.parse(at), ...fresh });
  }

  #branch(agent: TreeAgent, indent: string): readonly TreeLine[] {
    const children = [...this.#agents.values()].filter(({ parentAgentId }) => parentAgentId === agent.agentId);
    return [{ agent, indent }, ...children.flatMap((child) => this.#branch(child, `${indent}  `))];
  }
}

interface TreeLine {
  readonly agent: TreeAgent;
  readonly indent: string;
}

function fit(lines: readonly TreeLine[], maxLines: number): readonly TreeLine[] {
  if (lines.length <= maxLines) return lines;
  const running = lines.filter(({ agent }) => agent.status === 'running');
  return running.slice(0, Math.max(1, maxLines - 1));
}

function update(agent: TreeAgent | undefined, event: Exclude<AgentEvent, { type: 'started' }>): void {
  if (agent === undefined) return;
  switch (event.type) {
    case 'turn':
      agent.turn = event.turn;
      if (event.text !== '') agent.lastStep = oneLine(event.text);
      break;
    case 'call':
      agent.lastStep = oneLine(event.summary);
      break;
    case 'todos':
      agent.todos = event.todos;
      break;
    case 'usage':
      agent.tokens += totalTokens(event.usage);
      break;
    case 'ended':
      agent.status = event.status;
      agent.endedAtMs = Date.parse(event.at);
      agent.turn = event.turns;
      if (event.error !== undefined) agent.lastStep = oneLine(event.error);
      break;
    default:
      agent.lastStep = stepOf(event);
  }
}

function stepOf(event: Extract<AgentEvent, { type: 'call_failed' | 'steered' | 'limit' | 'retry' }>): string {
  if (event.type === 'call_failed') return failedWords(event, { summary: 60, error: 80 });
  if (event.type === 'steered') return `message from you: ${oneLine(event.text, 80)}`;
  if (event.type === 'limit') return `limit reached: ${event.reason}`;
  return retryWords(event);
}

interface LinePlace {
  readonly indent: string;
  readonly columns: number;
  readonly nowMs: number;
}

// Cut before it is coloured: a colour code has no width, and half of one would colour the rest of the screen.
function agentLine(agent: TreeAgent, { indent, columns, nowMs }: LinePlace): string {
  // Whole seconds while it runs: no need to redraw for a tenth.
  const tookMs = (agent.endedAtMs ?? nowMs) - agent.startedAtMs;
  const took = formatDuration(agent.endedAtMs === undefined ? Math.floor(tookMs / 1000) * 1000 : tookMs);
  const name = indent === '' ? agent.description : `${agent.description} (${agent.agentType})`;
  const facts = `turn ${agent.turn} · ${formatTokens(agent.tokens)} tokens · ${took}`;
  const todos = agent.todos.length > 0 && agent.status === 'running' ? ` · ${formatTodos(agent.todos)}` : '';
  const line = cutToWidth(oneLine(`${name} · ${facts}${todos} · ${agent.lastStep}`, 400), columns - indent.length - 3);
  return `${indent}${MARKS[agent.status] ?? FAILED_MARK} ${agent.status === 'running' ? line : pc.dim(line)}`;
}

const FAILED_MARK = pc.red('✗');
const MARKS: Readonly<Record<string, string>> = {
  running: pc.cyan('●'),
  completed: pc.green('✓'),
  cancelled: pc.yellow('■'),
  max_turns: pc.yellow('■'),
  timeout: pc.yellow('■'),
  budget: pc.yellow('■'),
};

/** The last lines of the terminal, drawn over each time. */
class RedrawnRegion {
  readonly #output: OutputStream;
  #shown: readonly string[] = [];

  constructor(output: OutputStream) {
    this.#output = output;
  }

  draw(lines: readonly string[]): void {
    if (lines.length === this.#shown.length && lines.every((line, i) => line === this.#shown[i])) return;
    this.#output.write(`${this.#erase()}${lines.map((line) => `${line}\n`).join('')}`);
    this.#shown = lines;
  }

  print(line: string): void {
    this.#output.write(`${this.#erase()}${line}\n${this.#shown.map((shown) => `${shown}\n`).join('')}`);
  }

  leave(): void {
    this.#shown = [];
  }

  #erase(): string {
    return this.#shown.length === 0 ? '' : `\u001B[${this.#shown.length}A\r\u001B[0J`;
  }
}
