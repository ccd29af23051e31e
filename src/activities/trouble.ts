import { sep } from 'node:path';
import { Context } from '@temporalio/activity';
import { isOutage, outageSince, outageTooLong, storeGone, storeInvalid, storeUnavailable } from '../failures.ts';
import { StoredFileError } from '../jobs/durable-file.ts';
import { ASLEEP_MS } from '../protocol.ts';
import { retryDelay } from '../model/retry-after.ts';
import { goneReason } from './gone.ts';

/**
 * The one place where trouble of the machine becomes a failure that is waited out, and where waiting ends. Everything an
 * activity does goes through here.
 */
export async function waitingOutTrouble<T>(home: string, work: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  try {
    return await work();
  } catch (error) {
    const failure = toFailure(error, home);
    if (!isOutage(failure)) throw failure;
    const isGone = goneReason(error, home) !== undefined;
    throw toOutage(failure, { isGone, nowMs: Date.now(), workedMs: performance.now() - startedMs });
  }
}

/** What the codes of Node's file errors mean to a person. */
const DISK_TROUBLE: Readonly<Record<string, string>> = {
  ENOSPC: 'disk full',
  EDQUOT: 'disk quota used up',
  EROFS: 'file system is read-only',
  EIO: 'disk error',
  ESTALE: 'file system is gone',
  ENODEV: 'file system is gone',
  ETIMEDOUT: 'file system does not answer',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files',
};

/** These are trouble in errand's own folder; elsewhere they are somebody's file permissions. */
const HOME_TROUBLE: Readonly<Record<string, string>> = {
  EACCES: 'no permission',
  EPERM: 'no permission',
  ENOTDIR: 'a file is where a folder must be',
  ENOENT: 'a file or folder is missing',
};

/** Somebody may just be moving or copying a file: what is still gone after this time is gone. */
const GONE_AFTER_MS = 3_000;
const LOOK_AGAIN_MS = 1_000;

/** The failure to report for an error of an activity's work; any error that means none as it is. */
export function toFailure(error: unknown, home: string): unknown {
  const reason = goneReason(error, home);
  if (reason === undefined) return toStoreFailure(error, home);
  return passedSince('goneSinceMs') >= GONE_AFTER_MS ? storeGone(reason) : storeUnavailable(reason, LOOK_AGAIN_MS);
}

/** How long earlier attempts of this activity have met trouble. */
export function troubleMs(): number {
  return passedSince('troubleSinceMs');
}

function passedSince(key: TroubleTime): number {
  const sinceMs = timeIn(Context.current().info.heartbeatDetails, key);
  return sinceMs === undefined ? 0 : Date.now() - sinceMs;
}

/** Store.Unavailable or Store.Invalid for an error that means one of them; any other error as it is. */
export function toStoreFailure(error: unknown, home: string): unknown {
  if (error instanceof StoredFileError) return storeInvalid(error.message);
  const reason = troubleReason(error, home);
  return reason === undefined ? error : storeUnavailable(reason);
}

function troubleReason(error: unknown, home: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', path } = error as NodeJS.ErrnoException;
  const isAtHome = path !== undefined && (path === home || path.startsWith(home + sep));
  const words = DISK_TROUBLE[code] ?? (isAtHome ? HOME_TROUBLE[code] : undefined);
  return words === undefined ? undefined : `${words} (${error.message.slice(0, 400)})`;
}

type Outage = Parameters<typeof outageSince>[0];

/** What is known of an outage when an attempt fails of it. */
export interface OutageFacts {
  readonly attempt: number;
  /** When an attempt met it first. */
  readonly sinceMs: number;
  /** How long it has been tried to get over it. */
  readonly lastedMs: number;
  readonly limitMs: number;
}

/** The failure to report: one that is tried again, with when the trouble began, or the last one. */
export function outageFailure(failure: Outage, { attempt, sinceMs, lastedMs, limitMs }: OutageFacts): Outage {
  const leftMs = limitMs - lastedMs;
  if (leftMs <= 0) return outageTooLong(failure, lastedMs);
  const wantedMs = Number(failure.nextRetryDelay ?? retryDelay(attempt, undefined));
  return outageSince(failure, sinceMs, Math.max(1, Math.min(wantedMs, leftMs)));
}

function toOutage(failure: Outage, failed: FailedAttempt): Outage {
  const { info } = Context.current();
  const times = troubleTimes(info.heartbeatDetails, failed);
  const { troubleSinceMs: sinceMs, lastedMs } = times;
  const outage = outageFailure(failure, { attempt: info.attempt, sinceMs, lastedMs, limitMs: outageLimitMs() });
  const pauseMs = Number(outage.nextRetryDelay ?? 0);
  // The next attempt gets it back: only so is the length of an outage known over attempts.
  Context.current().heartbeat({ ...times, pauseMs, trouble: failure.message.slice(0, 300) });
  return outage;
}

/** An attempt that met trouble. */
interface FailedAttempt {
  readonly isGone: boolean;
  readonly nowMs: number;
  /** How long it worked, on the clock that stands still while the machine sleeps. */
  readonly workedMs: number;
}

interface TroubleTimes {
  readonly troubleSinceMs: number;
  /** How long it had lasted at `seenMs`, without the time in which nothing was tried because everything slept. */
  readonly lastedMs: number;
  readonly seenMs: number;
  /** Only while a file is gone: a disk that was away for hours may bring a run's files back one after the other. */
  readonly goneSinceMs?: number;
}

type TroubleTime = keyof TroubleTimes | 'pauseMs';

/** When the trouble of an attempt began and how long it has lasted, by what the attempt before it left. */
export function troubleTimes(details: unknown, failed: FailedAttempt): TroubleTimes {
  const { isGone, nowMs } = failed;
  const troubleSinceMs = timeIn(details, 'troubleSinceMs') ?? nowMs;
  const times = { troubleSinceMs, lastedMs: lastedUntil(details, failed), seenMs: nowMs };
  return isGone ? { ...times, goneSinceMs: timeIn(details, 'goneSinceMs') ?? nowMs } : times;
}

/** How late an attempt may come after its pause: what is later has slept. */
const WAKING_MS = 60_000;

function lastedUntil(details: unknown, { nowMs, workedMs }: FailedAttempt): number {
  const [lastedMs, seenMs, pauseMs = 0] = [
    timeIn(details, 'lastedMs'),
    timeIn(details, 'seenMs'),
    timeIn(details, 'pauseMs'),
  ];
  // Left by a worker of an older build, which knew only when it began.
  if (lastedMs === undefined || seenMs === undefined) return nowMs - (timeIn(details, 'troubleSinceMs') ?? nowMs);
  return lastedMs + Math.max(0, Math.min(nowMs - seenMs, pauseMs + workedMs + WAKING_MS));
}

/** What schedule-to-close leaves beside one attempt and a sleep; an activity without that limit never gives up. */
function outageLimitMs(): number {
  const { scheduleToCloseTimeoutMs, startToCloseTimeoutMs } = Context.current().info;
  if (scheduleToCloseTimeoutMs <= 0) return Number.POSITIVE_INFINITY;
  const besideMs = scheduleToCloseTimeoutMs - startToCloseTimeoutMs;
  // Last words have no time for a sleep; neither has an activity that an older build scheduled.
  return besideMs > ASLEEP_MS ? besideMs - ASLEEP_MS : besideMs;
}

function timeIn(details: unknown, key: TroubleTime): number | undefined {
  if (typeof details !== 'object' || details === null) return undefined;
  const value = (details as Partial<Record<TroubleTime, unknown>>)[key];
  return typeof value === 'number' ? value : undefined;
}
