import { setCurrentDetails, setHandler, defineQuery, defineUpdate, workflowInfo } from '@temporalio/workflow';
import { NO_USAGE, STATUS_QUERY, STEER_UPDATE, TODOS_QUERY, addUsage, totalTokens } from '../protocol.ts';
import type {
  AgentInput,
  AgentRef,
  AgentState,
  AgentStatus,
  Answer,
  CarriedState,
  Reply,
  SteeringMessage,
  TaskCall,
  Todo,
  Usage,
} from '../protocol.ts';
import { handlerBroken } from '../failures.ts';
import { ShownAttributes } from './attributes.ts';
import { isForTemporal } from './broken.ts';
import { toRef } from './ref.ts';
import { rememberId, steeringProblem } from './steering.ts';

export const statusQuery = defineQuery<AgentState>(STATUS_QUERY);
export const todosQuery = defineQuery<readonly Todo[]>(TODOS_QUERY);
export const steerUpdate = defineUpdate<string, [SteeringMessage]>(STEER_UPDATE);

/** What waits for the next seal. */
export interface Unsealed {
  readonly answers?: readonly Answer[];
  readonly steering?: readonly SteeringMessage[];
}

/** Everything a running agent holds in memory; what must outlive a continue-as-new is in `carried()`. */
export class LiveState {
  readonly ref: AgentRef;
  readonly attributes: ShownAttributes;
  readonly startedAtMs: number;
  status: AgentStatus | 'running' = 'running';
  turn: number;
  /** Answers for calls without a kept result, waiting for the next seal. */
  answers: readonly Answer[];
  steering: readonly SteeringMessage[];
  todos: readonly Todo[];
  lastStep: string;
  waitingFor = '';
  /** No turn will follow: what a person says now would not be heard. */
  isEnding = false;
  /** Whether the transcript has its first record. */
  isOpen: boolean;
  #usage;
  #startedChildren: number;
  #steered: readonly string[];
  readonly #openChildren = new Map<string, string>();
  /** Set by the first bug in a handler. */
  #bug: Error | undefined;
  /** Stops the loop, so that it comes to its end. */
  #stop: (() => void) | undefined;

  constructor(input: AgentInput) {
    const { carried } = input;
    this.ref = toRef(input);
    this.attributes = new ShownAttributes(input.searchAttributes);
    this.startedAtMs = carried?.startedAtMs ?? workflowInfo().startTime.getTime();
    this.isOpen = carried !== undefined;
    this.turn = carried?.turn ?? 1;
    this.answers = carried?.answers ?? [];
    this.steering = carried?.steering ?? [];
    this.todos = carried?.todos ?? [];
    this.lastStep = carried?.lastStep ?? 'starting';
    this.#usage = carried?.usage ?? NO_USAGE;
    this.#startedChildren = carried?.children ?? 0;
    this.#steered = carried?.steered ?? [];
  }

  get bug(): Error | undefined {
    return this.#bug;
  }

  /** A handler is broken, and with it perhaps what it works on: the agent ends as after any other bug. */
  break(bug: unknown): void {
    this.#bug ??= bug instanceof Error ? bug : new Error(String(bug));
    this.#stop?.();
  }

