import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { connect } from '../client.ts';
import { hasModelAccess, type Config, type Setting } from '../config.ts';
import { homeWriteProblem } from '../home.ts';
import { probeSandbox } from '../sandbox/probe.ts';
import { assertOwnHome, databaseProblem, serverStatus, troubleWords, type InstanceStatus } from '../server/index.ts';
import { homeLines, lookAtHome } from './doctor-home.ts';
import { EXIT } from './cli-error.ts';
import { readConfigToLook, type CommandContext } from './context.ts';
import { formatTable } from './format.ts';
import { printJson, printLine } from './io.ts';

export function addDoctor(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('what works here and what does not, every setting and where it came from')
    .option(
      '--clean',
      'remove what is left over: jobs and files of agents that have ended, stale sockets, drafts, starts that were cut short',
    )
    .option('--json', 'one JSON object')
    .action((options: DoctorOptions) => doctor(context, options));
}

/** One thing that was looked at. `fix` says what to do about it. */
interface Check {
  readonly name: string;
  readonly state: 'ok' | 'note' | 'problem';
  readonly text: string;
  readonly fix?: string;
}

interface ShownSetting {
  readonly name: string;
  readonly value: unknown;
  readonly source: string;
}

interface DoctorOptions {
  readonly clean?: true;
  readonly json?: true;
}

async function doctor(context: CommandContext, { clean, json }: DoctorOptions): Promise<void> {
  const { io } = context;
  const config = readConfigToLook(context);
  // Its leftovers may be what the original's server works on.
  if (clean) assertOwnHome(config.home.value);
  const settings = shownSettings(config);
  const checks = await lookAround(context, config);
  const found = await lookAtHome(config, clean === true);
  if (json) printJson(io.stdout, { settings, checks, ...found });
  else
    for (const line of [...settingLines(settings), '', ...checks.flatMap(checkLines), ...homeLines(found)])
      printLine(io.stdout, line);
  if (checks.some(({ state }) => state === 'problem')) context.exit(EXIT.failed);
}

async function lookAround(context: CommandContext, config: Config): Promise<readonly Check[]> {
  const looked: readonly (Promise<Check> | Promise<readonly Check[]>)[] = [
    gitCheck(context),
    sandboxCheck(config),
    diskCheck(config),
    ...serverChecks(config),
  ];
  const found = (await Promise.all<Check | readonly Check[]>(looked)).flat();
  return [
    nodeCheck(),
    ...configChecks(config),
    ...homeChecks(config),
    temporalCheck(config),
    ...databaseChecks(config),
    modelCheck(config),
    ...found,
  ];
}

function shownSettings(config: Config): readonly ShownSetting[] {
  const { temporal, limits, caps, tools } = config;
  const named: readonly (readonly [string, Setting<unknown>])[] = [
    ['ERRAND_HOME', config.home],
    ['model', config.model],
    ['ANTHROPIC_API_KEY', config.apiKey],
    ['ANTHROPIC_AUTH_TOKEN', config.authToken],
    ['ANTHROPIC_BASE_URL', config.baseUrl],
    ['Temporal server', { value: temporal.server, source: temporal.address.source }],
    ['Temporal address', temporal.address],
    ['Temporal namespace', temporal.namespace],
    ['ceiling', config.ceiling],
    ...Object.entries(limits).map(([name, setting]) => [`limits.${name}`, setting] as const),
    ...Object.entries(caps).map(([name, setting]) => [`caps.${name}`, setting] as const),
    ['models', config.models],
    ['Temporal CLI', { value: tools.temporal.value.path, source: tools.temporal.source }],
    ['bubblewrap', { value: tools.bwrap.value.path, source: tools.bwrap.source }],
  ];
  // Through JSON, so that a secret shows itself as what it may show.
  return named.map(([name, { value, source }]) => ({
    name,
    value: JSON.parse(JSON.stringify(value ?? null)) as unknown,
    source,
  }));
}

function settingLines(settings: readonly ShownSetting[]): readonly string[] {
  return formatTable(settings.map(({ name, value, source }) => [name, toWords(value), `(${source})`])).split('\n');
}

/** A value as a person reads it: `a, b` for a list, `name value` pairs for an object, one in the other in brackets. */
function toWords(value: unknown, depth = 0): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'object') return String(value);
  const parts = Array.isArray(value)
    ? value.map((one) => toWords(one, depth + 1))
    : Object.entries(value).map(([name, one]) => `${name} ${toWords(one, depth + 1)}`);
  const text = parts.length === 0 ? '-' : parts.join(', ');
  return depth > 0 && parts.length > 1 ? `(${text})` : text;
}

const MARKS = { ok: 'ok     ', note: 'note   ', problem: 'PROBLEM' } as const;

function checkLines({ name, state, text, fix }: Check): readonly string[] {
  return [`${MARKS[state]} ${name}: ${text}`, ...(fix === undefined ? [] : [`        ${fix}`])];
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isNew = major > 20 || (major === 20 && minor >= 12);
  const text = `Node ${process.versions.node} on ${process.platform} ${process.arch}`;
  return isNew
    ? { name: 'Node', state: 'ok', text }
    : { name: 'Node', state: 'problem', text, fix: 'Install Node 20.12 or later.' };
}

