// The supervisor on a clock that is set back an hour as soon as the command has had time to start.
const now = Date.now.bind(Date);
const startMs = now();
Date.now = () => (now() - startMs > 500 ? now() - 3600_000 : now());

await import('../../src/jobs/supervisor.ts');

export {};
