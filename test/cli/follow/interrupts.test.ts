import { describe, expect, it, vi } from 'vitest';
import { stopEarly } from '../../../src/cli/follow/early-stop.ts';
import { listenForInterrupts } from '../../../src/cli/follow/interrupts.ts';
import { createTestIo } from '../fake-io.ts';

function listen({ isTty }: { isTty: boolean }) {
  const io = createTestIo({ isTty });
  const cancel = vi.fn();
  const lines: string[] = [];
  const interrupts = listenForInterrupts(io, { ask: isTty, cancel, print: (line) => lines.push(line) });
  return { io, cancel, lines, interrupts };
}

async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  return (await Promise.race([promise, new Promise((resolve) => setTimeout(resolve, 20, 'open'))])) === 'open';
}

describe('Ctrl-C while a run is followed', () => {
  it('asks on a terminal, and d detaches', async () => {
    const { io, lines, interrupts, cancel } = listen({ isTty: true });
    io.signal('SIGINT');
    expect(lines[0]).toMatch(/Detach .* or cancel/);
    expect(io.stdin.isRaw).toBe(true);
    io.stdin.write('d');
    expect(await interrupts.detached).toBe('SIGINT');
    expect(io.stdin.isRaw).toBe(false);
    expect(cancel).not.toHaveBeenCalled();
  });

  it('cancels with c and goes on following; the next one detaches', async () => {
    const { io, interrupts, cancel } = listen({ isTty: true });
    io.signal('SIGINT');
    io.stdin.write('c');
    await vi.waitFor(() => expect(cancel).toHaveBeenCalledOnce());
    expect(await isOpen(interrupts.detached)).toBe(true);
    io.signal('SIGINT');
    expect(await interrupts.detached).toBe('SIGINT');
  });

  it('goes on with any other key and asks again the next time', async () => {
    const { io, lines, interrupts } = listen({ isTty: true });
    io.signal('SIGINT');
    io.stdin.write('x');
    expect(await isOpen(interrupts.detached)).toBe(true);
    io.signal('SIGINT');
    expect(lines).toHaveLength(2);
  });

  it('detaches at the second one, whether it comes as a signal or as a key', async () => {
    const bySignal = listen({ isTty: true });
    bySignal.io.signal('SIGINT');
    bySignal.io.signal('SIGINT');
    expect(await bySignal.interrupts.detached).toBe('SIGINT');
    const byKey = listen({ isTty: true });
    byKey.io.signal('SIGINT');
    byKey.io.stdin.write('\u0003');
    expect(await byKey.interrupts.detached).toBe('SIGINT');
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('detaches at once by %s without a terminal', async (name) => {
    const { io, interrupts, lines } = listen({ isTty: false });
    io.signal(name);
    expect(await interrupts.detached).toBe(name);
    expect(lines).toEqual([]);
  });

  it('gives the terminal back when it stops listening', () => {
    const { io, interrupts } = listen({ isTty: true });
    io.signal('SIGINT');
    interrupts.close();
    expect(io.stdin.isRaw).toBe(false);
  });
});

describe('a signal before the run is followed', () => {
  it('breaks off what can be broken off, with exit code 130', async () => {
    const io = createTestIo();
    const early = stopEarly(io);
    const work = early.unlessStopped(new Promise(() => undefined));
    io.signal('SIGINT');
    await expect(work).rejects.toMatchObject({ exitCode: 130, message: /no run was started/ });
  });

  it('lets the start of a run end, unless there is a second one', async () => {
    const io = createTestIo();
    const early = stopEarly(io);
    io.signal('SIGTERM');
    await expect(early.unlessInsisted(Promise.resolve('started'), 'left')).resolves.toBe('started');
    expect(early.signal).toBe('SIGTERM');
    const work = early.unlessInsisted(new Promise(() => undefined), 'left');
    io.signal('SIGINT');
    await expect(work).rejects.toMatchObject({ exitCode: 130, message: 'left' });
  });
});