async function gitCheck({ io }: CommandContext): Promise<Check> {
  try {
    const { stdout } = await promisify(execFile)('git', ['--version'], { env: { PATH: io.env['PATH'] } });
    return { name: 'git', state: 'ok', text: stdout.trim() };
  } catch {
    return { name: 'git', state: 'note', text: 'not found', fix: 'Install git: without it a run has no diff.' };
  }
}

function temporalCheck({ tools, temporal }: Config): Check {
  const { path, version, problem } = tools.temporal.value;
  if (path !== undefined && problem === undefined)
    return { name: 'Temporal CLI', state: 'ok', text: `${path}${version ? ` (${version})` : ''}` };
  const state = temporal.server === 'external' ? 'note' : 'problem';
  return {
    name: 'Temporal CLI',
    state,
    text: problem ?? 'not found',
    fix: 'Run node scripts/setup.mjs, or set ERRAND_TEMPORAL_CLI.',
  };
}

function configChecks({ isDamaged, configFile }: Config): readonly Check[] {
  if (!isDamaged) return [];
  const text = 'not all settings can be read; standard error says which';
  return [{ name: 'Settings', state: 'problem', text, fix: `Mend ${configFile}, or the variable that was named.` }];
}

function homeChecks({ home }: Config): readonly Check[] {
  const problem = homeWriteProblem(home.value);
  if (problem === undefined) return [];
  return [
    { name: 'Home', state: 'problem', text: problem, fix: 'Make it writable, or set ERRAND_HOME to another folder.' },
  ];
}

function databaseChecks({ home, tools }: Config): readonly Check[] {
  const { path, problem } = tools.temporal.value;
  if (path === undefined || problem !== undefined) return [];
  const [text, ...fix] = databaseProblem({ home: home.value, cli: path })?.split('\n') ?? [];
  return text === undefined ? [] : [{ name: 'Database', state: 'problem', text, fix: fix.join('\n        ') }];
}

async function sandboxCheck({ tools }: Config): Promise<Check> {
  const { contains, problem, fix } = await probeSandbox(tools.bwrap.value.path ?? null);
  if (contains) return { name: 'Sandbox', state: 'ok', text: 'bubblewrap holds commands back' };
  const consequence = 'bash is refused until then, unless the ceiling and --sandbox are full-access.';
  return {
    name: 'Sandbox',
    state: 'problem',
    text: problem ?? 'it does not contain commands',
    fix: `${fix ?? ''} (${consequence})`,
  };
}

function modelCheck(config: Config): Check {
  if (hasModelAccess(config))
    return { name: 'Model', state: 'ok', text: config.baseUrl.value ?? 'https://api.anthropic.com' };
  const fix = 'Set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for another server. errand demo needs neither.';
  return { name: 'Model', state: 'note', text: 'no key and no address', fix };
}

const LOW_DISK_BYTES = 2 * 1024 ** 3;

async function diskCheck({ home }: Config): Promise<Check> {
  const { bavail, bsize } = await spaceAt(home.value);
  const free = bavail * bsize;
  const text = `${formatBytes(free)} free at ${home.value}`;
  // Room would be of no use there, and that it is read-only is told for itself.
  if (homeWriteProblem(home.value) !== undefined) return { name: 'Disk', state: 'note', text };
  if (free >= LOW_DISK_BYTES) return { name: 'Disk', state: 'ok', text };
  return { name: 'Disk', state: 'problem', text, fix: 'Make room: a full disk makes every run wait.' };
}

function formatBytes(bytes: number): string {
  return bytes < 1024 ** 3 ? `${(bytes / 1024 ** 2).toFixed(1)} MiB` : `${(bytes / 1024 ** 3).toFixed(1)} GiB`;
}

async function spaceAt(path: string): Promise<{ bavail: number; bsize: number }> {
  try {
    return await statfs(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(path) !== path) return spaceAt(dirname(path));
    throw error;
  }
}

function serverChecks(config: Config): readonly Promise<readonly Check[]>[] {
  return [embeddedChecks(config), ...(config.temporal.server === 'external' ? [externalCheck(config)] : [])];
}

async function embeddedChecks(config: Config): Promise<readonly Check[]> {
  const { instances, trouble } = await serverStatus({ home: config.home.value });
  if (trouble) return [{ name: 'Server', state: 'problem', text: troubleWords(config.home.value, trouble) }];
  const running = instances.filter((instance) => instance.running);
  if (running.length === 0)
    return [{ name: 'Server', state: 'note', text: 'nothing runs; any command that needs it starts it' }];
  return (await Promise.all(running.map((instance) => instanceChecks(config, instance)))).flat();
}

async function instanceChecks(
  config: Config,
  { embedded, address, workers }: InstanceStatus,
): Promise<readonly Check[]> {
  const ready = workers.filter(({ phase }) => phase === 'ready').length;
  const state = ready === workers.length && ready > 0 ? 'ok' : 'problem';
  const workersCheck: Check = { name: 'Workers', state, text: `${ready} of ${workers.length} ready` };
  if (!embedded) return [workersCheck];
  return [await reach('Server', config, address), workersCheck];
}

async function externalCheck(config: Config): Promise<readonly Check[]> {
  return [await reach('Temporal server', config, config.temporal.address.value)];
}

async function reach(name: string, config: Config, address: string | undefined): Promise<Check> {
  try {
    await (await connect(config.temporal, address)).close();
    return { name, state: 'ok', text: `${address} answers` };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { name, state: 'problem', text, fix: 'Look at errand status and its logs.' };
  }
}
