import type { CommandPattern } from './command-rules.ts';
import { commandSpellings, commandWords, isAllowedCommand, parseCommandPattern } from './command-rules.ts';
import type { PathPattern } from './path-pattern.ts';
import { parsePathPattern } from './path-pattern.ts';
import { resolvePath } from './paths.ts';
import type { Action, Layer, Verdict } from './policy.ts';
import { ANY_NAME, BUILT_IN_TOOLS, builtInTool, plainName, ruleName } from './tool-names.ts';
import { matchesTokens, starTokens } from './wildcard.ts';

/** A rule that cannot be read. It stops the start: a deny that is silently skipped protects nobody. */
export class RuleError extends Error {
  override readonly name = 'RuleError';
}

/** What stands between the brackets of a rule. */
type Specifier =
  | { readonly kind: 'all' }
  | { readonly kind: 'path'; readonly matches: PathPattern }
  | { readonly kind: 'command'; readonly matches: CommandPattern }
  | { readonly kind: 'type'; readonly matches: (agentType: string) => boolean };

export interface Rule {
  /** As it was written. */
  readonly text: string;
  /** Name of a tool, or a wildcard pattern of names. */
  readonly tool: string;
  readonly specifier: Specifier;
}

export interface ParsedLayer {
  readonly owner: string;
  readonly base?: string;
  readonly deny: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly allow: readonly Rule[];
}

const PATH_TOOLS: readonly string[] = ['read', 'write', 'edit', 'glob', 'grep'];

/** Layers are frozen and asked about every file of a listing: each is parsed once. */
const parsedLayers = new WeakMap<Layer, ParsedLayer>();

/** Throws a RuleError for the first rule of the layer that cannot be read. */
export function parseLayer(layer: Layer): ParsedLayer {
  const known = parsedLayers.get(layer);
  if (known) return known;
  const parse = (rules: readonly string[]): Rule[] => rules.map((text) => parseRule(text, layer));
  const parsed = { ...layer, deny: parse(layer.deny), ask: parse(layer.ask), allow: parse(layer.allow) };
  parsedLayers.set(layer, parsed);
  return parsed;
}

/** Throws a RuleError for the first malformed rule; to be called where a run starts. */
export function checkLayers(layers: readonly Layer[]): void {
  layers.forEach(parseLayer);
}

