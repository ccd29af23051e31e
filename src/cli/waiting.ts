import { setTimeout as delay } from 'node:timers/promises';
import { askOpenWork, clock, connect, isUnreachable, type OpenWork, type TemporalClient } from '../client.ts';
import type { Config } from '../config.ts';
import type { LiveAgent } from './live-meta.ts';
import { whatWorks } from './what-works.ts';

/** Why agents that have not ended do not move, by workflow id; one that moves, or of which nothing is known, is not in it. */
export type Waiting = ReadonlyMap<string, string>;

/** A listing never waits longer than this for the server. */
const ASK_MS = 1000;
/** Agents that are asked about for one listing, sub-agents included. */
const MAX_ASKED = 100;
const ASKED_AT_A_TIME = 20;

/** For `show`: each of these agents by itself. What holds up the whole run is said of its root alone. */
export function waitingAgents(config: Config, agents: readonly LiveAgent[]): Promise<Waiting> {
  return lookUp(config, agents, async (client, { meta, lastMove }) => {
    const { waitingFor, isUnknown } = await askOpenWork(client, meta.workflowId, lastMove);
    return isUnknown ? unknownTo(meta.depth) : waitingFor;
  });
}

/** For `ps`: each of these root agents, or the first below it that waits. */
export function waitingRuns(config: Config, roots: readonly LiveAgent[]): Promise<Waiting> {
  let left = MAX_ASKED;
  return lookUp(config, roots, async (client, { meta, lastMove }) => {
    for (let ids: readonly string[] = [meta.workflowId]; ids.length > 0 && left > 0;) {
      const asked = ids.slice(0, Math.min(ASKED_AT_A_TIME, left));
      left -= asked.length;
      const found = await Promise.all(asked.map((id) => askOpenWork(client, id, lastMove)));
      if (found.some(({ isUnknown }, i) => isUnknown && asked[i] === meta.workflowId)) return unknownTo(meta.depth);
      const telling = mostTelling(found);
      if (telling !== undefined) return telling;
      ids = found.flatMap(({ children }) => children);
    }
    return undefined;
  });
}

function mostTelling(found: readonly OpenWork[]): string | undefined {
  const waiting = found.filter(({ waitingFor }) => waitingFor !== undefined);
  return (waiting.find(({ hasTrouble }) => hasTrouble) ?? waiting[0])?.waitingFor;
}

function unknownTo(depth: number): string | undefined {
  return depth === 0 ? 'the Temporal server does not know this run; errand doctor says what that means' : undefined;
}

type Ask = (client: TemporalClient['client'], agent: LiveAgent) => Promise<string | undefined>;

async function lookUp(config: Config, agents: readonly LiveAgent[], ask: Ask): Promise<Waiting> {
  const open = agents.filter(({ meta }) => meta.endedAt === null).slice(0, MAX_ASKED);
  if (open.length === 0) return new Map();
  const works = await whatWorks(config);
  if ('nothing' in works) return ofRoots(open, works.nothing);
  const answers: Answers = { waiting: new Map(), count: 0 };
  const asking = askAll(config, works.address, { open, ask, answers });
  const problem = await Promise.race([asking, delay(ASK_MS, 'does not answer', { ref: false })]);
  // What has been answered by then is shown.
  const { waiting, count } = answers;
  return count > 0 || problem === undefined
    ? waiting
    : ofRoots(open, `the Temporal server at ${works.address} ${problem}`);
}

interface Answers {
  readonly waiting: Map<string, string>;
  count: number;
}

interface Questions {
  readonly open: readonly LiveAgent[];
  readonly ask: Ask;
  readonly answers: Answers;
}

/** Never throws: why the server could not be asked is news for the listing, not its end. */
async function askAll(config: Config, address: string, questions: Questions): Promise<string | undefined> {
  try {
    const { client, close } = await connect(config.temporal, address, ASK_MS);
    await askEach(client, questions).finally(close);
    return undefined;
  } catch (error) {
    if (isUnreachable(error)) return 'does not answer';
    return `cannot be asked: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function askEach(client: TemporalClient['client'], { open, ask, answers }: Questions): Promise<void> {
  await Promise.all(
    open.map(async (agent) => {
      const words = await ask(client, agent);
      answers.count++;
      if (words !== undefined) answers.waiting.set(agent.meta.workflowId, words);
    }),
  );
}

function ofRoots(agents: readonly LiveAgent[], words: string): Waiting {
  const roots = agents.filter(({ meta }) => meta.depth === 0);
  return new Map(roots.map(({ meta, lastMove }) => [meta.workflowId, `${words} (last step ${clock(lastMove)})`]));
}
