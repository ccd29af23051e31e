import { crashPoint, crashPointSoon } from '../crash-points.ts';
import { callModel } from './call-model.ts';
import { closeAgent } from './close-agent.ts';
import type { ActivityDeps } from './deps.ts';
import { openTranscript } from './open-transcript.ts';
import { reconcile } from './reconcile.ts';
import { runTools } from './run-tools.ts';
import { settleChild } from './settle-child.ts';
import { waitingOutTrouble } from './trouble.ts';
import type {
  Answer,
  CallModelInput,
  CloseInput,
  Closing,
  OpenInput,
  Opened,
  Reply,
  RunToolsInput,
  SettleChildInput,
} from '../protocol.ts';

/** All that an agent does outside its workflow, and the one activity of the reconciliation. */
export interface Activities {
  openTranscript(input: OpenInput): Promise<Opened>;
  callModel(input: CallModelInput): Promise<Reply>;
  /** Neighbouring read-only calls, together. */
  runTools(input: RunToolsInput): Promise<void>;
  /** One call with an effect. */
  runTool(input: RunToolsInput): Promise<void>;
  /** For a child that is there already, from a history that a reset has left. */
  settleChild(input: SettleChildInput): Promise<Answer>;
  closeAgent(input: CloseInput): Promise<Closing>;
  /** Ends the home's lost agents; answers their workflow ids. */
  reconcile(): Promise<readonly string[]>;
}

/** Binds the activities to what this worker has. */
export function createActivities(deps: ActivityDeps): Activities {
  const patient = <Input, Output>(run: (input: Input) => Promise<Output>) =>
    crashable((input: Input) => waitingOutTrouble(deps.home, () => run(input)));
  return {
    openTranscript: patient((input) => openTranscript(deps, input)),
    callModel: patient((input) => callModel(deps, input)),
    runTools: patient((input) => runTools(deps, input)),
    runTool: patient((input) => runTools(deps, input)),
    settleChild: patient((input) => settleChild(deps, input)),
    closeAgent: patient((input) => closeAgent(deps, input)),
    reconcile: () => reconcile(deps),
  };
}

function crashable<Input, Output>(run: (input: Input) => Promise<Output>): (input: Input) => Promise<Output> {
  return async (input) => {
    const output = await run(input);
    crashPoint('completion.before');
    crashPointSoon('completion.after');
    return output;
  };
}
