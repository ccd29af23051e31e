import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { LineCounter, parseDocument, type Document } from 'yaml';
import { z } from 'zod';
import { SANDBOX_MODES } from './policy/policy.ts';

/** A setting that cannot be used; the command line ends with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** USD per million tokens. */
const price = z.strictObject({
  input: z.number().min(0),
  output: z.number().min(0),
  /** Default: a tenth of `input`. */
  cacheRead: z.number().min(0).optional(),
  /** Default: a quarter more than `input`. */
  cacheWrite: z.number().min(0).optional(),
});

const model = z.strictObject({
  /** Tokens of context the model takes. */
  window: z.int().min(1).optional(),
  /** Tokens the model may answer with at once. */
  maxOutputTokens: z.int().min(1).optional(),
  price: price.optional(),
});

const root = z.string().refine((path) => isAbsolute(path) || path.startsWith('~/'), 'expected an absolute path');

const ceiling = z.union(
  [
    z.enum(SANDBOX_MODES),
    z.strictObject({
      sandbox: z.enum(SANDBOX_MODES).optional(),
      /** Folders a workspace may be in; default: anywhere. */
      roots: z.array(root).min(1).optional(),
      network: z.boolean().optional(),
    }),
  ],
  {
    error: `expected ${SANDBOX_MODES.join(' | ')}, or an object of sandbox, roots (absolute paths), network (true or false)`,
  },
);

const configFile = z.strictObject({
  model: z.string().min(1).optional(),
  ceiling: ceiling.optional(),
  limits: z
    .strictObject({
      historyEvents: z.int().min(20).optional(),
      outageMs: z.int().min(1000).optional(),
      idleTimeoutMs: z.int().min(100).optional(),
      reconcileMs: z.int().min(100).optional(),
      commandMemoryBytes: z
        .int()
        .min(64 * 1024 ** 2)
        .optional(),
      commandProcesses: z.int().min(16).optional(),
    })
    .optional(),
  caps: z
    .strictObject({
      total: z.int().min(0).optional(),
      perTurn: z.int().min(0).optional(),
    })
    .optional(),
  models: z.record(z.string(), model).optional(),
  fleet: z.undefined({ error: 'reserved for shared queues, which this version does not have; remove it' }).optional(),
});

/** What `config.yaml` may hold. */
export type ConfigFile = z.output<typeof configFile>;

/** What is known of one model beyond its name. */
export type ModelSettings = z.output<typeof model>;

/** Reads `config.yaml`; a missing or empty file is an empty one. Throws ConfigError with line and field. */
export function readConfigFile(file: string): ConfigFile {
  const text = readIfThere(file);
  if (text === undefined) return {};
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const broken = document.errors[0];
  if (broken) throw new ConfigError(`${file}:${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
  const parsed = configFile.safeParse(document.toJS() ?? {});
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.map((issue) => describeIssue({ file, document, lines, issue })).join('\n'));
}

/** `~/x` as the shell would read it. */
export function expandHome(path: string): string {
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ConfigError(`${file} cannot be read: ${message}`);
  }
}

interface IssuePlace {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
  readonly issue: z.core.$ZodIssue;
}

function describeIssue({ file, document, lines, issue }: IssuePlace): string {
  const key = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const path = key === undefined ? issue.path : [...issue.path, key];
  const where = `${file}:${lineOf(document, lines, path)}`;
  const field = path.map(String).join('.') || 'the whole file';
  if (key !== undefined)
    return `${where}: unknown setting "${field}". Valid here: ${validKeys(issue.path).join(', ')}.`;
  return `${where}: ${field} is ${JSON.stringify(document.toJS() && valueAt(document, path))}: ${issue.message}.`;
}

function valueAt(document: Document, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key],
    document.toJS(),
  );
}

function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  const node = document.getIn(path, true) as { range?: readonly [number, number, number] } | undefined;
  return node?.range ? lines.linePos(node.range[0]).line : 1;
}

function validKeys(path: readonly PropertyKey[]): readonly string[] {
  const [first, , third] = path;
  if (first === undefined) return Object.keys(configFile.shape).filter((key) => key !== 'fleet');
  if (first === 'limits') return Object.keys(configFile.shape.limits.unwrap().shape);
  if (first === 'caps') return Object.keys(configFile.shape.caps.unwrap().shape);
  if (first === 'ceiling') return ['sandbox', 'roots', 'network'];
  return Object.keys(third === 'price' ? price.shape : model.shape);
}
