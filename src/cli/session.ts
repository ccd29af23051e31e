import { connect, isUnreachable, ServerUnreachable, type TemporalClient } from '../client.ts';
import { ConfigError, hasModelAccess, type Config, type Environment } from '../config.ts';
import { modelServerOf } from '../model-server-id.ts';
import { assertOwnHome, ensureServer, serverStatus } from '../server/index.ts';
import { CliError, EXIT } from './cli-error.ts';
import { warn, type CommandContext } from './context.ts';
import { keepModelOfRuns, onlyDemoRunsWait } from './model-of-runs.ts';
import { demoEnvironment } from './model-server-process.ts';
import { runningAddress } from './running-address.ts';

/** A line to the server of this home, and what is known of it. */
export interface Session {
  readonly temporal: TemporalClient;
  /** The Temporal UI of the embedded server. */
  readonly uiUrl?: string;
  /** Another line, after the server was away; it may have moved. Throws while it cannot be reached. */
  reconnect(): Promise<void>;
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly config: Config;
  /** Environment for the workers; missing: those that run keep theirs. */
  readonly workerEnvironment?: Environment;
  /** How many workers; missing: as many as run, or the default. */
  readonly workers?: number;
}

/** Starts what is missing of server and workers, and connects. Ends the command with exit code 6 when that fails. */
export async function openSession(context: CommandContext, options: SessionOptions): Promise<Session> {
  try {
    const { address, uiUrl } = await bringUp(context, options);
    return new OpenSession(options.config, await connect(options.config.temporal, address), uiUrl);
  } catch (error) {
    throw asUnreachable(error);
  }
}

/** Starts what is missing of server and workers. Ends the command with exit code 6 when that fails. */
export async function bringUp(context: CommandContext, options: SessionOptions): Promise<Up> {
  try {
    return await startMissing(context, options);
  } catch (error) {
    throw asUnreachable(error);
  }
}

function asUnreachable(error: unknown): unknown {
  if (error instanceof CliError || error instanceof ConfigError || !(error instanceof Error)) return error;
  return new CliError(error.message, EXIT.unreachable, { cause: error });
}

/** Ends the command with exit code 6 when the work fails because nobody answers. */
export async function withSession<Value>(session: Session, work: (session: Session) => Promise<Value>): Promise<Value> {
  try {
    return await work(session);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    throw new CliError(`The Temporal server at ${session.temporal.address} does not answer.`, EXIT.unreachable, {
      cause: error,
    });
  } finally {
    await session.close();
  }
}

/** Where the server is. */
export interface Up {
  readonly address: string | undefined;
  readonly uiUrl?: string;
}

// A process that a supervisor or a container told where the server is starts nothing of its own.
async function startMissing(context: CommandContext, options: SessionOptions): Promise<Up> {
  const { config, workerEnvironment, workers } = options;
  assertOwnHome(config.home.value);
  if (config.isDamaged) return { address: await addressOfDamaged(config) };
  const { server, address, namespace } = config.temporal;
  if (server === 'embedded' && address.value !== undefined) return { address: address.value };
  if (workerEnvironment !== undefined)
    for (const line of await keepModelOfRuns(config, modelServerOf(workerEnvironment))) warn(context, line);
  const other = server === 'external' ? { address: address.value ?? '', namespace: namespace.value } : undefined;
  const { address: found, uiUrl } = await ensureServer({
    home: config.home.value,
    log: (line) => warn(context, line),
    other,
    workers,
    environment: await environmentOf(context, options),
    keepEnvironment: workerEnvironment === undefined,
  });
  return { address: other ? address.value : found, uiUrl };
}

// Started with settings that cannot be read, workers would not come up, and whoever waits for them could stop nothing.
async function addressOfDamaged(config: Config): Promise<string> {
  const found = await runningAddress(config);
  if (found !== undefined) return found;
  throw new ConfigError(`Nothing runs, and nothing can be started until ${config.configFile} is mended.`);
}

// Without a model to ask, the simulator is for a demo that was cut short, and for nothing else: it would answer any run.
async function environmentOf({ io }: CommandContext, options: SessionOptions): Promise<Environment> {
  const { config, workerEnvironment } = options;
  const home = config.home.value;
  const given = workerEnvironment ?? io.env;
  if (hasModelAccess(config)) return given;
  const keepsRunning = workerEnvironment === undefined && (await serverStatus({ home })).running;
  if (keepsRunning || !(await onlyDemoRunsWait(home))) return given;
  return demoEnvironment(home, io.env);
}

class OpenSession implements Session {
  readonly uiUrl?: string;
  readonly #config: Config;
  #temporal: TemporalClient;

  constructor(config: Config, temporal: TemporalClient, uiUrl: string | undefined) {
    this.#config = config;
    this.#temporal = temporal;
    this.uiUrl = uiUrl;
  }

  get temporal(): TemporalClient {
    return this.#temporal;
  }

  async reconnect(): Promise<void> {
    const fresh = await connect(this.#config.temporal, await this.#currentAddress());
    const old = this.#temporal;
    this.#temporal = fresh;
    await old.close();
  }

  async close(): Promise<void> {
    await this.#temporal.close();
  }

  async #currentAddress(): Promise<string> {
    if (this.#config.temporal.address.value !== undefined) return this.#config.temporal.address.value;
    const { instances } = await serverStatus({ home: this.#config.home.value });
    const address = instances.find(({ embedded }) => embedded)?.address;
    if (address === undefined)
      throw new ServerUnreachable('The embedded Temporal server is not running: errand up starts it.');
    return address;
  }
}
