import { InvalidArgumentError } from 'commander';
import { SANDBOX_MODES, type SandboxMode } from '../policy/policy.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3600_000, d: 24 * 3600_000 };

/** Ten years; beyond it a timer of the server overflows. */
const MAX_DURATION_MS = 3650 * 24 * 3600_000;

/** `90s`, `30m`, `2h`, `3d` in milliseconds. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text.trim()) ?? [];
  const durationMs = Math.round(Number(amount) * (UNIT_MS[unit ?? ''] ?? NaN));
  if (durationMs >= 1000 && durationMs <= MAX_DURATION_MS) return durationMs;
  throw new InvalidArgumentError('Expected a duration such as 90s, 30m, 2h or 3d, from 1s to 3650d.');
}

/** A whole number from `min` to `max`. */
export function parseWhole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text.trim()) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
  };
}

export function parseSandbox(text: string): SandboxMode {
  const mode = SANDBOX_MODES.find((one) => one === text);
  if (mode) return mode;
  throw new InvalidArgumentError(`Expected one of: ${SANDBOX_MODES.join(', ')}.`);
}

/** A run id is a workflow id and part of file names: short, plain, no path. */
export function parseRunId(text: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,79}$/i.test(text)) return text;
  throw new InvalidArgumentError('Expected up to 80 letters, digits and dashes, starting with a letter or digit.');
}

export function parseText(text: string): string {
  if (text.trim() !== '') return text;
  throw new InvalidArgumentError('It is empty.');
}
