import {
  CancellationScope,
  ChildWorkflowCancellationType,
  ParentClosePolicy,
  executeChild,
  getExternalWorkflowHandle,
  workflowInfo,
} from '@temporalio/workflow';
import type { ChildWorkflowOptions } from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { childEnding, endOfFailure, rootCauseOf } from '../failures.ts';
import { AGENT_INPUT_VERSION, AGENT_WORKFLOW, workflowId } from '../protocol.ts';
import type { AgentInput, AgentRef, AgentResult, Answer, Call, TaskCall } from '../protocol.ts';
import { startAttributes } from './attributes.ts';
import { activities, settleOptions } from './proxies.ts';

/**
 * Runs a `task` call as a child workflow and answers with its ending, whatever that is. Throws only when this agent's
 * own scope is being cancelled, and then after the child has closed.
 */
export async function runSubagent(parent: AgentInput, ref: AgentRef, call: Call, task: TaskCall): Promise<Answer> {
  const childId = workflowId(parent.runId, task.agentId);
  const scope = new CancellationScope();
  try {
    const result = await scope.run(() => {
      cancelCurrentRunToo(scope, childId);
      return executeChild<(input: AgentInput) => Promise<AgentResult>>(AGENT_WORKFLOW, {
        ...childOptions(parent, task, childId),
        args: [childInput(parent, ref, call, task)],
      });
    });
    return { callId: call.callId, child: { agentId: task.agentId, status: result.status } };
  } catch (error) {
    if (scope.consideredCancelled) throw error;
    if (error instanceof WorkflowExecutionAlreadyStartedError) return settleEarlier(parent, ref, call, task);
    return { callId: call.callId, child: { agentId: task.agentId, ...childEnding(error) } };
  }
}

/**
 * After a reset to before its start the child is there from the history that was left. It is ended if it still runs, and
 * answered from its transcript.
 */
async function settleEarlier(parent: AgentInput, ref: AgentRef, call: Call, task: TaskCall): Promise<Answer> {
  const { callId } = call;
  const turn = Number(callId.slice(1, callId.indexOf('.')));
  const request = { ref, turn, callId, agentId: task.agentId };
  try {
    return await activities.settleChild.executeWithOptions(settleOptions(parent, call), [request]);
  } catch (error) {
    if (CancellationScope.current().consideredCancelled || endOfFailure(error)) throw error;
    return { callId, child: { agentId: task.agentId, status: 'failed', error: rootCauseOf(error) } };
  }
}

/**
 * The one place where a child's input is made. Who it is, how deep it is and what it may do come from here and from
 * the activity that validated the call; nothing of it can be set by the model.
 */
export function childInput(parent: AgentInput, ref: AgentRef, call: Call, task: TaskCall): AgentInput {
  return {
    v: AGENT_INPUT_VERSION,
    runId: parent.runId,
    agentId: task.agentId,
    parent: { agentId: parent.agentId, callId: call.callId, ...(ref.branch !== '' && { branch: ref.branch }) },
    transcript: parent.transcript,
    depth: parent.depth + 1,
    hops: Math.max(0, Math.min(task.hops, (parent.hops ?? 0) - 1)),
    epoch: parent.epoch,
    objects: task.objects,
    agentType: task.agentType,
    description: task.description,
    limits: task.limits,
    model: task.model,
    workspace: parent.workspace,
    trace: { traceId: parent.trace.traceId, spanId: task.spanId, parentSpanId: parent.trace.spanId },
    searchAttributes: parent.searchAttributes,
    ...(parent.modelServer !== undefined && { modelServer: parent.modelServer }),
    // Fresh on purpose, so absent here: history (an own context is the point of delegating), read set (read-before-edit
    // is a safety catch: knowing that a parent read a file is not having seen it), todo list and turn count.
  };
}

function childOptions(parent: AgentInput, task: TaskCall, childId: string): ChildWorkflowOptions {
  return {
    workflowId: childId,
    taskQueue: workflowInfo().taskQueue,
    parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
    cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    workflowTaskTimeout: 10_000,
    staticSummary: `${task.agentType}: ${task.description}`,
    staticDetails: `Sub-agent **${task.agentId}** of \`${parent.runId}\`, depth ${parent.depth + 1}`,
    typedSearchAttributes: startAttributes(parent.searchAttributes, task.agentType, parent.depth + 1),
  };
}

/**
 * The server sends a parent's cancel to the child's first run only; a child that has continued as new never hears of
 * it. A second cancel without a run id reaches whichever run is current. It may find the child closed: then there is
 * nothing left to stop.
 */
function cancelCurrentRunToo(scope: CancellationScope, childId: string): void {
  scope.cancelRequested.catch(() =>
    CancellationScope.nonCancellable(() => getExternalWorkflowHandle(childId).cancel()).catch(() => undefined),
  );
}
