// Appends large records until it is killed or fails; prints the id of each one that was acknowledged.
import { writeSync } from 'node:fs';
import { openTranscript } from '../../../src/store/transcript.ts';

const [file = '', name = '', bytes = '0'] = process.argv.slice(2);
const transcript = await openTranscript(file, { create: true });
for (let i = 0; ; i += 1) {
  const id = `r:0::${i}:${name}`;
  await transcript.append({ id, type: 'event', turn: i, name: 'fill', data: { text: 'x'.repeat(Number(bytes)) } });
  writeSync(1, `${id}\n`);
}
