import { crashPoint } from '../../src/crash-points.ts';
import type { CrashPoint } from '../../src/crash-points.ts';

// Program of its own: comes to a crash point so many times and says how often it lived on.
const [, , point = '', times = '1'] = process.argv;
for (let time = 1; time <= Number(times); time += 1) {
  crashPoint(point as CrashPoint);
  process.stdout.write(`${time}\n`);
}
