import type { Environment } from './environment.ts';

/** What the sandbox must know of the machine and of the worker; read once, by the composition root. */
export interface SandboxHost {
  /** The bubblewrap program, or null when none was found. */
  readonly bwrapPath: string | null;
  /** Real home folder of the user. */
  readonly userHome: string;
  /** ERRAND_HOME: no command sees into it. */
  readonly errandHome: string;
  /** The worker's environment; only what is on the allow-list reaches a command. */
  readonly env: Environment;
  /** Folder of the keyless demo, set by it where bubblewrap does not work. */
  readonly demoWorkspace?: string;
  /** More files and folders to hide. */
  readonly masked?: readonly string[];
}
