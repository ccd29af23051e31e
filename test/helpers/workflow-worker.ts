import { NativeConnection, Worker } from '@temporalio/worker';
import { inject } from 'vitest';
import type { Activities } from '../../src/activities/index.ts';
import { WORKFLOW_BUGS } from '../../src/failures.ts';
import { BUILT_BUNDLE, installQuietRuntime } from './replay.ts';

export interface WorkflowWorkerOptions {
  readonly taskQueue: string;
  /** Stand in for the real ones; may answer anything. */
  readonly activities: { readonly [Name in keyof Activities]?: (...args: Parameters<Activities[Name]>) => unknown };
  /** Workflow code other than the one that is built; null: activities alone. */
  readonly code?: string | null;
}

/** Runs the built workflow code in this process, with other activities, while `work` does something with it. */
export async function withWorkflowWorker<T>(options: WorkflowWorkerOptions, work: () => Promise<T>): Promise<T> {
  installQuietRuntime();
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') });
  const worker = await Worker.create({
    connection,
    taskQueue: options.taskQueue,
    activities: { ...options.activities },
    ...(options.code !== null && {
      workflowBundle: options.code === undefined ? { codePath: BUILT_BUNDLE } : { code: options.code },
    }),
    workflowFailureErrorTypes: { '*': [...WORKFLOW_BUGS] },
    stickyQueueScheduleToStartTimeout: 500,
  });
  try {
    return await worker.runUntil(work);
  } finally {
    await connection.close();
  }
}
