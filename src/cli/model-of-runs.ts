import type { Config } from '../config.ts';
import { DEMO_MODEL_SERVER, modelServerWords, NO_MODEL_SERVER } from '../protocol.ts';
import { serverStatus } from '../server/index.ts';
import { rootTranscriptFile } from '../store/layout.ts';
import { listRuns } from '../store/listing.ts';
import { readFirstRecord } from '../store/read.ts';
import { CliError } from './cli-error.ts';

/** Runs that are named; the rest is counted. */
const MAX_NAMED = 3;

interface OpenRun {
  readonly runId: string;
  /** Missing: started by an older build. */
  readonly modelServer?: string;
}

/**
 * For a command that starts work: workers of another model server are not taken from the runs that need them. Answers
 * what is worth a warning, a line each.
 */
export async function keepModelOfRuns(config: Config, wanted: string): Promise<readonly string[]> {
  const current = await modelServerOfWorkers(config);
  if (current === wanted) return [];
  const open = await openRuns(config.home.value);
  if (current === undefined) return waitingLines(open, wanted);
  // What an older build started goes where the workers go: it is taken for theirs.
  const served = open.filter(({ modelServer = current }) => modelServer === current);
  if (served.length === 0 || current === NO_MODEL_SERVER) return [];
  throw new CliError(
    `The workers use ${modelServerWords(current)} and this command would move them to ${modelServerWords(wanted)}, ` +
      `while runs of theirs are not finished: ${named(served)}. ` +
      'Wait for them (errand watch <run>), cancel them (errand cancel <run>), or set ERRAND_HOME to another folder.',
  );
}

/** Whether all that waits for workers in this home is the demo's. */
export async function onlyDemoRunsWait(home: string): Promise<boolean> {
  const open = await openRuns(home);
  return open.length > 0 && open.every(({ modelServer }) => modelServer === DEMO_MODEL_SERVER);
}

/** What the workers of this command's server ask now; undefined when none runs. Those of a killed supervisor count. */
async function modelServerOfWorkers({ home, temporal }: Config): Promise<string | undefined> {
  const { instances } = await serverStatus({ home: home.value });
  const isOurs = temporal.server === 'embedded';
  const instance = instances.find(
    ({ embedded, address, namespace }) =>
      embedded === isOurs && (isOurs || (address === temporal.address.value && namespace === temporal.namespace.value)),
  );
  return instance?.workers.some(({ pid }) => pid !== undefined) ? instance.modelServer : undefined;
}

/** Runs that have not ended, by the files. */
async function openRuns(home: string): Promise<readonly OpenRun[]> {
  const { runs } = await listRuns(home);
  const open = runs.filter(({ meta }) => meta.status === 'running');
  return Promise.all(
    open.map(async ({ runId, transcript }) => {
      // A file that cannot be read is doctor's business; its run is taken for one of an older build.
      const first = await readFirstRecord(rootTranscriptFile(home, transcript)).catch(() => undefined);
      return { runId, modelServer: first?.modelServer };
    }),
  );
}

function waitingLines(open: readonly OpenRun[], wanted: string): readonly string[] {
  const others = open.filter(({ modelServer = wanted }) => modelServer !== wanted);
  if (others.length === 0) return [];
  return [`The workers start with ${modelServerWords(wanted)}; these runs wait for theirs: ${named(others)}.`];
}

function named(runs: readonly OpenRun[]): string {
  const names = runs.slice(0, MAX_NAMED).map(({ runId, modelServer }) => {
    return modelServer === undefined ? runId : `${runId} (${modelServerWords(modelServer)})`;
  });
  const more = runs.length - names.length;
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
