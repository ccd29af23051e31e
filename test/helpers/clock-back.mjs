// Preloaded into a worker (NODE_OPTIONS=--import): once the file CLOCK_BACK exists, its clock is an hour behind.
import { existsSync } from 'node:fs';

const now = Date.now.bind(Date);
const backMs = () => (existsSync(process.env.CLOCK_BACK) ? 3600_000 : 0);

globalThis.Date = class extends Date {
  constructor(...given) {
    if (given.length === 0) super(now() - backMs());
    else super(...given);
  }
  static now() {
    return now() - backMs();
  }
};
