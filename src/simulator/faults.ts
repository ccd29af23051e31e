import { errorTypeFor } from './wire.ts';
import type { Fault, Step, View } from './scenario.ts';

export interface FaultCounter {
  /** The fault for this request, counting it: a fault with `times: n` is used up after n requests of its turn. */
  next(step: Step, view: View): Fault;
}

export function createFaultCounter(): FaultCounter {
  const requests = new Map<string, number>();
  return {
    next(step, view) {
      const faults = step.fault === undefined ? [] : [step.fault].flat();
      if (faults.length === 0) return generalFault(view);
      const key = `${view.key}/${view.turn}`;
      const earlier = requests.get(key) ?? 0;
      requests.set(key, earlier + 1);
      return { ...generalFault(view), ...pickFault(faults, earlier) };
    },
  };
}

/** The header a fault asks for. */
export function toRetryAfter(wanted: number | string): string {
  const seconds = typeof wanted === 'string' ? /^date\+(\d+)$/.exec(wanted)?.[1] : undefined;
  return seconds === undefined ? String(wanted) : new Date(Date.now() + Number(seconds) * 1000).toUTCString();
}

export function toErrorBody(type: string, message: string, requestId: string): Record<string, unknown> {
  return { type: 'error', error: { type, message }, request_id: requestId };
}

export function faultError(fault: Fault, status: number): { type: string; message: string } {
  const type = fault.errorType ?? errorTypeFor(status);
  return { type, message: fault.message ?? `${type} on demand` };
}

function pickFault(faults: readonly Fault[], earlier: number): Fault | undefined {
  let end = 0;
  return faults.find((fault) => {
    end += fault.times ?? Infinity;
    return earlier < end;
  });
}

/** Every scenario understands `delay=ms` and `between=ms` in its marker, and `slow=1` for two seconds a turn. */
function generalFault({ args }: View): Fault {
  const delayMs = Number(args.delay ?? (args.slow === '1' ? SLOW_TURN_MS : 0));
  const betweenMs = Number(args.between ?? 0);
  return { ...(delayMs > 0 ? { delayMs } : {}), ...(betweenMs > 0 ? { betweenMs } : {}) };
}

const SLOW_TURN_MS = 2000;
