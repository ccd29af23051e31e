import { defineConfig } from 'vitest/config';

// `unit` needs nothing but Node; `server` starts real Temporal servers and kills real processes, so few at once.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.server.test.ts'],
          // Some start programs, and the machine may be busy with those of others.
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'server',
          include: ['test/**/*.server.test.ts'],
          pool: 'forks',
          // They mostly wait for time-outs: a few at once cost little, one after another cost twenty minutes.
          poolOptions: { forks: { minForks: 1, maxForks: 3 } },
          testTimeout: 60_000,
          hookTimeout: 60_000,
          globalSetup: ['test/helpers/server-setup.ts'],
        },
      },
    ],
  },
});
