import { join } from 'node:path';
import { runIdOfStem, transcriptsRoot } from './layout.ts';
import { dayFolders } from './listing.ts';

export interface FoundRun {
  readonly runId: string;
  /** Stem of its files. */
  readonly transcript: string;
  /** The root agent's transcript. */
  readonly file: string;
}

/** No run, or more than one, goes by the name given. */
export class RunLookupError extends Error {
  override readonly name = 'RunLookupError';
}

const NEWEST_SHOWN = 5;
const CANDIDATES_SHOWN = 10;

/** The one run with this id (or stem); else the only one whose id starts with the text; else the only one with it inside. */
export async function findRun(home: string, idOrPart: string): Promise<FoundRun> {
  const runs = await allRuns(home);
  const matches = [
    runs.filter((run) => run.runId === idOrPart || run.transcript === idOrPart),
    runs.filter((run) => run.runId.startsWith(idOrPart)),
    runs.filter((run) => run.runId.includes(idOrPart)),
  ];
  const found = idOrPart === '' ? [] : (matches.find((some) => some.length > 0) ?? []);
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  throw new RunLookupError(first === undefined ? unknownRun(idOrPart, runs) : ambiguousRun(idOrPart, found));
}

/** By name alone: a file that cannot be read must not change which run a name means. */
async function allRuns(home: string): Promise<FoundRun[]> {
  const runs: FoundRun[] = [];
  for await (const { folder, names } of dayFolders(home, cannotTell)) {
    for (const name of names) {
      const transcript = `${folder}/${name.slice(0, -'.jsonl'.length)}`;
      const runId = runIdIn(transcript);
      if (runId !== undefined) runs.push({ runId, transcript, file: join(transcriptsRoot(home), folder, name) });
    }
  }
  return runs;
}

/** Without the names in that folder it is not known whether another run goes by the same name. */
function cannotTell(folder: string, cause: unknown): never {
  throw new RunLookupError(`Runs cannot be looked up while ${folder} cannot be read`, { cause });
}

function runIdIn(stem: string): string | undefined {
  try {
    return runIdOfStem(stem);
  } catch {
    return undefined; // A foreign file; listRuns names it.
  }
}

function unknownRun(text: string, runs: readonly FoundRun[]): string {
  const newest = runs.slice(0, NEWEST_SHOWN).map((run) => run.runId);
  const hint = newest.length === 0 ? 'There are no runs yet.' : `The newest are: ${newest.join(', ')}`;
  return `No run ${JSON.stringify(text)}. ${hint}`;
}

function ambiguousRun(text: string, found: readonly FoundRun[]): string {
  const isSameId = found.every((run) => run.runId === found[0]?.runId);
  const names = found.slice(0, CANDIDATES_SHOWN).map((run) => (isSameId ? run.transcript : run.runId));
  const more = found.length > CANDIDATES_SHOWN ? ` and ${found.length - CANDIDATES_SHOWN} more` : '';
  return `${JSON.stringify(text)} may mean ${found.length} runs: ${names.join(', ')}${more}. Give more of the name.`;
}
