// Installs, builds, finds the tools; does nothing, quickly, when all of it is there.
import { enter } from './setup/node-version.mjs';

enter(async () => {
  const { setUp, needsTemporal } = await import('./setup/set-up.mjs');
  return { main: () => setUp({ needsTemporal: needsTemporal() }) };
});
