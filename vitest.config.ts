import { defineConfig } from 'vitest/config';

// `unit` needs nothing but Node; `server` starts real Temporal servers and kills real processes, so few at once.
export default defineConfig({
  test: {
    // The tests with a server mostly wait for time-outs: one after another they would take twenty minutes.
    minWorkers: 1,
    maxWorkers: 3,
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
          testTimeout: 60_000,
          hookTimeout: 60_000,
          globalSetup: ['test/helpers/server-setup.ts'],
        },
      },
    ],
  },
});
