// Appends the same ids as its rival and some of its own, starting when it is told to, and prints what it got.
import { once } from 'node:events';
import { openTranscript } from '../../../src/store/transcript.ts';
import type { RecordDraft } from '../../../src/store/transcript.ts';

const [file = '', name = '', count = '0'] = process.argv.slice(2);
const transcript = await openTranscript(file, { create: true });
process.stdout.write('ready\n');
await once(process.stdin, 'data');

const won: string[] = [];
const seen: Record<string, unknown> = {};
for (let i = 0; i < Number(count); i += 1) {
  for (const id of [`r:0::${i}:shared`, `r:0::${i}:${name}`]) {
    const { record, isNew } = await transcript.append(event(id, i));
    if (isNew) won.push(id);
    seen[id] = record.type === 'event' ? record.data['by'] : undefined;
  }
}
await transcript.sync();
process.stdout.write(`${JSON.stringify({ won, seen, skipped: transcript.skipped })}\n`);
process.exit(0);

function event(id: string, i: number): RecordDraft {
  // Every twentieth record is large, so that writes overlap with the other's reads.
  return {
    id,
    type: 'event',
    turn: i,
    name: 'race',
    data: { by: name, text: 'x'.repeat(i % 20 === 0 ? 1_000_000 : 500) },
  };
}
