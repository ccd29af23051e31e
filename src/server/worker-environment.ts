import { createHash } from 'node:crypto';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a worker is told by variables, on top of the environment of whoever needed it. */
export interface WorkerVariables {
  readonly home: string;
  readonly name: string;
  readonly identity: string;
  /** Address of the embedded server; undefined: the worker finds another server by its own configuration. */
  readonly embeddedAddress?: string;
}

/** The environment a worker runs with. */
export function workerEnvironment(environment: Environment, variables: WorkerVariables): NodeJS.ProcessEnv {
  return {
    ...environment,
    ERRAND_HOME: variables.home,
    ERRAND_WORKER_NAME: variables.name,
    ERRAND_WORKER_IDENTITY: variables.identity,
    ERRAND_TEMPORAL_ADDRESS: variables.embeddedAddress,
  };
}

/**
 * A digest of the variables that change what a worker does: two environments with the same digest need no restart.
 * Only this is compared and nothing is written down, since keys are among the values.
 */
export function environmentDigest(environment: Environment): string {
  const relevant = Object.keys(environment)
    .filter((name) => isRelevant(name) && environment[name])
    .sort()
    .map((name) => [name, environment[name]]);
  return createHash('sha256').update(JSON.stringify(relevant)).digest('hex');
}

const RELEVANT = /^(ANTHROPIC|ERRAND|TEMPORAL|OTEL)_|^(HTTPS?|NO|ALL)_PROXY$|^NODE_EXTRA_CA_CERTS$/i;

// Set anew for each worker, or of no concern to it.
const OWN = new Set([
  'ERRAND_HOME',
  'ERRAND_TEMPORAL_ADDRESS',
  'ERRAND_WORKER_NAME',
  'ERRAND_WORKER_IDENTITY',
  'ERRAND_TEMPORAL_CLI',
  'ERRAND_ALLOW_UNPINNED',
]);

function isRelevant(name: string): boolean {
  return RELEVANT.test(name) && !OWN.has(name);
}
