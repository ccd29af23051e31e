import { isInside, pathSegments } from './paths.ts';
import type { Action, Decision, Policy, SandboxMode, Verdict } from './policy.ts';
import { deniedTool, layerOpinion, parseLayer } from './rules.ts';
import { ANY_NAME } from './tool-names.ts';

/** What each mode lets an agent do when no rule says anything. */
const MODE_TOOLS: Readonly<Record<SandboxMode, readonly string[]>> = {
  'read-only': ['glob', 'grep', 'read', 'task', 'todo_write'],
  'workspace-write': ['bash', 'edit', 'glob', 'grep', 'read', 'task', 'todo_write', 'write'],
  'full-access': [ANY_NAME],
};

/** Places from which a workspace could arm itself or run code later; nobody may write there. In lower case. */
const SETTINGS_FOLDERS: readonly string[] = ['.claude', '.errand'];
const GIT_SETTINGS: readonly string[] = ['hooks', 'config', 'config.worktree'];

/**
 * Whether an agent with this policy may do this. Precedence:
 *
 * 1. Over the layers the strictest counts: a deny anywhere wins over an ask anywhere, an ask over an allow. Within a
 *    layer, too: a narrow allow does not lift a broad ask. A layer without a matching rule has no say.
 * 2. The policy's own limits are no opinions but ceilings: a tool outside the pool, a mode that does not let it, a path
 *    outside the roots, a protected place, no hops left. They deny, and no rule lifts them; that a child's file allows
 *    something cannot make a read-only parent's child write, and `full-access` lifts no deny.
 * 3. If all abstain the mode decides. No mode asks of its own accord, so a child's allow never has to lift a default.
 *
 * Where nobody can be asked (`approvals: deny`) an ask counts as a deny and is marked `unanswered`. A rule is named
 * before a ceiling, since it tells more. Throws a RuleError if a layer has a malformed rule.
 */
export function decide(policy: Policy, action: Action): Decision {
  const opinions = [...ruleDecisions(policy, action), ...ceilingDecisions(policy, action)];
  const decision = strictest(opinions) ?? modeDecision(policy, 'allow');
  return decision.verdict === 'ask' && policy.approvals === 'deny'
    ? { ...decision, verdict: 'deny', unanswered: true }
    : decision;
}

/** The strictest decision over several actions, all of which one call needs; a call without actions is decided by none. */
export function decideAll(policy: Policy, actions: readonly Action[]): Decision {
  return strictest(actions.map((action) => decide(policy, action))) ?? modeDecision(policy, 'allow');
}

/** For listings and searches: whether this file may be shown by `tool` without asking anybody. */
export function mayShow(policy: Policy, tool: string, path: string): boolean {
  return decide(policy, { tool, access: 'read', path }).verdict === 'allow';
}

/** Why a tool is not to be offered to the model at all; undefined if it is. */
export function whyNotOffered(policy: Policy, tool: string): Decision | undefined {
  return [...toolDenials(policy, tool), ...toolCeilings(policy, tool)].find(({ verdict }) => verdict === 'deny');
}

/** The tools of `known` that can be allowed at all, in their given order: what the model gets to see. */
export function offeredTools(policy: Policy, known: readonly string[]): string[] {
  return known.filter((tool) => whyNotOffered(policy, tool) === undefined);
}

/** One sentence for the model: what was decided, by which rule of whom, and what to do now. */
export function decisionText(decision: Decision): string {
  const source = decision.by === 'rule' ? `the rule ${decision.rule} (${decision.owner})` : decision.rule;
  if (decision.unanswered) {
    return `Denied: ${source} requires approval and nobody can be asked in this run. Do not repeat this call; find another way or report what is missing.`;
  }
  if (decision.verdict === 'allow') return `Allowed by ${source}.`;
  if (decision.verdict === 'ask') return `Needs approval because of ${source}.`;
  return `Denied by ${source}. Do not repeat this call; find another way or report what is missing.`;
}

function ruleDecisions(policy: Policy, action: Action): Decision[] {
  return policy.layers.map(parseLayer).flatMap((layer) => {
    const opinion = layerOpinion(layer, action);
    return opinion ? [{ ...opinion, owner: layer.owner, by: 'rule' as const }] : [];
  });
}

function toolDenials(policy: Policy, tool: string): Decision[] {
  return policy.layers.map(parseLayer).flatMap((layer) => {
    const rule = deniedTool(layer, tool);
    return rule ? [{ verdict: 'deny' as const, rule: rule.text, owner: layer.owner, by: 'rule' as const }] : [];
  });
}

function ceilingDecisions(policy: Policy, action: Action): Decision[] {
  return [...toolCeilings(policy, action.tool), ...accessCeilings(policy, action)];
}

function toolCeilings(policy: Policy, tool: string): Decision[] {
  const found: Decision[] = [];
  if (!hasName(policy.tools, tool)) found.push(ceiling('pool', `the tool pool, which has no ${tool}`));
  if (!hasName(MODE_TOOLS[policy.sandbox], tool)) found.push(modeDecision(policy, 'deny'));
  if (tool === 'task') found.push(...spawnDecisions(policy));
  return found;
}

function spawnDecisions(policy: Policy): Decision[] {
  if (policy.hops <= 0) return [ceiling('spawn', 'the depth limit: no more levels may be spawned below this agent')];
  if (policy.spawn === 'allow') return [];
  return [{ ...ceiling('spawn', `the setting spawn: ${policy.spawn}`), verdict: policy.spawn }];
}

function accessCeilings(policy: Policy, { access, path }: Action): Decision[] {
  const found: Decision[] = [];
  const changes = access === 'write' || access === 'execute';
  if (changes && policy.sandbox === 'read-only') found.push(modeDecision(policy, 'deny'));
  if (path === undefined) return found;
  const root = policy.roots.find((one) => isInside(path, one));
  if (root === undefined) {
    const roots = policy.roots.join(', ') || 'any root';
    found.push(ceiling('roots', `the limits of the workspace: ${path} is not inside ${roots}`));
  } else if (access === 'write' && isProtected(path, root)) {
    found.push(ceiling('protected', `errand itself: ${path} is read-only to every tool`));
  }
  return found;
}

/** Only what lies below the root counts: a workspace may itself be in such a folder. Some disks know no case. */
function isProtected(path: string, root: string): boolean {
  const names = pathSegments(path.toLowerCase()).slice(pathSegments(root).length);
  if (names.some((name) => SETTINGS_FOLDERS.includes(name))) return true;
  const git = names.indexOf('.git');
  if (git < 0) return false;
  // A `.git` file says where git's settings are, so it is one.
  return git === names.length - 1 || names.slice(git + 1).some((name) => GIT_SETTINGS.includes(name));
}

function ceiling(by: Decision['by'], rule: string): Decision {
  return { verdict: 'deny', rule, owner: 'policy', by };
}

function modeDecision(policy: Policy, verdict: Verdict): Decision {
  return { verdict, rule: `the sandbox mode ${policy.sandbox}`, owner: 'policy', by: 'mode' };
}

function hasName(names: readonly string[], name: string): boolean {
  return names.includes(ANY_NAME) || names.includes(name);
}

function strictest(decisions: readonly Decision[]): Decision | undefined {
  const withVerdict = (verdict: Verdict): Decision | undefined => decisions.find((one) => one.verdict === verdict);
  return withVerdict('deny') ?? withVerdict('ask') ?? withVerdict('allow');
}
