import { decide, decisionText } from '../policy/decide.ts';
import type { Action } from '../policy/policy.ts';
import type { ResolvedPath } from './paths.ts';
import type { ToolContext } from './tool.ts';
import { ToolError } from './tool.ts';
import { isWithin } from './walk.ts';

/** One action for the real path and one for every link on the way: a rule may name either. */
export function pathActions(tool: string, access: 'read' | 'write', path: ResolvedPath): readonly Action[] {
  return [path.realPath, ...path.aliases].map((name) => ({ tool, access, path: name }));
}

/**
 * Throws ToolError when a rule denies what was opened. The decision was made on the path as it was then; a link swapped
 * since could have led to another file inside the roots.
 */
export function requireNotDenied(context: ToolContext, actions: readonly Action[]): void {
  for (const action of actions) {
    if (isReadable(context, action)) continue;
    const decision = decide(context.policy, action);
    if (decision.verdict === 'deny') throw new ToolError(`'${action.path}': ${decisionText(decision)}`);
  }
}

/** What errand itself keeps for the agent is no business of the policy, which closes the rest of errand's folders. */
export function isReadable({ readable }: Pick<ToolContext, 'readable'>, { access, path }: Action): boolean {
  return access === 'read' && path !== undefined && readable.some((folder) => isWithin(path, folder));
}

/**
 * What a folder-wide search may show. A file that needs a person's consent is left out unless the consent was to the
 * search of the folder itself, by the same rule. Nothing is counted or reported: how many files were left out would
 * tell what is in them.
 */
export function searchFilter(context: ToolContext, tool: string, folder: string): (path: string) => boolean {
  const { policy } = context;
  const whole = decide(policy, { tool, access: 'read', path: folder });
  return (path) => {
    if (isReadable(context, { tool, access: 'read', path })) return true;
    const { verdict, rule, owner } = decide(policy, { tool, access: 'read', path });
    if (verdict === 'ask') return whole.verdict === 'ask' && whole.rule === rule && whole.owner === owner;
    return verdict === 'allow';
  };
}