  /** What `break` stops; at once when it was called before. */
  whenBroken(stop: () => void): void {
    this.#stop = stop;
    if (this.#bug !== undefined) stop();
  }

  /** Takes a message for the next seal; the same one again, which a client sends when it missed the answer, once. */
  takeSteering({ id, text }: SteeringMessage): string {
    if (this.#steered.includes(id)) return 'taken before';
    this.#steered = rememberId(this.#steered, id);
    this.steering = [...this.steering, { id, text }];
    return `taken for the turn after ${this.turn}`;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** What the next seal needs; kept until the seal is known to have happened. */
  unsealed(): Unsealed {
    const { answers, steering } = this;
    return { ...(answers.length > 0 && { answers }), ...(steering.length > 0 && { steering }) };
  }

  noteSealed(sealed: Unsealed, unsaid: readonly string[] = []): void {
    this.answers = this.answers.filter((answer) => !sealed.answers?.includes(answer));
    this.steering = this.steering.filter(
      (message) => !sealed.steering?.includes(message) || unsaid.includes(message.id),
    );
  }

  noteReply(reply: Reply): void {
    this.#usage = addUsage(this.#usage, reply.usage);
    if (reply.text !== '') this.lastStep = oneLine(reply.text);
    for (const call of reply.calls ?? []) if (call.todos) this.todos = call.todos;
  }

  childStarted(task: TaskCall): void {
    this.#startedChildren += 1;
    this.#openChildren.set(task.agentId, task.description);
    this.waitingFor = 'sub-agents';
  }

  childEnded(task: TaskCall): void {
    this.#openChildren.delete(task.agentId);
    if (this.#openChildren.size === 0) this.waitingFor = '';
  }

  /** The agent was not at its end after all. */
  reopen(): void {
    this.isEnding = false;
    this.status = 'running';
  }

  hasOpenChildren(): boolean {
    return this.#openChildren.size > 0;
  }

  carried(nextTurn: number): CarriedState {
    return {
      turn: nextTurn,
      startedAtMs: this.startedAtMs,
      branch: this.ref.branch,
      usage: this.#usage,
      todos: this.todos,
      answers: this.answers,
      steering: this.steering,
      children: this.#startedChildren,
      lastStep: this.lastStep,
      steered: this.#steered,
    };
  }

  snapshot(): AgentState {
    return {
      agentId: this.ref.agentId,
      status: this.status,
      turn: this.turn,
      lastStep: this.lastStep,
      usage: this.#usage,
      todos: this.todos,
      openChildren: [...this.#openChildren].map(([agentId, description]) => ({ agentId, description })),
      waitingFor: this.waitingFor,
    };
  }
}

/** Queries and updates, with words for the dialogs of the Temporal UI. */
export function registerHandlers(state: LiveState): void {
  setHandler(statusQuery, () => state.snapshot(), {
    description: 'Turn, last step, usage, todo list and open sub-agents of this agent, as JSON.',
  });
  setHandler(todosQuery, () => state.todos, { description: 'The todo list of this agent.' });
  setHandler(steerUpdate, (message) => orBreak(state, () => state.takeSteering(message)), {
    validator: (message) => {
      const problem = steeringProblem(state, message);
      if (problem !== undefined) throw new Error(problem);
    },
    description: 'Adds a user message at the next turn. Input: {"id": "<any unique text>", "text": "<message>"}.',
  });
}

/**
 * A bug in a handler would fail the run at once and without its last record, or its task again and again. Whoever called
 * is told, and the agent ends.
 */
function orBreak<T>(state: LiveState, handle: () => T): T {
  try {
    return handle();
  } catch (bug) {
    if (isForTemporal(bug)) throw bug;
    state.break(bug);
    throw handlerBroken(bug);
  }
}

/** The table in the UI's "Current Details"; costs no event. */
export function showDetails(state: LiveState): void {
  const { turn, lastStep, usage, openChildren, todos, waitingFor, status } = state.snapshot();
  const rows: readonly (readonly [string, string])[] = [
    ['Status', status],
    ['Turn', String(turn)],
    ['Last step', lastStep],
    ['Tokens', totalTokens(usage).toLocaleString('en-US')],
    ['Cost', usage.costUsd === null ? 'no price known' : `$${usage.costUsd.toFixed(4)}`],
    ['Budget', 'none'],
    ['Children', openChildren.map((child) => child.description).join(', ') || 'none open'],
    ['Waiting for', waitingFor || 'nothing'],
    ['Todos', `${todos.filter((todo) => todo.status === 'completed').length} of ${todos.length} done`],
  ];
  const body = rows.map(([name, value]) => `| ${name} | ${value.replaceAll('|', '\\|')} |`).join('\n');
  setCurrentDetails(`| | |\n| --- | --- |\n${body}`);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, 160);
}
