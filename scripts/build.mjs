// npm run build: packages and dist.
import { enter } from './setup/node-version.mjs';

enter(async () => {
  const { build } = await import('./setup/set-up.mjs');
  return { main: () => build() };
});
