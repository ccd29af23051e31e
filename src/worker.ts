import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { LogLevel } from '@temporalio/worker';
import { pino } from 'pino';
import { createActivities } from './activities/index.ts';
import type { ActivityDeps } from './activities/deps.ts';
import { loadConfig } from './config.ts';
import type { Config } from './config.ts';
import { WORKFLOW_BUGS, workerShutdown } from './failures.ts';
import { homeId } from './home.ts';
import { modelServerOf } from './model-server-id.ts';
import { createModelClientOrExplain } from './model/unusable-client.ts';
import { defaultCeiling } from './policy/defaults.ts';
import { taskQueue } from './protocol.ts';
import { watchForLost } from './reconcile/watch.ts';
import { WatchedConnection } from './server/watched-connection.ts';
import { ERRAND_VERSION } from './version.ts';
import { liveWithServer } from './worker-lives.ts';
import type { LivingWorker } from './worker-lives.ts';

/** Cached workflows of one worker; 200 idle ones take about 100 MB. */
const MAX_CACHED_WORKFLOWS = 200;
/** Below the activities' heartbeat time-out, so that a cancellation is felt within about two seconds. */
const HEARTBEAT_THROTTLE_MS = 2_000;
/** gRPC's own pauses grow to two minutes, in which the fence could not ask a server that is back. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 3_000 };
/** Time for open model calls to finish on SIGTERM; what is left is handed over by its retry. */
const SHUTDOWN_GRACE_MS = 15_000;
/** A worker that only ends what it does because its server was away takes as long as that takes. */
const DRAIN_MS = 30 * 24 * 3600_000;

/** The supervisor starts a worker again that no longer says so. */
const ALIVE_EVERY_MS = 5_000;

const IDENTITY = process.env.ERRAND_WORKER_IDENTITY ?? `errand-${process.pid}-${randomUUID().slice(0, 8)}`;

const log = pino({ name: process.env.ERRAND_WORKER_NAME ?? 'worker' });

await main();

async function main(): Promise<void> {
  const config = loadConfig({ env: process.env });
  Runtime.install({
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => log[toPino(level)](meta ?? {}, message)),
  });
  const shutdown = new AbortController();
  const handOver = new AbortController();
  const server = await WatchedConnection.open({ ...connectionOptions(config), channelArgs: RECONNECT });
  const deps = await createDeps(config, server, { shutdown: shutdown.signal, handOver: handOver.signal });
  // Held to the end: the SDK shuts itself down when nothing uses it, between two workers for example.
  const anchor = await NativeConnection.connect(connectionOptions(config));
  sayAlive();
  process.once('disconnect', () => log.warn('the supervisor is gone; working on'));
  const tellToEnd = () => {
    shutdown.abort(workerShutdown());
    setTimeout(() => handOver.abort(workerShutdown()), SHUTDOWN_GRACE_MS);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, tellToEnd);
  void watchForLost({
    home: config.home.value,
    server: deps,
    everyMs: config.limits.reconcileMs.value,
    signal: shutdown.signal,
    warn: (error) => log.warn(error, 'could not look for lost agents'),
  });
  await liveWithServer({
    create: () => createLife(config, deps),
    server,
    shutdown: shutdown.signal,
    onAlive: () => {
      process.send?.({ type: 'ready' });
      log.info({ queue: taskQueue(homeId(config.home.value)), identity: IDENTITY }, 'worker is ready');
    },
    warn: (line) => log.warn(line),
  });
  await anchor.close();
  process.exit(0);
}

/** At once and for ever: one that hangs in its start is noticed, too. */
function sayAlive(): void {
  const say = () => process.connected && process.send?.({ type: 'alive', everyMs: ALIVE_EVERY_MS });
  say();
  setInterval(say, ALIVE_EVERY_MS).unref();
}

