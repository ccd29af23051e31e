import type { SandboxHost } from './host.ts';
import { allowedEnvironment } from './environment.ts';
import type { RunnableSandbox } from './plan.ts';

/** What the demo job runs; nothing else of it may go without a sandbox. */
const DEMO_COMMANDS: readonly string[] = ['node --test'];

/**
 * Where no sandbox works, the demo's own known commands still run, as they are, in the scratch folder that the demo made
 * for itself. Undefined for everything else.
 */
export function demoException(
  { demoWorkspace, env }: SandboxHost,
  { roots, command }: { readonly roots: readonly string[]; readonly command: string },
): RunnableSandbox | undefined {
  const isDemo = demoWorkspace !== undefined && roots.length === 1 && roots[0] === demoWorkspace;
  if (!isDemo || !DEMO_COMMANDS.includes(command)) return undefined;
  return { kind: 'none', env: allowedEnvironment(env) };
}
