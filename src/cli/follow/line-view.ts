import { failedWords, retryWords, type AgentEvent, type FollowEvent } from './events.ts';
import { formatDuration, formatTodos, formatTokens, formatTurns, totalTokens } from '../format.ts';
import { printJson, printLine, type OutputStream } from '../io.ts';
import { oneLine } from '../text.ts';
import type { FollowView } from './view.ts';

/** One line an event: for pipes, logs and `watch` without a terminal. */
export function createLineView(output: OutputStream): FollowView {
  const lines = new LineWriter();
  return {
    show: (event) => {
      for (const line of lines.of(event)) printLine(output, line);
    },
    tick: () => undefined,
    print: (line) => printLine(output, line),
    close: () => undefined,
  };
}

/** One JSON object an event on `output`; words for people go to `errors`. */
export function createJsonView(output: OutputStream, errors: OutputStream, run: string): FollowView {
  return {
    show: ({ type, ...fields }) => printJson(output, { type, run, ...fields }),
    tick: () => undefined,
    print: (line) => printLine(errors, line),
    close: () => undefined,
  };
}

/** Failed attempts of one turn that get a line; then it is the waiting line's turn. */
const SHOWN_RETRIES = 3;

interface ShownAgent {
  readonly description: string;
  readonly depth: number;
  readonly startedAt: string;
}

/** Words for events; remembers what the agents are called. */
export class LineWriter {
  readonly #agents = new Map<string, ShownAgent>();
  #waiting = '';

  of(event: FollowEvent): readonly string[] {
    if (event.type === 'waiting') return this.#wait(event.text);
    if (event.type !== 'started') return this.#agentLines(event, this.#agents.get(event.agentId));
    const { agentId, description, depth, at, agentType } = event;
    this.#agents.set(agentId, { description: oneLine(description, 60), depth, startedAt: at });
    return depth > 0 ? [`[Subagent spawned] ${oneLine(description, 60)} (${oneLine(agentType, 40)})`] : [];
  }

  #wait(text: string): readonly string[] {
    // Each further attempt is no news: an outage of a day would fill the screen.
    const reason = text.replace(/ \(attempt \d+\)/g, '');
    const isNews = reason !== '' && reason !== this.#waiting;
    this.#waiting = reason;
    return isNews ? [oneLine(text, 300)] : [];
  }

  #agentLines(event: AgentEvent, agent: ShownAgent | undefined): readonly string[] {
    if (agent !== undefined && agent.depth > 0) return childLines(event, agent);
    return rootLines(event);
  }
}

function rootLines(event: AgentEvent): readonly string[] {
  switch (event.type) {
    case 'turn':
      return event.text === '' ? [] : [`turn ${event.turn} · ${oneLine(event.text)}`];
    case 'call':
      return event.name === 'task' ? [] : [`turn ${event.turn} · ${oneLine(event.summary)}`];
    case 'ended':
      return [];
    default:
      return commonLine(event).map((text) => ('turn' in event ? `turn ${event.turn} · ${text}` : text));
  }
}

function childLines(event: AgentEvent, { description, startedAt }: ShownAgent): readonly string[] {
  switch (event.type) {
    case 'turn':
      return [];
    case 'call':
      return event.name === 'task' ? [] : [`[sub ${description}] tool: ${oneLine(event.summary)}`];
    case 'ended': {
      const tookMs = Date.parse(event.at) - Date.parse(startedAt);
      const total = `${formatTurns(event.turns)} · ${formatTokens(totalTokens(event.usage.subtree))} tokens · ${formatDuration(tookMs)}`;
      const why = event.error === undefined ? '' : ` · ${oneLine(event.error)}`;
      return [`[Subagent done] ${description} · ${event.status} · ${total}${why}`];
    }
    default:
      return commonLine(event).map((text) => `[sub ${description}] ${text}`);
  }
}

function commonLine(event: AgentEvent): readonly string[] {
  switch (event.type) {
    case 'todos':
      return [`todos: ${oneLine(formatTodos(event.todos))}`];
    case 'call_failed':
      return [failedWords(event, { summary: 80, error: 120 })];
    case 'steered':
      return [`message from you: ${oneLine(event.text)}`];
    case 'limit':
      return [`limit reached: ${event.reason}; one last turn`];
    case 'retry':
      return event.attempt <= SHOWN_RETRIES ? [retryWords(event)] : [];
    default:
      return [];
  }
}
