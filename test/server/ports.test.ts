import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { claimPorts } from '../../src/server/ports.ts';

let folder = '';
const lines: string[] = [];
const log = (line: string) => void lines.push(line);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'errand-ports-'));
  lines.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('ports', () => {
  it('are chosen once, below the range the system hands out, and remembered', async () => {
    const file = join(folder, 'ports.json');
    const first = await claimPorts({ file, log });
    expect(await claimPorts({ file, log })).toEqual(first);
    expect(new Set(Object.values(first)).size).toBe(4);
    expect(Math.max(...Object.values(first))).toBeLessThan(32_768);
    expect(lines).toEqual([]);
  });

  it('give way to a stranger one by one', async () => {
    const file = join(folder, 'ports.json');
    const first = await claimPorts({ file, log });
    const stranger = createServer().listen({ host: '127.0.0.1', port: first.ui });
    await once(stranger, 'listening');
    const second = await claimPorts({ file, log });
    stranger.close();
    expect(second).toEqual({ ...first, ui: second.ui });
    expect(second.ui).not.toBe(first.ui);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(second);
    expect(lines).toEqual([`port ${first.ui} (ui) is taken by another program; the server now uses ${second.ui}`]);
  });

  it.each(['', '{"grpc":70000}', '[]', 'null'])('are chosen anew when the file says %j', async (text) => {
    const file = join(folder, 'ports.json');
    writeFileSync(file, text);
    expect((await claimPorts({ file, log })).grpc).toBeGreaterThan(0);
  });
});
