import { join, relative } from 'node:path';
import { ConfigError } from '../config.ts';
import { isSameFolder, placeOf, toHomePlace, type HomePlace } from '../home.ts';
import { isAlive } from '../process-identity.ts';
import { allInstances, type Instance } from './instance.ts';
import { readState, type InstanceState } from './instance-state.ts';
import { readLock, readLockHome } from './life-lock.ts';

/** The living processes that a home's files name were not started in this folder at this path. */
export interface HomeTrouble {
  /** `copy`: they serve another folder. `moved`: they serve this one and look for it where it was. */
  readonly kind: 'copy' | 'moved';
  /** Where the original is, or where this home was. */
  readonly path: string;
}

/** What is wrong with the living processes that a home's files name; undefined when they are its own, or none live. */
export function homeTrouble(home: string): HomeTrouble | undefined {
  const here = placeOf(home);
  if (here === undefined) return undefined;
  const troubles = allInstances(home).flatMap((instance) => claimsOn(instance).map((claim) => compare(here, claim)));
  // A copy outweighs: whatever else is wrong, those processes must be left alone.
  return troubles.find((trouble) => trouble?.kind === 'copy') ?? troubles.find((trouble) => trouble !== undefined);
}

/** Throws ConfigError where starting anything would make two of what there must be one of. */
export function assertOwnHome(home: string): void {
  const trouble = homeTrouble(home);
  if (trouble) throw new ConfigError(troubleWords(home, trouble));
}

/** The same in words for a person, with what to do. */
export function troubleWords(home: string, { kind, path }: HomeTrouble): string {
  if (kind === 'moved')
    return `This home was moved from ${path} to ${home} while its server runs. Run errand down, then errand up.`;
  return (
    `${home} is a copy of ${path}, whose server still runs: both would go on with the same jobs in the same ` +
    `workspaces. Stop the original first (ERRAND_HOME=${path} errand down), or use a fresh ERRAND_HOME.`
  );
}

// Read afresh from each file: between two writes the lock may name one process and the state another.
function claimsOn(instance: Instance): readonly HomePlace[] {
  const state = readState(instance);
  const claims = [
    { home: readLockHome(instance.lock), lives: readLock(instance.lock) !== undefined },
    { home: toHomePlace(state?.home), lives: state !== undefined && hasLiving(state) },
  ];
  return claims.flatMap(({ home, lives }) => (home && (lives || isServed(home, instance)) ? [home] : []));
}

function hasLiving({ supervisor, temporal, workers }: InstanceState): boolean {
  return [supervisor, temporal?.process, ...workers.map(({ process }) => process)].some(
    (process) => process !== undefined && isAlive(process),
  );
}

// The original may have been stopped and started since it was copied: its own files know.
function isServed(home: HomePlace, instance: Instance): boolean {
  const lock = join(home.path, relative(instance.home, instance.lock));
  return isSameFolder(placeOf(home.path), home) && readLock(lock) !== undefined;
}

function compare(here: HomePlace, claimed: HomePlace): HomeTrouble | undefined {
  if (!isSameFolder(here, claimed)) return { kind: 'copy', path: claimed.path };
  // Mounted at two paths it is still where its processes look for it.
  const isWhereItWas = here.path === claimed.path || isSameFolder(placeOf(claimed.path), here);
  return isWhereItWas ? undefined : { kind: 'moved', path: claimed.path };
}