/** A line of its own for each: the SDK takes one worker a queue and line, and the one before may still end what it does. */
async function createLife(config: Config, deps: ActivityDeps): Promise<LivingWorker> {
  const connection = await NativeConnection.connect(connectionOptions(config));
  const worker = await createWorker(config, connection, deps).catch(async (error: unknown) => {
    await connection.close();
    throw error;
  });
  const whenToldToEnd = () => void tellWhenDraining(worker);
  deps.shutdown.addEventListener('abort', whenToldToEnd, { once: true });
  return {
    run: () => worker.run().finally(() => connection.close()),
    shutdown: () => {
      deps.shutdown.removeEventListener('abort', whenToldToEnd);
      if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

/** Whoever waits for a successor's turn need not wait for the end of what this worker still does. */
async function tellWhenDraining(worker: Worker): Promise<void> {
  while (['INITIALIZED', 'RUNNING', 'STOPPING'].includes(worker.getState())) await sleep(20);
  if (process.connected) process.send?.({ type: 'draining' });
}

async function createWorker(config: Config, connection: NativeConnection, deps: ActivityDeps): Promise<Worker> {
  return Worker.create({
    connection,
    namespace: config.temporal.namespace.value,
    taskQueue: taskQueue(homeId(config.home.value)),
    identity: IDENTITY,
    workflowBundle: { codePath: fileURLToPath(new URL('./workflow-bundle.js', import.meta.url)) },
    activities: createActivities(deps),
    // The SDK's own build id is a long hash of the bundle, and every task writes it into history.
    buildId: await readBuildId(),
    maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
    maxConcurrentActivityTaskExecutions: 100,
    maxConcurrentWorkflowTaskExecutions: 40,
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    defaultHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    stickyQueueScheduleToStartTimeout: 5_000,
    shutdownGraceTime: DRAIN_MS,
    workflowFailureErrorTypes: { '*': [...WORKFLOW_BUGS] },
  });
}

async function createDeps(
  config: Config,
  connection: WatchedConnection,
  signals: Pick<ActivityDeps, 'shutdown' | 'handOver'>,
): Promise<ActivityDeps> {
  const client = new Client({ connection, namespace: config.temporal.namespace.value });
  const { clusterId } = await client.workflowService.getClusterInfo({});
  return {
    home: config.home.value,
    client,
    namespace: config.temporal.namespace.value,
    clusterId: clusterId ?? '',
    ceiling: defaultCeiling({ ...config.ceiling.value, errandHome: config.home.value }),
    caps: { total: config.caps.total.value, perTurn: config.caps.perTurn.value },
    ...signals,
    log,
    modelServer: modelServerOf(process.env),
    model: createModelClientOrExplain({
      apiKey: config.apiKey.value?.reveal(),
      authToken: config.authToken.value?.reveal(),
      baseUrl: config.baseUrl.value,
      models: config.models.value,
      idleTimeoutMs: config.limits.idleTimeoutMs.value,
    }),
    commandCeilings: {
      memoryBytes: config.limits.commandMemoryBytes.value,
      processes: config.limits.commandProcesses.value,
    },
    sandbox: {
      bwrapPath: config.tools.bwrap.value.path ?? null,
      userHome: homedir(),
      errandHome: config.home.value,
      env: process.env,
      demoWorkspace: process.env.ERRAND_DEMO_WORKSPACE,
    },
  };
}

/** Content hash of the build, as the build script left it. */
async function readBuildId(): Promise<string> {
  const id = await readFile(new URL('./build-id', import.meta.url), 'utf8').catch(() => ERRAND_VERSION);
  return id.trim();
}

function connectionOptions({ temporal }: Config) {
  return temporal.server === 'embedded' ? { address: temporal.address.value } : temporal.connection;
}

function toPino(level: LogLevel): 'trace' | 'debug' | 'info' | 'warn' | 'error' {
  return level.toLowerCase() as 'trace' | 'debug' | 'info' | 'warn' | 'error';
}
