import { existsSync, readFileSync } from 'node:fs';
import { homedir, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig';
import { ConfigError, expandHome, readConfigFile, type ConfigFile, type ModelSettings } from './config-file.ts';
import { homePaths, homeProblem } from './home.ts';
import type { SandboxMode } from './policy/policy.ts';

export { ConfigError, type ModelSettings } from './config-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A value and where it came from: `default`, a variable's name, or `config.yaml`. */
export interface Setting<Value> {
  readonly value: Value;
  readonly source: string;
}

/** A value that shows itself to nobody who does not ask for it by name. */
export interface Secret {
  reveal(): string;
  toJSON(): 'set';
}

/** What no run on this host may exceed. */
export interface Ceiling {
  readonly sandbox: SandboxMode;
  /** Folders a workspace may be in; undefined: anywhere. */
  readonly roots?: readonly string[];
  readonly network: boolean;
}

/** How to reach Temporal. `embedded` servers tell their address through ERRAND_TEMPORAL_ADDRESS or `ensureServer`. */
export interface TemporalSettings {
  readonly server: 'embedded' | 'external';
  readonly address: Setting<string | undefined>;
  readonly namespace: Setting<string>;
  /** Connection options of an external server, credentials included: never print them. */
  readonly connection: ClientConnectConfig['connectionOptions'];
}

/** A program errand needs; `problem` says why it is missing or of no use. */
export interface FoundTool {
  readonly path: string | undefined;
  readonly version?: string;
  readonly problem?: string;
}

/** Every setting of this process, read once. */
export interface Config {
  /** Root of errand's own tree. */
  readonly project: string;
  readonly home: Setting<string>;
  readonly configFile: string;
  /** Whether something could not be read and defaults stand in for it; only where the caller allowed that. */
  readonly isDamaged: boolean;
  readonly model: Setting<string | undefined>;
  readonly apiKey: Setting<Secret | undefined>;
  readonly authToken: Setting<Secret | undefined>;
  readonly baseUrl: Setting<string | undefined>;
  readonly temporal: TemporalSettings;
  readonly ceiling: Setting<Ceiling>;
  readonly limits: {
    /** Continue as new at this many events; undefined: at the server's hint. */
    readonly historyEvents: Setting<number | undefined>;
    readonly outageMs: Setting<number>;
    /** Longest silence of a model stream. */
    readonly idleTimeoutMs: Setting<number>;
    /** Time between two looks of a worker for agents that were closed without an ending. */
    readonly reconcileMs: Setting<number>;
    /** Memory that all processes of one shell command may use together. */
    readonly commandMemoryBytes: Setting<number>;
    readonly commandProcesses: Setting<number>;
  };
  readonly caps: {
    /** Agents one run may start. */
    readonly total: Setting<number>;
    /** Agents one turn may start. */
    readonly perTurn: Setting<number>;
  };
  readonly models: Setting<Readonly<Record<string, ModelSettings>>>;
  readonly tools: { readonly temporal: Setting<FoundTool>; readonly bwrap: Setting<FoundTool> };
}

export interface LoadConfigOptions {
  readonly env: Environment;
  /** What a relative ERRAND_HOME starts from. Default: the current folder. */
  readonly cwd?: string;
  /** For who only looks or stops: hears what cannot be read, and defaults stand in for it. Missing: it is thrown. */
  readonly onProblem?: (problem: ConfigError) => void;
}

const DEFAULT_LIMITS = { outageMs: 24 * 3600_000, idleTimeoutMs: 300_000, reconcileMs: 60_000, commandProcesses: 2048 };
const DEFAULT_CAPS = { total: 64, perTurn: 8 };

// The simulator's models cost nothing: a demo shows a whole bill.
const FREE = { price: { input: 0, output: 0 } };
const SIMULATED_MODELS = { 'sim-1': FREE, 'sim-small': FREE };

/** The one reader of the environment and of `config.yaml`. Throws ConfigError. */
export function loadConfig({ env, cwd = process.cwd(), onProblem }: LoadConfigOptions): Config {
  const project = dirname(dirname(fileURLToPath(import.meta.url)));
  const home = homeSetting(env, cwd);
  assertUsable(home);
  const { configFile } = homePaths(home.value);
  const reader = new SettingReader(onProblem);
  const file = reader.read(() => readConfigFile(configFile), {});
  const baseUrl = reader.read(() => urlVariable(env, 'ANTHROPIC_BASE_URL'), { value: undefined, source: 'default' });
  const temporal = reader.later(() => temporalSettings(env));
  const tools = reader.read(() => toolSettings(env, project), NO_TOOLS);
  return {
    project,
    home,
    configFile,
    isDamaged: reader.isDamaged,
    model: variable(env, 'ERRAND_MODEL') ?? fromFile(file.model, undefined),
    apiKey: secretVariable(env, 'ANTHROPIC_API_KEY'),
    authToken: secretVariable(env, 'ANTHROPIC_AUTH_TOKEN'),
    baseUrl,
    // No default stands in for a server: a command would speak to another one than the run's.
    get temporal() {
      return temporal();
    },
    ceiling: ceilingSetting(file),
    limits: limitSettings(file),
    caps: capSettings(file),
    models: { value: { ...SIMULATED_MODELS, ...file.models }, source: file.models ? 'config.yaml' : 'default' },
    tools,
  };
}

const NO_TOOLS: Config['tools'] = {
  temporal: { value: { path: undefined }, source: 'default' },
  bwrap: { value: { path: undefined }, source: 'default' },
};

/** Reads settings one by one; a ConfigError is thrown, or handed on where somebody hears it. */
class SettingReader {
  readonly #onProblem: LoadConfigOptions['onProblem'];
  isDamaged = false;

  constructor(onProblem: LoadConfigOptions['onProblem']) {
    this.#onProblem = onProblem;
  }

  read<Value>(look: () => Value, fallback: Value): Value {
    try {
      return look();
    } catch (error) {
      this.#tell(error);
      return fallback;
    }
  }

  /** The same without a fallback: what could not be read is thrown when it is asked for. */
  later<Value>(look: () => Value): () => Value {
    try {
      const value = look();
      return () => value;
    } catch (error) {
      this.#tell(error);
      return () => {
        throw error;
      };
    }
  }

  #tell(error: unknown): void {
    if (!(error instanceof ConfigError) || this.#onProblem === undefined) throw error;
    this.isDamaged = true;
    this.#onProblem(error);
  }
}

/** Whether a model server can be asked at all: a key, a token, or an address that may need neither. */
export function hasModelAccess(config: Config): boolean {
  return [config.apiKey, config.authToken, config.baseUrl].some((setting) => setting.value !== undefined);
}

function homeSetting(env: Environment, cwd: string): Setting<string> {
  const given = variable(env, 'ERRAND_HOME');
  if (given) return { ...given, value: resolve(cwd, expandHome(given.value)) };
  return { value: join(env['HOME'] || homedir(), '.errand'), source: 'default' };
}

function assertUsable({ value, source }: Setting<string>): void {
  const problem = homeProblem(value);
  if (problem === undefined) return;
  const name = source === 'default' ? `The default ERRAND_HOME is ${value}` : `${source} is ${value}`;
  throw new ConfigError(
    `${name}: ${problem}. Set ERRAND_HOME to another folder, or use the errand that belongs to it.`,
  );
}

// An empty variable is one that is not set: that is how a shell unsets it for one command.
function variable(env: Environment, name: string): Setting<string> | undefined {
  const value = env[name]?.trim();
  return value ? { value, source: name } : undefined;
}

function secretVariable(env: Environment, name: string): Setting<Secret | undefined> {
  const given = variable(env, name);
  if (!given) return { value: undefined, source: 'default' };
  return { value: { reveal: () => given.value, toJSON: () => 'set' }, source: name };
}

function urlVariable(env: Environment, name: string): Setting<string | undefined> {
  const given = variable(env, name);
  if (!given) return { value: undefined, source: 'default' };
  if (URL.canParse(given.value) && /^https?:/.test(given.value)) return given;
  throw new ConfigError(`${name} is ${JSON.stringify(given.value)}: expected a URL such as https://host:port.`);
}

function fromFile<Value>(value: Value | undefined, fallback: Value): Setting<Value> {
  return value === undefined ? { value: fallback, source: 'default' } : { value, source: 'config.yaml' };
}

function limitSettings({ limits = {} }: ConfigFile): Config['limits'] {
  return {
    historyEvents: fromFile(limits.historyEvents, undefined),
    outageMs: fromFile(limits.outageMs, DEFAULT_LIMITS.outageMs),
    idleTimeoutMs: fromFile(limits.idleTimeoutMs, DEFAULT_LIMITS.idleTimeoutMs),
    reconcileMs: fromFile(limits.reconcileMs, DEFAULT_LIMITS.reconcileMs),
    commandMemoryBytes: fromFile(limits.commandMemoryBytes, defaultCommandMemoryBytes()),
    commandProcesses: fromFile(limits.commandProcesses, DEFAULT_LIMITS.commandProcesses),
  };
}

/** Half of what the machine, or the container, has; a small one gives a build as much as it can. */
function defaultCommandMemoryBytes(): number {
  const constrained = process.constrainedMemory() || Infinity;
  return Math.max(2 * 1024 ** 3, Math.floor(Math.min(totalmem(), constrained) / 2));
}

function capSettings({ caps = {} }: ConfigFile): Config['caps'] {
  return {
    total: fromFile(caps.total, DEFAULT_CAPS.total),
    perTurn: fromFile(caps.perTurn, DEFAULT_CAPS.perTurn),
  };
}

function ceilingSetting({ ceiling }: ConfigFile): Setting<Ceiling> {
  if (ceiling === undefined) return { value: { sandbox: 'workspace-write', network: false }, source: 'default' };
  const wanted = typeof ceiling === 'string' ? { sandbox: ceiling } : ceiling;
  const sandbox = wanted.sandbox ?? 'workspace-write';
  const network = wanted.network ?? sandbox === 'full-access';
  return { value: { sandbox, network, roots: wanted.roots?.map(expandHome) }, source: 'config.yaml' };
}

function temporalSettings(env: Environment): TemporalSettings {
  const embedded = variable(env, 'ERRAND_TEMPORAL_ADDRESS');
  const noNamespace = { value: 'default', source: 'default' };
  if (embedded) return { server: 'embedded', address: embedded, namespace: noNamespace, connection: {} };
  const { connectionOptions: connection, namespace } = readProfile(env);
  if (connection.address === undefined && !env['TEMPORAL_PROFILE']) {
    return {
      server: 'embedded',
      address: { value: undefined, source: 'default' },
      namespace: noNamespace,
      connection: {},
    };
  }
  const source = (name: string) => (env[name] ? name : 'Temporal profile');
  return {
    server: 'external',
    address: { value: connection.address ?? 'localhost:7233', source: source('TEMPORAL_ADDRESS') },
    namespace: namespace === undefined ? noNamespace : { value: namespace, source: source('TEMPORAL_NAMESPACE') },
    connection,
  };
}

function readProfile(env: Environment): ClientConnectConfig {
  const given = Object.entries(env).filter((entry): entry is [string, string] => Boolean(entry[1]));
  try {
    return loadClientConnectConfig({ overrideEnvVars: Object.fromEntries(given) });
  } catch (error) {
    throw new ConfigError(
      `The Temporal settings (TEMPORAL_* variables and profile file) cannot be used: ${String(error)}`,
    );
  }
}

/** Written by the set-up scripts; missing in a tree that was never set up. */
interface ToolsFile {
  readonly temporal?: { readonly path?: string | null; readonly version?: string; readonly problem?: string };
  readonly bwrap?: { readonly path?: string | null; readonly problem?: string };
}

function toolSettings(env: Environment, project: string): Config['tools'] {
  const file = join(project, '.cache', 'tools.json');
  const found = readToolsFile(file);
  const tool = (name: 'temporal' | 'bwrap', variableName: string): Setting<FoundTool> => {
    const given = variable(env, variableName);
    if (given) return { value: givenTool(given), source: variableName };
    const entry = found[name];
    return { value: { ...entry, path: entry?.path ?? undefined }, source: entry ? file : 'default' };
  };
  return { temporal: tool('temporal', 'ERRAND_TEMPORAL_CLI'), bwrap: tool('bwrap', 'ERRAND_BWRAP') };
}

function givenTool({ value, source }: Setting<string>): FoundTool {
  return existsSync(value)
    ? { path: value }
    : { path: undefined, problem: `${source} names ${value}, which does not exist` };
}

function readToolsFile(file: string): ToolsFile {
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ToolsFile;
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: ${String(error)}. Delete it and run npm start or npm test again.`);
  }
}
