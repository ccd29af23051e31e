// npm start: set-up, then the job that was given, or the demo.
import { enter } from './setup/node-version.mjs';

enter(() => import('./setup/start-errand.mjs'));
