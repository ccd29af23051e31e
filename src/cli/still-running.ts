import { serverStatus } from '../server/index.ts';
import { commandName } from './command-name.ts';
import { readConfigToLook, type CommandContext } from './context.ts';
import { runningModelServer } from './model-server-process.ts';
import { instanceLines, modelServerLine } from './status.ts';

/** What goes on when this command has ended, and how to stop it. */
export async function stillRunning(context: CommandContext): Promise<readonly string[]> {
  const config = readConfigToLook(context);
  const home = config.home.value;
  const { instances } = await serverStatus({ home });
  const model = runningModelServer(home);
  const lines = [
    ...instances.filter(({ running }) => running).flatMap(instanceLines),
    ...(model ? [modelServerLine(model)] : []),
  ];
  return lines.length === 0
    ? []
    : [
        'Still running:',
        ...lines.map((line) => `  ${line}`),
        `Stop all of it: ${commandName(config, context.io.env)} down`,
      ];
}
