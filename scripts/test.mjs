// npm test: set-up, lint, types and all tests, in a home of their own.
import { enter } from './setup/node-version.mjs';

enter(() => import('./setup/run-tests.mjs'));
