export { type ServerInfo } from './control.ts';
export { databaseProblem } from './database.ts';
export { ensureServer, type EnsureServerOptions } from './ensure-server.ts';
export { type OtherServer } from './instance.ts';
export {
  serverStatus,
  type InstanceStatus,
  type ProcessStatus,
  type ServerStatus,
  type WorkerStatus,
} from './server-status.ts';
export { assertOwnHome, homeTrouble, troubleWords, type HomeTrouble } from './whose-home.ts';
export { stopServer, type StopServerOptions } from './stop-server.ts';