/** Reads one rule: `Tool`, `Tool(specifier)` or `*`. */
export function parseRule(text: string, layer: Pick<Layer, 'owner' | 'base'>): Rule {
  const fail = (reason: string): never => {
    throw new RuleError(`Rule ${JSON.stringify(text)} of ${layer.owner} cannot be read: ${reason}`);
  };
  const match = /^\s*([^()\s]+)\s*(?:\(([^]*)\))?\s*$/.exec(text);
  if (!match) return fail('a rule is Tool or Tool(specifier), such as Bash(npm test:*) or Read(./secrets/**)');
  const [, name = '', inner] = match;
  const tool = name === ANY_NAME || name.startsWith('mcp__') ? name : builtInTool(name);
  if (tool === undefined) return fail(`there is no tool ${JSON.stringify(name)}; valid are ${validNames()}`);
  try {
    return { text, tool, specifier: parseSpecifier(tool, inner?.trim(), layer.base) };
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** Puts a home folder in the place of `~/`. For the border where rules are read: a policy knows no homes. */
export function withHome(rule: string, home: string): string {
  return rule.replace(/\(\s*~(?=\/|\s*\))/, () => `(/${home}`);
}

/** The strictest list of the layer that has a rule for the action, and that rule; undefined: the layer abstains. */
export function layerOpinion(layer: ParsedLayer, action: Action): { verdict: Verdict; rule: string } | undefined {
  for (const verdict of ['deny', 'ask'] as const) {
    const rule = layer[verdict].find((one) => isRestricted(one, action, layer.base));
    if (rule) return { verdict, rule: rule.text };
    const unsure = layer[verdict].find((one) => isUnreadable(one, action));
    if (unsure) return { verdict, rule: `${unsure.text} (the command cannot be read, so it may match)` };
  }
  const allow = allowingRule(layer.allow, action);
  return allow && { verdict: 'allow', rule: allow.text };
}

/** Whether a layer takes the whole tool away, so that it need not even be offered. */
export function deniedTool(layer: ParsedLayer, tool: string): Rule | undefined {
  return layer.deny.find((rule) => rule.specifier.kind === 'all' && coversStrictly(rule, tool));
}

function parseSpecifier(tool: string, inner: string | undefined, base: string | undefined): Specifier {
  if (inner === undefined) return { kind: 'all' };
  if (inner === '') throw new Error(`there is nothing between the brackets; write ${ruleName(tool)} for every use`);
  if (inner === ANY_NAME && tool !== ANY_NAME) return { kind: 'all' };
  if (PATH_TOOLS.includes(tool)) return { kind: 'path', matches: parsePathPattern(inner, base) };
  if (tool === 'bash') return { kind: 'command', matches: parseCommandPattern(inner) };
  if (tool === 'task') {
    const tokens = starTokens(plainName(inner));
    return { kind: 'type', matches: (agentType) => matchesTokens(tokens, plainName(agentType)) };
  }
  throw new Error(`${ruleName(tool)} takes no specifier; valid with one are Bash, Read, Write, Edit, Glob, Grep, Task`);
}

/** Deny and ask: one matching part, path or word is enough. */
function isRestricted(rule: Rule, action: Action, base: string | undefined): boolean {
  const { specifier } = rule;
  if (specifier.kind === 'path' && action.tool === 'bash') return namesPath(rule.tool, specifier.matches, action, base);
  if (!coversStrictly(rule, action.tool)) return false;
  switch (specifier.kind) {
    case 'all':
      return true;
    case 'path':
      return action.path !== undefined && specifier.matches(action.path);
    case 'command':
      return commandSpellings(action.command ?? '')?.some(specifier.matches) ?? false;
    case 'type':
      return action.agentType === undefined || specifier.matches(action.agentType);
  }
}

/** A command that cannot be taken apart might well do what a rule forbids. */
function isUnreadable(rule: Rule, action: Action): boolean {
  const about = rule.specifier.kind === 'command' && action.tool === 'bash';
  return about && commandSpellings(action.command ?? '') === undefined;
}

/** An allowed command line may be put together from several rules: each part needs one of them. */
function allowingRule(rules: readonly Rule[], action: Action): Rule | undefined {
  const single = rules.find((rule) => isAllowed(rule, action));
  if (single || action.tool !== 'bash') return single;
  const patterns = rules.flatMap(({ specifier }) => (specifier.kind === 'command' ? [specifier.matches] : []));
  return isAllowedCommand(action.command ?? '', patterns)
    ? rules.find(({ specifier }) => specifier.kind === 'command')
    : undefined;
}

function isAllowed({ tool, specifier }: Rule, action: Action): boolean {
  if (!namesTool(tool, action.tool) && !ALSO_ALLOWS[tool]?.includes(action.tool)) return false;
  switch (specifier.kind) {
    case 'all':
      return true;
    case 'path':
      return action.path !== undefined && specifier.matches(action.path);
    case 'command':
      return isAllowedCommand(action.command ?? '', [specifier.matches]);
    case 'type':
      return action.agentType !== undefined && specifier.matches(action.agentType);
  }
}

const ALSO_ALLOWS: Readonly<Record<string, readonly string[]>> = { read: ['glob', 'grep'], edit: ['write'] };

/**
 * What a deny or ask covers beyond its own tool. What may not be read is not to be learnt or touched by other tools
 * either. A path closed to edit is closed to write and the other way round; the bare names take away just that tool.
 */
function coversStrictly({ tool, specifier }: Rule, wanted: string): boolean {
  if (namesTool(tool, wanted)) return true;
  if (tool === 'read') return PATH_TOOLS.includes(wanted);
  return (
    specifier.kind === 'path' && (tool === 'edit' || tool === 'write') && (wanted === 'edit' || wanted === 'write')
  );
}

function namesTool(pattern: string, tool: string): boolean {
  return matchesTokens(starTokens(pattern), tool);
}

/**
 * Best effort: a shell command that names a protected path in so many words. It does not see through variables,
 * wildcards or programs; what a command can really reach is the sandbox's business.
 */
function namesPath(tool: string, matches: PathPattern, action: Action, base = '/'): boolean {
  if (tool === 'glob' || tool === 'grep') return false;
  const { words, writes } = commandWords(action.command ?? '');
  const named = (tool === 'read' ? words : writes).flatMap((word) => [word, word.replace(/^@|^[^=]*=@?/, '')]);
  return named.some((word) => word !== '' && matches(resolvePath(base, word)));
}

function validNames(): string {
  return `${BUILT_IN_TOOLS.map(ruleName).join(', ')}, mcp__<server>__<tool> and *`;
}
